"""Commands for conversations: `recall`, `capture` and `summarise`."""

from memoriter.extension import Extension, Offer

_COMMANDS = "memoriter.extensions.conversations.commands"

extension = Extension(
    name="conversations",
    commands={
        name: Offer(f"{_COMMANDS}:{name}_command", group="Agents")
        for name in ("recall", "capture", "summarise")
    },
)
