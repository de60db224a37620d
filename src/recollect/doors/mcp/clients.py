"""What a client's settings must say to start our server: the command, and the entry in each client's own form."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

Client = Literal["claude", "cursor", "codex", "json"]

PLACES: dict[Client, str] = {
    "claude": "Claude Desktop: claude_desktop_config.json (Settings, Developer, Edit config). Claude Code: .mcp.json "
    "in the project, or at once: {command}",
    "cursor": "Cursor: ~/.cursor/mcp.json, or .cursor/mcp.json in the project.",
    "codex": "Codex: ~/.codex/config.toml.",
    "json": "For every client that takes a command and arguments.",
}


def command(before: Sequence[str] = (), after: Sequence[str] = ()) -> list[str]:
    """The command that starts the server from anywhere, with options before and after the word `mcp`."""
    found = shutil.which("recollect", path=str(Path(sys.executable).parent)) or shutil.which("recollect")
    own = [found] if found else [sys.executable, "-m", "recollect"]
    return [*own, *before, "mcp", *after]


def entry(client: Client, started: Sequence[str]) -> str:
    """The lines to copy into the client's settings."""
    program, *arguments = started
    if client == "codex":
        listed = ", ".join(json.dumps(one, ensure_ascii=False) for one in arguments)
        return f"[mcp_servers.recollect]\ncommand = {json.dumps(program)}\nargs = [{listed}]"
    server = {"command": program, "args": arguments}
    held = {"recollect": {"type": "stdio", **server}} if client == "json" else {"recollect": server}
    return json.dumps(held if client == "json" else {"mcpServers": held}, indent=2, ensure_ascii=False)


def place(client: Client, started: Sequence[str]) -> str:
    """Where the lines belong."""
    import shlex

    return PLACES[client].format(command=f"claude mcp add recollect -- {shlex.join(started)}")
