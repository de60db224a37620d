"""A folder elsewhere, kept in step with the notes of a memory: `exchange`, `memoriter pull` and `memoriter push`."""

from memoriter.extension import Extension, Offer

_COMMANDS = "memoriter.extensions.exchange.commands"

extension = Extension(
    name="exchange",
    commands={
        "pull": Offer(
            f"{_COMMANDS}:pull_command",
            group="Notes",
            summary="Copy notes that changed in the memory to a folder.",
        ),
        "push": Offer(
            f"{_COMMANDS}:push_command",
            group="Notes",
            summary="Copy notes that changed in a folder to the memory.",
        ),
    },
)
