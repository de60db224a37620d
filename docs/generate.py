"""Rewrite the generated parts of the pages in this folder, or check that they are up to date.

    python docs/generate.py            # rewrite them
    python docs/generate.py --check    # change nothing; exit with 1 and one line per page if a page is stale

A generated part is between `<!-- generated: NAME -->` and `<!-- end -->`. To add one, write a function that returns
its Markdown and register it with `@renders("NAME")`.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoriter.tools.tool import Tool

PAGES = Path(__file__).parent
sys.path.insert(0, str(PAGES.parent / "src"))

REGION = re.compile(r"(?P<open><!-- generated: (?P<name>[\w-]+) -->\n).*?(?P<close><!-- end -->)", re.DOTALL)
RENDERERS: dict[str, Callable[[], str]] = {}


def renders(name: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Register the function that renders the region of this name."""

    def register(render: Callable[[], str]) -> Callable[[], str]:
        RENDERERS[name] = render
        return render

    return register


@renders("config")
def config() -> str:
    """Render every setting, section by section."""
    from memoriter.config import Settings, keys

    lines: list[str] = []
    for section, group in groupby(keys().items(), key=lambda item: item[0].rpartition(".")[0]):
        kind = _section(Settings, section) if section else None
        lines += [f"### `{section}`", "", (kind.__doc__ or "").strip()] if kind else ["### General"]
        lines += ["", "| key | default | environment variable | meaning |", "| --- | --- | --- | --- |"]
        lines += [
            _setting_row(key, field.get_default(call_default_factory=True), field.description or "")
            for key, field in group
        ]
        lines += [""]
    return "\n".join(lines)


@renders("other-names")
def other_names() -> str:
    """Render the names of other programs and the settings that they stand for."""
    from memoriter.config.other_names import OTHER_NAMES

    lines = ["| name | setting |", "| --- | --- |"]
    for other, name in OTHER_NAMES.items():
        settings = [name] if isinstance(name, str) else list(name(False))
        lines.append(f"| `{other}` | {', '.join(f'`{setting}`' for setting in settings)} |")
    return "\n".join([*lines, ""])


def _section(kind: type, path: str) -> type:
    """Return the class of a section by its dotted key."""
    for name in path.split("."):
        kind = kind.model_fields[name].annotation  # type: ignore[attr-defined]
    return kind


def _setting_row(key: str, default: object, meaning: str) -> str:
    variable = "MEMORITER_" + key.upper().replace(".", "__")
    return f"| `{key}` | {_shown(default)} | `{variable}` | {meaning.replace('|', '&#124;')} |"


def _shown(default: object) -> str:
    """Return a default as it would be written in the settings file."""
    match default:
        case None | "":
            return "not set"
        case bool():
            return f"`{str(default).lower()}`"
        case tuple():
            return f"`[{', '.join(repr(item) for item in default)}]`"
        case _:
            return f"`{default}`"


@renders("tools")
def tools() -> str:
    """Render every tool with its arguments and the fields of its result."""
    from memoriter.tools.toolbox import TOOLS

    lines: list[str] = []
    for tool in TOOLS.values():
        kind = "reads" if tool.read_only else "deletes or overwrites" if tool.destructive else "writes"
        lines += [f"## `{tool.name}`", "", f"{tool.description} ({kind})", ""]
        if properties := tool.schema()["properties"]:
            lines += ["| argument | type | default | meaning |", "| --- | --- | --- | --- |"]
            lines += [_argument_row(tool, name) for name in properties]
            lines += [""]
        lines += ["Result: " + ", ".join(f"`{name}`" for name in (*tool.empty, "disabled")) + ".", ""]
    return "\n".join(lines)


@renders("operations")
def operations() -> str:
    """Render every operation that agents do not call: access, arguments and result."""
    from memoriter.tools.table import OPERATIONS
    from memoriter.tools.tool import json_schema
    from memoriter.tools.toolbox import TOOLS

    lines: list[str] = []
    for tool in OPERATIONS.values():
        if tool.name in TOOLS:
            continue
        result = ", ".join(f"`{name}`" for name in (*json_schema(tool.result)["properties"], "disabled"))
        lines += [f"### `{tool.name}` ({tool.access})", "", tool.description, ""]
        lines += [_argument_line(tool, name) for name in tool.schema()["properties"]]
        lines += ["", f"Result: {result}.", ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def _argument_row(tool: Tool, name: str) -> str:
    schema = tool.schema()["properties"][name]
    names = ", ".join(f"`{name}`" for name in tool.names_of(name))
    meaning = schema["description"].replace("|", "&#124;")
    return f"| {names} | {_kind(schema)} | {_default(tool, name)} | {meaning} |"


def _argument_line(tool: Tool, name: str) -> str:
    schema = tool.schema()["properties"][name]
    default = _default(tool, name)
    words = ", ".join(part for part in (_kind(schema), _limits(schema), default) if part)
    return f"- `{name}` ({words}): {schema['description']}"


def _kind(schema: dict[str, Any]) -> str:
    """Return the type of an argument and the values it may have."""
    items = schema.get("items", schema)
    kind = f"list of {items['type']}s" if schema["type"] == "array" else schema["type"]
    return f"{kind}: {', '.join(items['enum'])}" if "enum" in items else str(kind)


def _limits(schema: dict[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    longest = schema.get("maxLength", schema.get("maxItems"))
    if low is not None and high is not None:
        return f"{low:,.12g}–{high:,.12g}"
    if low is not None:
        return f"at least {low:,.12g}"
    return f"at most {longest:,.12g}" if longest is not None else ""


def _default(tool: Tool, name: str) -> str:
    schema = tool.schema()
    default = schema["properties"][name].get("default")
    if name in schema["required"]:
        return "required"
    return "" if default in (None, "", [], False) else f"default {json.dumps(default)}"


@renders("access")
def access() -> str:
    """Render what each access adds to the access before it."""
    from memoriter.tools.table import OPERATIONS
    from memoriter.tools.tool import ACCESS

    lines = ["| access | may call |", "| --- | --- |"]
    for granted in ACCESS:
        names = (f"`{name}`" for name, tool in OPERATIONS.items() if tool.access == granted)
        lines.append(f"| `{granted}` | {', '.join(names)} |")
    return "\n".join(lines)


@renders("prompt")
def prompt() -> str:
    """Render the section of the system prompt in both languages."""
    from memoriter.recall.render import memory_section
    from memoriter.tools.toolbox import TOOLS

    english = memory_section({name: tool.hints["en"] for name, tool in TOOLS.items()})
    chinese = memory_section({name: tool.hints["zh"] for name, tool in TOOLS.items()}, language="zh")
    return f"```markdown\n{english}\n```\n\n```markdown\n{chinese}\n```"


@renders("parity")
def parity() -> str:
    """Render which test checks which requirement, from the names of the tests in `tests/parity/`."""
    rows: list[tuple[str, int, str, str, str]] = []
    for file in sorted((PAGES.parent / "tests" / "parity").glob("test_*.py")):
        for function in ast.parse(file.read_text("utf-8")).body:
            found = re.match(r"test_([a-ex])(\d+)(b?)_(.*)", getattr(function, "name", ""))
            if found and isinstance(function, ast.FunctionDef):
                letter, number, more, says = found.groups()
                expected = any("xfail" in ast.unparse(mark) for mark in function.decorator_list)
                result = "does not hold yet" if expected else "holds"
                rows.append((letter.upper(), int(number), more, says.replace("_", " "), result))
    lines = ["| id | what the test does | result |", "| --- | --- | --- |"]
    lines += [
        f"| {letter}{number}{more} | {says} | {result} |"
        for letter, number, more, says, result in sorted(rows)
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Rewrite or check every page and return the exit status."""
    stale = [
        (page, new)
        for page in sorted(PAGES.glob("**/*.md"))
        if (new := rendered(page)) != page.read_text("utf-8")
    ]
    if "--check" in arguments:
        for line in (difference(page, new) for page, new in stale):
            sys.stderr.write(line + "\n")
        return 1 if stale else 0
    for page, new in stale:
        page.write_text(new, "utf-8")
        sys.stdout.write(f"rewrote {page.name}\n")
    return 0


def rendered(page: Path) -> str:
    """Return the page as it should be."""

    def replace(match: re.Match[str]) -> str:
        if match["name"] not in RENDERERS:
            raise SystemExit(
                f"{page.name}: nothing renders the region {match['name']!r}; see docs/generate.py"
            )
        return match["open"] + RENDERERS[match["name"]]().strip("\n") + "\n" + match["close"]

    return REGION.sub(replace, page.read_text("utf-8"))


def difference(page: Path, new: str) -> str:
    """Say in one line where the page first differs from what it should be."""
    old_lines, new_lines = page.read_text("utf-8").splitlines(), new.splitlines()
    number, old, wanted = next(_differing(old_lines, new_lines))
    return f"docs/{page.name}, line {number}: {old!r} should be {wanted!r}; run `python docs/generate.py`"


def _differing(old: list[str], new: list[str]) -> Iterator[tuple[int, str, str]]:
    for index in range(max(len(old), len(new))):
        pair = [lines[index] if index < len(lines) else "" for lines in (old, new)]
        if pair[0] != pair[1]:
            yield index + 1, pair[0], pair[1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
