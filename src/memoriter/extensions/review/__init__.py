"""How the owner reviews what was learned, what entered prompts, and what waits for a decision."""

from __future__ import annotations

from memoriter.extension import Extension, Offer

_COMMANDS = "memoriter.extensions.review.commands"

extension = Extension(
    name="review",
    commands={
        **{
            name: Offer(f"{_COMMANDS}:{name}_command", group="Entries")
            for name in ("history", "staged", "approve", "reject")
        },
        "recalls": Offer(f"{_COMMANDS}:recalls_command", group="Agents"),
        "why": Offer(f"{_COMMANDS}:why_command", group="Agents"),
        "cleanup": Offer(f"{_COMMANDS}:cleanup_command", group="Maintenance"),
    },
    operations={
        "inbox.foresee": Offer("memoriter.extensions.review.inbox:foresee"),
        "inbox.proposals": Offer("memoriter.extensions.review.inbox:proposals"),
    },
)
