"""The table of hosts: for each, where its settings are, what belongs into them, and what its hooks call differently."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from memoriter.extensions.clients.host import ClientHookHost, ClientHost, Folder
from memoriter.extensions.clients.parts import (
    FULL,
    HOOK_TIMEOUTS,
    JsonHooks,
    JsonServer,
    OwnFile,
    TomlServer,
    hook_command,
)
from memoriter.text.blocks import without_blocks

CLAUDE_EVENTS = {
    name: name for name in ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd")
}

CODEX = ClientHookHost(
    "codex",
    "Codex",
    Folder("$CODEX_HOME"),
    (
        JsonHooks("hooks.json", "codex", CLAUDE_EVENTS),
        TomlServer("config.toml", ("startup_timeout_sec = 60",), FULL),
    ),
    ("codex",),
    project=".codex",
    next_step="Codex runs hooks only after you have trusted them: start codex, enter /hooks and trust them.",
)
CLAUDE_DESKTOP = ClientHost(
    "claude-desktop",
    "Claude Desktop",
    Folder("$XDG_CONFIG_HOME/Claude", "$APPDATA/Claude", "~/Library/Application Support/Claude"),
    (JsonServer("claude_desktop_config.json"),),
    ("claude-desktop",),
    next_step="Restart Claude Desktop.",
)
CURSOR = ClientHost(
    "cursor", "Cursor", Folder("~/.cursor"), (JsonServer("mcp.json"),), ("cursor",), project=".cursor"
)
VSCODE = ClientHost(
    "vscode",
    "VS Code",
    Folder("$XDG_CONFIG_HOME/Code/User", "$APPDATA/Code/User", "~/Library/Application Support/Code/User"),
    (JsonServer("mcp.json", ("servers", "memoriter"), {"type": "stdio"}),),
    ("code",),
    project=".vscode",
)
WINDSURF = ClientHost(
    "windsurf", "Windsurf", Folder("~/.codeium/windsurf"), (JsonServer("mcp_config.json"),), ("windsurf",)
)
ZED = ClientHost(
    "zed",
    "Zed",
    Folder("$XDG_CONFIG_HOME/zed", "$APPDATA/Zed", "~/.config/zed"),
    (JsonServer("settings.json", ("context_servers", "memoriter")),),
    ("zed", "zeditor"),
    project=".zed",
)

# ---- Copilot CLI --------------------------------------------------------------------------------------------------

COPILOT_EVENTS = {
    "sessionStart": "SessionStart",
    "userPromptSubmitted": "UserPromptSubmit",
    "agentStop": "Stop",
    "sessionEnd": "SessionEnd",
}
_COPILOT_NAMES = {"sessionId": "session_id", "transcriptPath": "transcript_path"}
_COPILOT = Folder("$COPILOT_HOME")
#: The longest wait for the end of a transcript, and how much of it is read for that.
WRITTEN_S, TAIL_BYTES = 1.0, 1 << 18
_SESSION = re.compile(r"[\w-]+")


class CopilotCli(ClientHookHost):
    """Connects Copilot CLI."""

    tool_name = "{server}-{tool}"

    def read_fields(self, sent: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields by the names of Claude Code. The end of a session does not name its transcript."""
        session = sent.get("sessionId")
        file: dict[str, str] = {}
        if isinstance(session, str) and _SESSION.fullmatch(session):
            path = _COPILOT.find() / "session-state" / session / "events.jsonl"
            file = {"transcript_path": str(path)}
            if "reason" in sent or "stopReason" in sent:
                _wait_for(path, f'"timestamp":{sent.get("timestamp")}'.encode())
        return {**file, **{_COPILOT_NAMES.get(name, name): value for name, value in sent.items()}}

    def add_context(self, event: str, text: str) -> dict[str, object]:
        del event
        return {"additionalContext": text}


def _wait_for(transcript: Path, event: bytes) -> None:
    """Wait until the transcript has the event that was sent. Copilot CLI writes its last messages while a hook runs."""
    until = time.monotonic() + WRITTEN_S
    while time.monotonic() < until:
        with suppress(OSError), transcript.open("rb") as file:
            file.seek(max(0, transcript.stat().st_size - TAIL_BYTES))
            if event in file.read():
                return
        time.sleep(0.02)


def copilot_hooks(command: Sequence[str]) -> str:
    """Return the file with our hooks."""
    hooks = {
        event: [
            {
                "type": "command",
                "bash": hook_command(command, "copilot-cli", ours),
                "powershell": hook_command(command, "copilot-cli", ours, in_powershell=True),
                "timeoutSec": HOOK_TIMEOUTS[ours],
            }
        ]
        for event, ours in COPILOT_EVENTS.items()
    }
    return json.dumps({"version": 1, "hooks": hooks}, indent=2, ensure_ascii=False) + "\n"


COPILOT_CLI = CopilotCli(
    "copilot-cli",
    "Copilot CLI",
    _COPILOT,
    (
        OwnFile("hooks/memoriter.json", copilot_hooks),
        JsonServer("mcp-config.json", fields={"type": "local", "tools": ["*"]}, arguments=FULL),
    ),
    ("copilot",),
)

# ---- Gemini CLI ---------------------------------------------------------------------------------------------------

#: Gemini CLI also has an event before it compresses a session, but sends it before every turn.
GEMINI_EVENTS = {
    "SessionStart": "SessionStart",
    "BeforeAgent": "UserPromptSubmit",
    "AfterAgent": "Stop",
    "SessionEnd": "SessionEnd",
}


class GeminiCli(ClientHookHost):
    """Connects Gemini CLI."""

    tool_name = "mcp_{server}_{tool}"

    def read_fields(self, sent: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields without the text that a hook has put before the prompt."""
        prompt = sent.get("prompt")
        return {**sent, "prompt": without_blocks(prompt).strip()} if isinstance(prompt, str) else sent

    def add_context(self, event: str, text: str) -> dict[str, object]:
        """Return the answer under the name that Gemini CLI has for the event."""
        return super().add_context(next(name for name, ours in GEMINI_EVENTS.items() if ours == event), text)


GEMINI_CLI = GeminiCli(
    "gemini-cli",
    "Gemini CLI",
    Folder("$GEMINI_CLI_HOME/.gemini"),
    (
        JsonHooks("settings.json", "gemini-cli", GEMINI_EVENTS, timeout_unit=1000),
        JsonServer("settings.json", arguments=FULL),
    ),
    ("gemini",),
    project=".gemini",
)

# ---- OpenCode -----------------------------------------------------------------------------------------------------


class OpenCode(ClientHookHost):
    """Connects OpenCode."""

    tool_name = "{server}_{tool}"

    def add_context(self, event: str, text: str) -> dict[str, object]:
        del event
        return {"context": text}


def opencode_plugin(command: Sequence[str]) -> str:
    """Return the plugin, which calls this command."""
    text = files("memoriter.extensions.clients").joinpath("opencode_plugin.js").read_text("utf-8")
    return text.replace('["memoriter"]', json.dumps(list(command), ensure_ascii=False), 1)


OPENCODE = OpenCode(
    "opencode",
    "OpenCode",
    Folder("$XDG_CONFIG_HOME/opencode"),
    (
        OwnFile("plugin/memoriter.js", opencode_plugin),
        JsonServer("opencode.json", ("mcp", "memoriter"), {"type": "local"}, FULL, is_list=True),
    ),
    ("opencode",),
    project=".opencode",
)
