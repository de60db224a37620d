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
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, is_typeddict

if TYPE_CHECKING:
    from memoriter.tools.tool import Tool

PAGES = Path(__file__).parent
sys.path.insert(0, str(PAGES.parent / "src"))

REGION = re.compile(r"(?P<open><!-- generated: (?P<name>[\w-]+) -->\n).*?(?P<close><!-- end -->)", re.DOTALL)
RENDERERS: dict[str, Callable[[], str]] = {}
#: Options that are the same everywhere, or that typer adds.
OMITTED = ("--json", "--install-completion", "--show-completion")


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
        lines += [""]
        lines += [
            _setting_line(key, field.get_default(call_default_factory=True), field.description or "")
            for key, field in group
        ]
        lines += [""]
    return "\n".join(lines)


@renders("other-names")
def other_names() -> str:
    """Render the names of other programs and the settings that they stand for."""
    from memoriter.config.layers import other_names as known_names

    lines = list[str]()
    for other, name in known_names().items():
        settings = [name] if isinstance(name, str) else list(name(False))
        lines.append(f"- `{other}`: {', '.join(f'`{setting}`' for setting in settings)}")
    return "\n".join([*lines, ""])


def _section(kind: type, path: str) -> type:
    """Return the class of a section by its dotted key."""
    for name in path.split("."):
        kind = kind.model_fields[name].annotation  # type: ignore[attr-defined]
    return kind


def _setting_line(key: str, default: object, meaning: str) -> str:
    return f"- `{key}` ({_shown(default)}): {meaning}"


def _shown(default: object) -> str:
    """Return a default as it would be written in the settings file."""
    match default:
        case None | "":
            return "not set"
        case bool():
            return f"`{str(default).lower()}`"
        case tuple() if len(default) > 12:
            return f"{len(default)} names, which `memoriter config get` prints"
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
        lines += [*(_argument_line(tool, name) for name in tool.schema()["properties"]), ""]
        lines += ["Result: " + ", ".join(f"`{name}`" for name in (*tool.empty, "disabled")) + ".", ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


@renders("operations")
def operations() -> str:
    """Render every operation that agents do not call, in one line: access, meaning, arguments and result."""
    from memoriter.tools.table import OPERATIONS
    from memoriter.tools.tool import json_schema
    from memoriter.tools.toolbox import TOOLS

    lines: list[str] = []
    for tool in OPERATIONS.values():
        if tool.name not in TOOLS:
            schema = tool.schema()
            arguments = (
                f"{name}{'' if name in schema['required'] else '?'}" for name in schema["properties"]
            )
            result = ", ".join(json_schema(tool.result)["properties"])
            lines.append(
                f"- `{tool.name}({', '.join(arguments)})` ({tool.access}): {tool.description} Result: `{result}`."
            )
    return "\n".join(lines)


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


@renders("cli")
def cli() -> str:
    """Render every command with its arguments and options."""
    from typer.main import get_command

    from memoriter.cli.app import app
    from memoriter.cli.context import grouped_commands

    root: Any = get_command(app)
    context = root.make_context("memoriter", [], resilient_parsing=True)
    lines = ["## Global options", "", *_parameter_rows(root, context)]
    groups = grouped_commands()
    shown = {name for name in root.list_commands(context) if not root.get_command(context, name).hidden}
    other = sorted(shown - {name for commands in groups.values() for name in commands})
    for group, names in {**groups, "Other": [*groups.get("Other", ()), *other]}.items():
        lines += [f"## {group}", ""] if names else []
        for name in names:
            lines += _command_section(root.get_command(context, name), f"memoriter {name}", context)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def _command_section(command: Any, name: str, parent: Any) -> list[str]:
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    lines = [f"### `{name}`", "", " ".join((command.help or "").split()), ""]
    children = getattr(command, "commands", {})
    if not children or command.invoke_without_command:
        lines += _parameter_rows(command, context)
        if command.epilog:
            commands = "\n".join(command.epilog.partition(": ")[2].split(" · "))
            lines += [f"```text\n{commands}\n```", ""]
    for child in children:
        lines += _command_section(children[child], f"{name} {child}", context)
    return lines


def _parameter_rows(command: Any, context: Any) -> list[str]:
    records = filter(None, (parameter.get_help_record(context) for parameter in command.params))
    rows = [
        f"- {_code(name)}: {' '.join(meaning.split())}" for name, meaning in records if name not in OMITTED
    ]
    return [*rows, ""] if rows else []


def _code(text: str) -> str:
    return "`" + " ".join(text.split()) + "`"


@renders("python")
def python() -> str:
    """Render every public name: functions and classes with their methods, values with their fields, and errors.

    `AsyncMemory` repeats the methods of `Memory`, so only its own are rendered.
    """
    import memoriter

    found = [(name, getattr(memoriter, name)) for name in sorted(memoriter.__all__, key=str.lower)]
    found = [(name, value) for name, value in found if name != "__version__"]
    lines = ["## Functions and classes", ""]
    lines += [
        line for name, value in found if _kind_of(value) == "class" for line in _class_section(name, value)
    ]
    lines += ["## Values", "", "Frozen dataclasses, unless it says otherwise.", ""]
    lines += [_value_line(name, value) for name, value in found if _kind_of(value) == "value"]
    lines += ["", "## Errors", ""]
    errors = [(name, value) for name, value in found if _kind_of(value) == "error"]
    lines += [f"- `{name}({error.__base__.__name__})`: {_summary(error)}" for name, error in errors]
    return "\n".join([*lines, ""])


def _kind_of(value: Any) -> str:
    if isinstance(value, type) and issubclass(value, Exception):
        return "error"
    methods = [name for name, member in vars(value).items() if inspect.isfunction(member) and name[0] != "_"]
    has_fields = hasattr(value, "__dataclass_fields__") or is_typeddict(value)
    is_value = get_origin(value) is Literal or (has_fields and not methods)
    return "value" if is_value else "class"


def _class_section(name: str, value: Any) -> list[str]:
    if not isinstance(value, type):
        return [f"### `{name}`", "", f"`{_signature(f'memoriter.{name}', value)}`: {_summary(value)}", ""]
    lines = [f"### `{name}`", "", _summary(value), ""]
    fields = getattr(value, "__dataclass_fields__", {})
    lines += [f"Fields: `{_fields(value)}`.", ""] if fields else []
    members = [pair for pair in _public_members(value) if pair[0] not in fields]
    return [*lines, *(_member_line(member, function) for member, function in members), ""]


def _value_line(name: str, value: Any) -> str:
    if get_origin(value) is Literal:
        return f"- `{name}`: one of {', '.join(f'`{one}`' for one in get_args(value))}."
    return f"- `{name}({_fields(value)})`: {_summary(value)}"


def _fields(value: Any) -> str:
    return ", ".join(value.__annotations__ if is_typeddict(value) else value.__dataclass_fields__)


def _member_line(name: str, function: Any) -> str:
    signature = name if isinstance(function, property) else _signature(name, function)
    return f"- `{signature}`: {_summary(function)}"


def _public_members(kind: type) -> list[tuple[str, Any]]:
    """Return the documented methods and properties of a class, in the order of the code."""
    members = []
    for name, value in vars(kind).items():
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        documented = isinstance(function, property) or inspect.isfunction(function)
        repeated = kind.__name__ == "AsyncMemory" and name not in ("open", "close")
        if not name.startswith(("_", "model_")) and documented and function.__doc__ and not repeated:
            members.append((name, function))
    return members


def _signature(name: str, function: Any) -> str:
    """Return the signature in one line, without the types, which an editor shows."""
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=parameter.empty)
        for key, parameter in signature.parameters.items()
        if key not in ("self", "cls")
    ]
    short = str(signature.replace(parameters=parameters, return_annotation=signature.empty))
    returned = (
        "" if signature.return_annotation in ("None", signature.empty) else _type(signature.return_annotation)
    )
    short = re.sub(r"<(function|object) .*? at 0x\w+>", "…", name + short)
    return f"{short} -> {returned}" if returned else short


def _type(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _summary(value: Any) -> str:
    """Return the first sentence of a docstring."""
    paragraph = " ".join(inspect.cleandoc(value.__doc__ or "").partition("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z`])", paragraph, maxsplit=1)[0]


@renders("peers")
def peers() -> str:
    """Repeat the measured comparison with other memories."""
    return _measured("retrieval.md", "peers")


@renders("sets")
def sets() -> str:
    """Repeat the measured quality of the default search, by set."""
    return _measured("retrieval.md", "sets")


@renders("budgets")
def budgets() -> str:
    """Repeat the first table of the benchmark of speed."""
    return _measured("benchmarks.md", "bench").partition("\n\n")[2].partition("\n\n")[0]


def _measured(page: str, name: str) -> str:
    """Return a block of a page in lab/, which a measurement has written there."""
    text = (PAGES.parent / "lab" / page).read_text("utf-8")
    return text.partition(f"<!-- measured: {name} -->\n")[2].partition("<!-- end measured -->")[0]


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
