"""The commands for agents' hosts: `hook`, `install`, `uninstall`, `spool`, `recall`, `capture`.

Imports of the package stay inside the functions, so that ``--help`` costs no more than typer itself.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from memoriter.cli.context import Json

if TYPE_CHECKING:
    from memoriter.cli.app import Globals
    from memoriter.config import Settings
    from memoriter.integrations.claude_code.install import Change

Known = Annotated[Literal["claude-code"], typer.Argument(help="The host.")]
Scope = Annotated[
    Literal["user", "project"],
    typer.Option(help="Everywhere, or only in the project of the current folder."),
]
SettingsFile = Annotated[
    Path | None, typer.Option("--settings", help="Another settings.json.", show_default=False)
]
ServersFile = Annotated[
    Path | None, typer.Option("--mcp-file", help="Another file of MCP servers.", show_default=False)
]
Server = Annotated[str, typer.Option(help="The name of the MCP server.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]
Messages = Annotated[
    str,
    typer.Option(help="A file of messages, a JSON array or one a line; '-' reads standard input."),
]
RECENT = 50  #: messages that say what a conversation is about
AT_ONCE = 2_000  #: messages that the operation takes


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(epilog="Example: memoriter hook claude-code UserPromptSubmit < event.json")(hook)
    app.command(epilog="Example: memoriter --workspace ~/notes install claude-code --dry-run")(install)
    app.command(epilog="Example: memoriter uninstall claude-code")(uninstall)
    app.command()(spool)
    app.command(epilog="Example: memoriter recall --messages conversation.json")(recall)
    app.command(epilog="Example: memoriter capture --messages conversation.jsonl --session 3f2a")(capture)


def hook(
    context: typer.Context,
    host: Annotated[str, typer.Argument(help="The host: claude-code.")],
    event: Annotated[
        str, typer.Argument(help="SessionStart, UserPromptSubmit, Stop, SessionEnd or PreCompact.")
    ] = "",
    deadline: Annotated[float, typer.Option(help="Seconds within which there is an answer.")] = 2.0,
    server: Annotated[
        str, typer.Option(help="The name under which the host knows our MCP server.", show_default=False)
    ] = "",
    wait: Annotated[
        bool, typer.Option("--wait", help="End when all is done, not when the answer is there.")
    ] = False,
) -> None:
    """Answer a host's hook: its JSON on standard input, at most one JSON object on standard output, always exit 0."""
    from memoriter.integrations.claude_code.hook import main
    from memoriter.integrations.claude_code.hook_input import Wanted

    # For `--help`, and for programs that run the app: the command line answers a hook before typer is there.
    given: Globals = context.obj
    places = {**given.arguments(), "config": given.config}
    named = {name: str(value) for name, value in places.items() if value is not None}
    main(Wanted(host, event, deadline, wait, server, named))


# ---- setting up -----------------------------------------------------------------------------------------------


def install(
    context: typer.Context,
    host: Known,
    scope: Scope = "user",
    settings_file: SettingsFile = None,
    servers_file: ServersFile = None,
    server: Server = "memoriter",
    no_mcp: Annotated[bool, typer.Option("--no-mcp", help="Hooks only, no MCP server.")] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Let a host use this memory: hooks and the MCP server in its settings. What is there stays."""
    from memoriter.cli.setup import set_up
    from memoriter.integrations.claude_code.install import Files
    from memoriter.integrations.claude_code.install import install as put

    settings = _settings(context.obj)
    files = Files.of(scope, settings_file, servers_file, with_server=not no_mcp)
    changes = put(settings.home, files, _places(context.obj, settings), server, dry_run=dry_run)
    if not dry_run:
        set_up(settings)
    _shown(host, changes, settings, "Installed", as_json=as_json, dry_run=dry_run)


def uninstall(
    context: typer.Context,
    host: Known,
    scope: Scope = "user",
    settings_file: SettingsFile = None,
    servers_file: ServersFile = None,
    server: Server = "memoriter",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Take out of a host's settings what `install` put there. The memory itself stays."""
    from memoriter.integrations.claude_code.install import Files
    from memoriter.integrations.claude_code.install import uninstall as take

    settings = _settings(context.obj)
    files = Files.of(scope, settings_file, servers_file, with_server=True)
    changes = take(settings.home, files, server, dry_run=dry_run)
    _shown(host, changes, settings, "Uninstalled", as_json=as_json, dry_run=dry_run)


def _settings(given: Globals) -> Settings:
    """As the hooks will see them: the current folder is a project's, and never taken for the workspace."""
    from memoriter.config import load

    named = {"workspace": given.workspace, "home": given.home}
    absolute = {name: path.expanduser().absolute() for name, path in named.items() if path}
    return load(config=_config(given), arguments={**given.arguments(), **absolute}, cwd=Path.home())


def _config(given: Globals) -> Path | None:
    return given.config.expanduser().absolute() if given.config else None


def _places(given: Globals, settings: Settings) -> dict[str, str]:
    """What the host must say for us to find the same memory: everything that is not in the owner's own file."""
    places = dict[str, str]()
    config = _config(given)
    if config:
        places["config"] = str(config)
    for name in ("home", "workspace", "agent"):
        origin = settings.origin(name)
        kept = origin == "default" and name != "workspace"
        if not kept and not origin.endswith((".yaml", ".yml")):
            places[name] = str(getattr(settings, name))
    return places


def _shown(
    host: str, changes: Sequence[Change], settings: Settings, word: str, *, as_json: bool, dry_run: bool
) -> None:
    from memoriter.cli import render

    if as_json:
        told = [
            {"path": str(one.path), "changed": one.is_any, "diff": one.diff() if dry_run else None}
            for one in changes
        ]
        render.to_json({"host": host, "dryRun": dry_run, "workspace": str(settings.workspace), "files": told})
        return
    for one in changes:
        if dry_run and one.is_any:
            sys.stdout.write(render.plain(one.diff()))
        else:
            said = "nothing to change" if not one.is_any else "removed" if one.after is None else "changed"
            sys.stdout.write(render.plain(f"{one.path}: {said}\n"))
    if not dry_run and word == "Installed":
        sys.stdout.write(render.plain(f"{word}: {host}, workspace {settings.workspace}\n"))
        if any(one.is_any for one in changes):
            sys.stdout.write(f"Copies of the files before: {settings.home / 'installed'}\n")
    elif not dry_run:  # which workspace it was, only those who installed it knew
        sys.stdout.write(f"{word}: {host}\n")


def spool(context: typer.Context, as_json: Json = False) -> None:
    """Hear the sessions that still wait to be heard."""
    from memoriter.agent import Agent
    from memoriter.cli import render
    from memoriter.integrations.claude_code.capture import drain, spool_of

    settings = context.obj.settings(**{"embedding.background": False})
    with Agent.open(settings, slot="memory-full") as host:
        host.service  # noqa: B018 - raises why there is no memory
        done = drain(host)
    waits = spool_of(settings)
    left = len(waits.waiting())
    if as_json:
        render.to_json({"done": done, "waiting": left})
    else:
        others = "; another process hears them now" if left and waits.is_drained() else ""
        sys.stdout.write(f"{done} done, {left} waiting{others}\n")


# ---- any host -------------------------------------------------------------------------------------------------


def recall(
    context: typer.Context,
    messages: Messages,
    session: Annotated[
        str | None, typer.Option(help="The session's id, for the ledger.", show_default=False)
    ] = None,
    tokens: Annotated[
        int | None, typer.Option(min=0, help="Most tokens of the block.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Print what is remembered about a conversation, as the block that is put before the agent."""
    given = {"messages": _messages(messages)[-RECENT:], "session": session, "tokens": tokens}
    result = _operation(context.obj, "recall", given)
    if as_json:
        from memoriter.cli import render

        render.to_json(result)
        return
    if result["degraded"]:
        sys.stderr.write(f"memoriter: {result['degraded']}\n")
    sys.stdout.write(f"{result['text']}\n" if result["text"] else "")


def capture(
    context: typer.Context,
    messages: Messages,
    session: Annotated[str, typer.Option(help="The session's id.")] = "main",
    as_json: Json = False,
) -> None:
    """Remember what the user's words in a conversation are worth; it may be sent whole each time."""
    from memoriter.cli import render

    said, result = _messages(messages), dict[str, Any](remembered=[])
    for first in range(0, len(said), AT_ONCE):
        given = {"messages": said[first : first + AT_ONCE], "session": session}
        result["remembered"] += _operation(context.obj, "capture", given)["remembered"]
    if as_json:
        render.to_json(result)
        return
    for one in result["remembered"]:
        text = one["memory"]["text"] if one.get("memory") else one.get("note") or ""
        sys.stdout.write(render.plain(f"{one['action']}: {text}\n"))
    if not result["remembered"]:
        sys.stdout.write("Nothing was worth remembering, or it was heard before.\n")


def _operation(given: Globals, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What the operation of this name gives, as on every other door; what goes wrong is raised."""
    from memoriter.errors import MemoriterError
    from memoriter.tools.table import call

    with given.memory() as memory:
        result = call(memory, name, {key: value for key, value in arguments.items() if value is not None})
    if result.get("error"):
        raise MemoriterError(str(result["error"]))
    return result


def _messages(place: str) -> list[dict[str, Any]]:
    """Messages as hosts write them: a JSON array, one object a line, or an object that holds a list of them."""
    from memoriter.errors import SourceError

    try:
        data = sys.stdin.buffer.read() if place == "-" else Path(place).expanduser().read_bytes()
        text = data.decode()
    except UnicodeDecodeError as error:
        raise SourceError(f"{place} is not UTF-8 text (byte {error.start}).") from error
    try:
        found = list(_parsed(text))
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{place} does not hold messages: {error}.") from error
    if not all(isinstance(one, dict) for one in found):
        raise SourceError(f"{place} does not hold messages: each is an object with role and content.")
    return found


def _parsed(text: str) -> Iterable[Any]:
    if text.lstrip()[:1] == "[":
        found = json.loads(text)
        return found if isinstance(found, list) else [found]
    pieces = text.split("\n") if _is_lines(text) else [text]
    lines = [json.loads(piece) for piece in pieces if piece.strip()]
    if len(lines) == 1 and isinstance(lines[0], dict) and isinstance(lines[0].get("messages"), list):
        return list(lines[0]["messages"])  # a request to a model, as it was sent
    return lines


def _is_lines(text: str) -> bool:
    try:
        json.loads(text.lstrip().split("\n", 1)[0])
    except ValueError:
        return False
    return True
