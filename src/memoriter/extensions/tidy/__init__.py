"""Keeping entries true and short: `memoriter tidy` changes them, with one undo for each run; `memoriter audit` reads.

Notes and transcripts of people are never changed. The resident process tidies once a day when it is idle, unless
`tidy.nightly` is off.
"""

from memoriter.extension import Extension, Offer

_COMMANDS = "memoriter.extensions.tidy.commands"

extension = Extension(
    name="tidy",
    commands={
        "tidy": Offer(
            f"{_COMMANDS}:tidy_command",
            group="Maintenance",
            summary="Join duplicates and retire what is out of date.",
        ),
        "audit": Offer(
            f"{_COMMANDS}:audit_command",
            group="Maintenance",
            summary="List junk, duplicates, contradictions and secrets.",
        ),
    },
    chores=("memoriter.extensions.tidy.running:nightly",),
    settings={"tidy": "memoriter.extensions.tidy.settings:TidySettings"},
)
