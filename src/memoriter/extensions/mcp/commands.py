"""The command `mcp`: it serves an MCP client, or prints the configuration of one, in the format of each."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from memoriter.cli.context import GlobalOptions
from memoriter.files.platform import command_line

Client = Literal[
    "claude-code",
    "claude-desktop",
    "cursor",
    "vscode",
    "gemini",
    "windsurf",
    "zed",
    "codex",
    "openclaw",
    "json",
]

LOCATIONS: dict[Client, str] = {
    "claude-code": "Claude Code: .mcp.json in the project, or run: {command}",
    "claude-desktop": "Claude Desktop: claude_desktop_config.json (Settings, Developer, Edit config).",
    "cursor": "Cursor: ~/.cursor/mcp.json, or .cursor/mcp.json in the project.",
    "vscode": "VS Code: .vscode/mcp.json in the project, or mcp.json of the user, or run: {command}",
    "gemini": "Gemini CLI: ~/.gemini/settings.json, or .gemini/settings.json in the project.",
    "windsurf": "Windsurf: ~/.codeium/windsurf/mcp_config.json.",
    "zed": "Zed: settings.json (zed: open settings file).",
    "codex": "Codex: ~/.codex/config.toml. With the line `required`, Codex waits for the memory before its first "
    "request. Without it, `codex exec` answers the first prompt without the tools.",
    "openclaw": "OpenClaw: ~/.openclaw/openclaw.json, or run: {command}",
    "json": "For any client that takes a command and arguments.",
}


def client_entry(client: Client, command: Sequence[str]) -> str:
    """Return the lines to copy into the settings of a client, as `install` writes them into a file."""
    from memoriter.extensions.clients.parts import JsonServer, Part, TomlServer

    parts: dict[Client, Part] = {
        # Codex otherwise starts without the tools of a server that is not ready.
        "codex": TomlServer("config.toml", ("required = true", "startup_timeout_sec = 60"), arguments=()),
        "json": JsonServer("", ("memoriter",), {"type": "stdio"}, arguments=()),
        "vscode": JsonServer("mcp.json", ("servers", "memoriter"), {"type": "stdio"}, arguments=()),
        "zed": JsonServer("settings.json", ("context_servers", "memoriter"), arguments=()),
        "openclaw": JsonServer("openclaw.json", ("mcp", "servers", "memoriter"), arguments=()),
    }
    return parts.get(client, JsonServer("mcp.json", arguments=())).add("", command).rstrip("\n")


def client_location(client: Client, command: Sequence[str]) -> str:
    """Return a sentence that says where the lines belong."""
    # Inside JSON, only some shells keep a backslash.
    program, *arguments = (word.replace(os.sep, "/") for word in command)
    # Without a scope, Claude Code knows the server only in the current folder.
    add = ["claude", "mcp", "add", "--scope", "user", "memoriter", "--", *command]
    if client == "openclaw":
        server = json.dumps({"command": program, "args": arguments}, ensure_ascii=False)
        add = ["openclaw", "mcp", "set", "memoriter", server]
    if client == "vscode":
        named = {"name": "memoriter", "type": "stdio", "command": program, "args": arguments}
        add = ["code", "--add-mcp", json.dumps(named, ensure_ascii=False)]
    return LOCATIONS[client].format(command=command_line(add))


MCP_EXAMPLES = (
    "Examples: memoriter --workspace ~/notes mcp --print-config claude-desktop · memoriter mcp --access read · "
    "claude mcp add --scope user memoriter -- memoriter --workspace ~/notes mcp"
)

mcp_command = typer.Typer(add_completion=False)


@mcp_command.command(epilog=MCP_EXAMPLES)
def mcp(
    context: typer.Context,
    access: Annotated[
        Literal["read", "write", "admin"],
        typer.Option(help="What the client may do: read, also write, or everything the owner may."),
    ] = "write",
    session: Annotated[str | None, typer.Option(help="Session key to check against `memory.scope`.")] = None,
    slot: Annotated[
        str | None,
        typer.Option(help="Memory plugin to use if the settings do not name one (default: memory-core)."),
    ] = None,
    print_config: Annotated[
        Client | None, typer.Option(help="Print the configuration for this client, ready to copy.")
    ] = None,
) -> None:
    """Serve the memory to an MCP client over standard I/O. For MCP over HTTP, use `memoriter serve`."""
    if print_config is not None:
        from memoriter.hosts import program

        options = {"--access": access if access != "write" else None, "--session": session, "--slot": slot}
        command = [*program(), *_absolute_options(context.obj), "mcp", *_flatten(options)]
        sys.stdout.write(client_entry(print_config, command) + "\n")
        sys.stderr.write(client_location(print_config, command) + "\n")
        return
    from memoriter.agent import ReloadingAgent
    from memoriter.extensions.mcp.server import serve as serve_stdio

    serve_stdio(ReloadingAgent(context.obj.settings, slot=slot), access=access, session=session)


def _absolute_options(options: GlobalOptions) -> list[str]:
    """Return the options before the command so that they work from any folder and in any environment."""
    settings = options.settings()
    home = settings.home if settings.origin("home") != "default" else None
    config = Path(options.config).expanduser().absolute() if options.config else None
    paths = {"--workspace": settings.workspace, "--home": home, "--config": config}
    return _flatten({name: str(path) for name, path in paths.items() if path} | {"--agent": options.agent})


def _flatten(options: Mapping[str, str | None]) -> list[str]:
    return [part for name, value in options.items() if value is not None for part in (name, value)]
