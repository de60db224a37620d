"""Everything about one thing: a person, a place, a project, a topic; and the recall that a sentence came from.

Things are found without a model. `memory.about(name)` gathers entries, lines of notes and conversations, and recalls.
"""

from __future__ import annotations

from memoriter.extension import Extension, Offer

_OPERATIONS = "memoriter.extensions.about.operations"

extension = Extension(
    name="about",
    commands={
        "about": Offer(
            "memoriter.extensions.about.commands:command",
            group="Entries",
            summary="Show everything about one thing.",
        )
    },
    operations={
        name: Offer(f"{_OPERATIONS}:{code}")
        for name, code in (
            ("about.get", "get"),
            ("about.list", "things"),
            ("about.change", "change"),
            ("about.undo", "undo"),
            ("recalls.why", "why"),
        )
    },
    methods={"about": "memoriter.extensions.about.gathering:about"},
)
