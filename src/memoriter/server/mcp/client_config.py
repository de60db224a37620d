"""What a client's settings must say to start our server: the command, and the entry in each client's own form."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

Client = Literal["claude", "cursor", "codex", "openclaw", "json"]

PLACES: dict[Client, str] = {
    "claude": "Claude Desktop: claude_desktop_config.json (Settings, Developer, Edit config). Claude Code: .mcp.json "
    "in the project, or at once: {command}",
    "cursor": "Cursor: ~/.cursor/mcp.json, or .cursor/mcp.json in the project.",
    "codex": "Codex: ~/.codex/config.toml. It waits for the memory before its first request; without the line "
    "`required` it does not, and answers the first prompt of `codex exec` without the tools.",
    "openclaw": "OpenClaw: ~/.openclaw/openclaw.json, or at once: {command}",
    "json": "For every client that takes a command and arguments.",
}


def command(before: Sequence[str] = (), after: Sequence[str] = ()) -> list[str]:
    """The command that starts the server from anywhere, with options before and after the word `mcp`."""
    found = shutil.which("memoriter", path=str(Path(sys.executable).parent)) or shutil.which("memoriter")
    own = [found] if found else [sys.executable, "-m", "memoriter"]
    return [*own, *before, "mcp", *after]


def entry(client: Client, started: Sequence[str]) -> str:
    """The lines to copy into the client's settings."""
    program, *arguments = started
    if client == "codex":
        return _toml(program, arguments)
    server = {"command": program, "args": arguments}
    forms: dict[str, dict[str, object]] = {
        "json": {"memoriter": {"type": "stdio", **server}},
        "openclaw": {"mcp": {"servers": {"memoriter": server}}},
    }
    return json.dumps(forms.get(client, {"mcpServers": {"memoriter": server}}), indent=2, ensure_ascii=False)


def _toml(program: str, arguments: Sequence[str]) -> str:
    """Codex does not wait for a server that is not required, and asks its model without the tools meanwhile."""
    command, *listed = (json.dumps(one, ensure_ascii=False) for one in (program, *arguments))
    return "\n".join(
        (
            "[mcp_servers.memoriter]",
            f"command = {command}",
            f"args = [{', '.join(listed)}]",
            "required = true",
            "startup_timeout_sec = 60",
        )
    )


def place(client: Client, started: Sequence[str]) -> str:
    """Where the lines belong."""
    import shlex

    # Without the scope Claude Code knows the server only in the folder in which this was typed.
    at_once = ["claude", "mcp", "add", "--scope", "user", "memoriter", "--", *started]
    if client == "openclaw":
        server = json.dumps({"command": started[0], "args": list(started[1:])}, ensure_ascii=False)
        at_once = ["openclaw", "mcp", "set", "memoriter", server]
    return PLACES[client].format(command=shlex.join(at_once))
