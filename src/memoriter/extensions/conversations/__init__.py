"""Commands for the messages of a conversation: `recall` and `capture`."""

from __future__ import annotations

from memoriter.extension import Extension, Offer

_COMMANDS = "memoriter.extensions.conversations.commands"

extension = Extension(
    name="conversations",
    commands={
        "recall": Offer(f"{_COMMANDS}:recall_command", group="Agents"),
        "capture": Offer(f"{_COMMANDS}:capture_command", group="Agents"),
    },
)
