"""Gemini CLI: its hooks have other names than those of Claude Code, and its prompts contain what hooks added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memoriter.extensions.clients.host import Client, ClientHookHost, Folder
from memoriter.extensions.clients.parts import FULL, JsonHooks, JsonServer
from memoriter.text.blocks import without_blocks

#: Gemini CLI also has an event before it compresses a session, but sends it before every turn.
EVENTS = {
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
        return super().add_context(next(name for name, ours in EVENTS.items() if ours == event), text)


GEMINI_CLI = GeminiCli(
    Client(
        "gemini-cli",
        "Gemini CLI",
        Folder("$GEMINI_CLI_HOME/.gemini"),
        (
            JsonHooks("settings.json", "gemini-cli", EVENTS, timeout_unit=1000),
            JsonServer("settings.json", arguments=FULL),
        ),
        ("gemini",),
        project=".gemini",
    )
)
