"""OpenCode: a plugin in JavaScript calls our hooks and sends the conversation, which OpenCode keeps in a database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files

from memoriter.extensions.clients.host import Client, ClientHookHost, Folder
from memoriter.extensions.clients.parts import FULL, JsonServer, OwnFile


class OpenCode(ClientHookHost):
    """Connects OpenCode."""

    tool_name = "{server}_{tool}"

    def add_context(self, event: str, text: str) -> dict[str, object]:
        del event
        return {"context": text}


def plugin_file(command: Sequence[str]) -> str:
    """Return the plugin, which calls this command."""
    text = files("memoriter.extensions.clients").joinpath("opencode_plugin.js").read_text("utf-8")
    return text.replace('["memoriter"]', json.dumps(list(command), ensure_ascii=False), 1)


OPENCODE = OpenCode(
    Client(
        "opencode",
        "OpenCode",
        Folder("$XDG_CONFIG_HOME/opencode"),
        (
            OwnFile("plugin/memoriter.js", plugin_file),
            JsonServer("opencode.json", ("mcp", "memoriter"), {"type": "local"}, FULL, is_list=True),
        ),
        ("opencode",),
        project=".opencode",
    )
)
