"""The configuration of MCP clients: the command that starts the server, in the format of each client."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

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


def server_command(before: Sequence[str] = (), after: Sequence[str] = ()) -> list[str]:
    """Return the command that starts the server, with options before and after the word `mcp`."""
    script = shutil.which("memoriter", path=str(Path(sys.executable).parent)) or shutil.which("memoriter")
    program = [script] if script else [sys.executable, "-m", "memoriter"]
    return [*program, *before, "mcp", *after]


def client_entry(client: Client, command: Sequence[str]) -> str:
    """Return the lines to copy into the settings of a client."""
    program, *arguments = command
    if client == "codex":
        return _toml(program, arguments)
    server = {"command": program, "args": arguments}
    formats: dict[str, dict[str, object]] = {
        "json": {"memoriter": {"type": "stdio", **server}},
        "vscode": {"servers": {"memoriter": {"type": "stdio", **server}}},
        "zed": {"context_servers": {"memoriter": {**server, "env": {}}}},
        "openclaw": {"mcp": {"servers": {"memoriter": server}}},
    }
    return json.dumps(
        formats.get(client, {"mcpServers": {"memoriter": server}}), indent=2, ensure_ascii=False
    )


def _toml(program: str, arguments: Sequence[str]) -> str:
    """Mark the server as required, because Codex otherwise starts without its tools."""
    command, *listed = (json.dumps(word, ensure_ascii=False) for word in (program, *arguments))
    return "\n".join(
        (
            "[mcp_servers.memoriter]",
            f"command = {command}",
            f"args = [{', '.join(listed)}]",
            "required = true",
            "startup_timeout_sec = 60",
        )
    )


def client_location(client: Client, command: Sequence[str]) -> str:
    """Return a sentence that says where the lines belong."""
    # Without a scope, Claude Code knows the server only in the current folder.
    add = ["claude", "mcp", "add", "--scope", "user", "memoriter", "--", *command]
    if client == "openclaw":
        server = json.dumps({"command": command[0], "args": list(command[1:])}, ensure_ascii=False)
        add = ["openclaw", "mcp", "set", "memoriter", server]
    if client == "vscode":
        named = {"name": "memoriter", "type": "stdio", "command": command[0], "args": list(command[1:])}
        add = ["code", "--add-mcp", json.dumps(named, ensure_ascii=False)]
    return LOCATIONS[client].format(command=shlex.join(add))
