"""Rewrite the generated parts of the pages in this folder, or check that they are up to date.

    python docs/generate.py            # rewrite them
    python docs/generate.py --check    # change nothing; exit with 1 and one line per page if a page is stale
    python docs/generate.py --outputs  # also run the commands that the README shows, and rewrite their output

A generated part is between `<!-- generated: NAME -->` and `<!-- end -->`. To add one, write a function that returns
its Markdown and register it with `@renders("NAME")`.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

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
    from memoriter.config.settings import full_settings, keys

    lines: list[str] = []
    for section, group in groupby(keys().items(), key=lambda item: item[0].rpartition(".")[0]):
        kind = _section(full_settings(), section) if section else None
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
    from memoriter.config.other_names import other_names as known_names

    lines = ["| name | setting |", "| --- | --- |"]
    for other, name in known_names().items():
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
        return f"{low:,.16g}–{high:,.16g}"
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


@renders("cli")
def cli() -> str:
    """Render every command with its arguments and options."""
    from typer.main import get_command

    from memoriter.cli.app import app
    from memoriter.cli.context import GROUPS

    root: Any = get_command(app)
    context = root.make_context("memoriter", [], resilient_parsing=True)
    lines = ["## Global options", "", *_parameter_rows(root, context)]
    shown = {name for name, command in root.commands.items() if not command.hidden}
    other = sorted(shown - {name for commands in GROUPS.values() for name in commands})
    for group, names in {**GROUPS, "Other": other}.items():
        lines += [f"## {group}", ""] if names else []
        for name in names:
            lines += _command_section(root.commands[name], f"memoriter {name}", context)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def _command_section(command: Any, name: str, parent: Any) -> list[str]:
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    lines = [f"### `{name}`", "", " ".join((command.help or "").split()), ""]
    if children := getattr(command, "commands", {}):
        for child in children:
            lines += _command_section(children[child], f"{name} {child}", context)
        return lines
    lines += _parameter_rows(command, context)
    if command.epilog:
        kind, _, examples = command.epilog.partition(": ")
        commands = "\n".join(examples.split(" · "))
        lines += [f"{kind}:", "", f"```text\n{commands}\n```", ""]
    return lines


def _parameter_rows(command: Any, context: Any) -> list[str]:
    records = filter(None, (parameter.get_help_record(context) for parameter in command.params))
    rows = [f"| {_code(name)} | {_cell(meaning)} |" for name, meaning in records]
    return ["| option | meaning |", "| --- | --- |", *rows, ""] if rows else []


def _code(text: str) -> str:
    return "`" + " ".join(text.split()).replace("|", "\\|") + "`"


def _cell(text: str) -> str:
    """Return a text for a cell of a table, where a bar would start the next cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


@renders("python")
def python() -> str:
    """Render every public class with its methods and fields, and every error.

    `AsyncMemory` repeats the methods of `Memory`, so only its own are rendered.
    """
    import memoriter

    names = [name for name in memoriter.__all__ if name != "__version__"]
    found = [(name, getattr(memoriter, name)) for name in names]
    errors = [item for item in found if isinstance(item[1], type) and issubclass(item[1], Exception)]
    others = sorted((item for item in found if item not in errors), key=lambda item: item[0].lower())
    lines = [line for name, value in others for line in _object_section(name, value)]
    lines += ["## Errors", "", "| error | is a | meaning |", "| --- | --- | --- |"]
    lines += [
        f"| `{name}` | `{error.__base__.__name__}` | {_cell(_summary(error))} |" for name, error in errors
    ]
    return "\n".join([*lines, ""])


def _object_section(name: str, value: Any) -> list[str]:
    if get_origin(value) is Literal:
        return [f"## `{name}`", "", f"One of {', '.join(f'`{one}`' for one in get_args(value))}.", ""]
    lines = [f"## `{name}`", "", inspect.cleandoc(value.__doc__ or ""), ""]
    if not isinstance(value, type):
        return [*lines, *_signature(f"memoriter.{name}", value)]
    fields = getattr(value, "__dataclass_fields__", {})
    if fields:
        meanings = _field_comments(value)
        rows = [
            f"| `{field}` | {_code(_type(fields[field].type))} | {_cell(meanings.get(field, ''))} |"
            for field in fields
        ]
        lines += ["| field | type | meaning |", "| --- | --- | --- |", *rows, ""]
    for member, function in _public_members(value):
        if member in fields:
            continue
        if isinstance(function, property):
            lines += [f"**`{member}`**: {_summary(function)}", ""]
        else:
            lines += [f"### `{name}.{member}`", "", inspect.cleandoc(function.__doc__ or ""), ""]
            lines += _signature(member, function)
    return lines


def _field_comments(kind: type) -> dict[str, str]:
    """Return the `#:` comments above the fields of a class."""
    found = re.findall(r"((?:^ +#: .*\n)+) +(\w+):", inspect.getsource(kind), re.MULTILINE)
    return {field: re.sub(r"^ +#: ", "", comment, flags=re.MULTILINE) for comment, field in found}


def _public_members(kind: type) -> list[tuple[str, Any]]:
    """Return the documented methods and properties of a class, in the order of the code."""
    members = []
    for name, value in vars(kind).items():
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        documented = isinstance(function, property) or inspect.isfunction(function)
        repeated = kind.__name__ == "AsyncMemory" and name not in ("open", "close")
        if not name.startswith("_") and documented and function.__doc__ and not repeated:
            members.append((name, function))
    return members


def _signature(name: str, function: Any) -> list[str]:
    """Return a block with the signature, one argument per line if it is long."""
    signature = inspect.signature(function)
    parameters = [parameter for key, parameter in signature.parameters.items() if key not in ("self", "cls")]
    short = str(signature.replace(parameters=parameters)).replace("'", "")
    if len(name + short) > 100:
        words = [str(parameter).replace("'", "") for parameter in parameters]
        first = next((i for i, item in enumerate(parameters) if item.kind is item.KEYWORD_ONLY), None)
        if first is not None:
            words.insert(first, "*")
        short = "(\n" + "".join(f"    {word},\n" for word in words) + ")" + short.rpartition(")")[2]
    return ["```text", re.sub(r"<(function|object) .*? at 0x\w+>", "…", name + short), "```", ""]


def _type(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _summary(value: Any) -> str:
    """Return the first paragraph of a docstring."""
    return " ".join(inspect.cleandoc(value.__doc__ or "").partition("\n\n")[0].split())


@renders("peers")
def peers() -> str:
    """Repeat the measured comparison of `retrieval.md`, which a run of the evaluation writes."""
    text = (PAGES / "retrieval.md").read_text("utf-8")
    return text.partition("<!-- measured: peers -->\n")[2].partition("<!-- end measured -->")[0]


@renders("prompt")
def prompt() -> str:
    """Render the section of the system prompt in both languages."""
    from memoriter.recall.render import memory_section
    from memoriter.tools.toolbox import TOOLS

    english = memory_section({name: tool.hints["en"] for name, tool in TOOLS.items()})
    chinese = memory_section({name: tool.hints["zh"] for name, tool in TOOLS.items()}, language="zh")
    return f"```markdown\n{english}\n```\n\n```markdown\n{chinese}\n```"


def readme_with_outputs(readme: str) -> str:
    """Return the README with the output of its `console` blocks, from a run on the notes of the demo.

    Scores and times differ a little between machines, so an output that differs only in decimals stays as it is.
    """
    from memoriter.testing import sample_workspace

    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder, "demo-workspace")
        sample_workspace(workspace)
        variables = {**os.environ, "HOME": folder, "COLUMNS": "120", "MEMORITER_RESIDENT__ENABLED": "false"}
        variables["PYTHONPATH"] = str(PAGES.parent / "src")

        def run(shown: re.Match[str]) -> str:
            words = [sys.executable, "-m", *shlex.split(shown["command"])]
            printed = subprocess.run(  # noqa: S603 - commands of our README
                words, cwd=workspace, env=variables, capture_output=True, text=True, check=True
            ).stdout
            lines = "".join(f"{line.rstrip()}\n" for line in printed.strip().splitlines())
            same = _without_decimals(lines) == _without_decimals(shown["output"])
            return f"$ {shown['command']}\n{shown['output'] if same else lines}{shown['end']}"

        shown = re.compile(r"^\$ (?P<command>.+)\n(?P<output>[^$]*?)(?P<end>\n(?=\$ )|(?=```))", re.MULTILINE)
        return re.sub(
            r"(?<=^```console\n).*?^```$",
            lambda block: shown.sub(run, block[0]),
            readme,
            flags=re.DOTALL | re.MULTILINE,
        )


def _without_decimals(text: str) -> str:
    return re.sub(r"\d+\.\d+", "N", text)


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
    if "--outputs" in arguments:
        readme = PAGES.parent / "README.md"
        old = readme.read_text("utf-8")
        stale += [(readme, new)] if (new := readme_with_outputs(old)) != old else []
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
