"""Copilot CLI: its hooks are a file of their own, and its events have other names than those of Claude Code."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from memoriter.extensions.clients.host import Client, ClientHookHost, Folder
from memoriter.extensions.clients.parts import FULL, HOOK_TIMEOUTS, JsonServer, OwnFile, hook_command

EVENTS = {
    "sessionStart": "SessionStart",
    "userPromptSubmitted": "UserPromptSubmit",
    "agentStop": "Stop",
    "sessionEnd": "SessionEnd",
}
_NAMES = {"sessionId": "session_id", "transcriptPath": "transcript_path"}
_FOLDER = Folder("$COPILOT_HOME")
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
            path = _FOLDER.find() / "session-state" / session / "events.jsonl"
            file = {"transcript_path": str(path)}
            if "reason" in sent or "stopReason" in sent:
                _wait_for(path, f'"timestamp":{sent.get("timestamp")}'.encode())
        return {**file, **{_NAMES.get(name, name): value for name, value in sent.items()}}

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


def hooks_file(command: Sequence[str]) -> str:
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
        for event, ours in EVENTS.items()
    }
    return json.dumps({"version": 1, "hooks": hooks}, indent=2, ensure_ascii=False) + "\n"


COPILOT_CLI = CopilotCli(
    Client(
        "copilot-cli",
        "Copilot CLI",
        _FOLDER,
        (
            OwnFile("hooks/memoriter.json", hooks_file),
            JsonServer("mcp-config.json", fields={"type": "local", "tools": ["*"]}, arguments=FULL),
        ),
        ("copilot",),
    )
)
