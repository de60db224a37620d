"""What changed, by day, with deleted notes to restore; and the weekly letter of the memory: learned, changed, retired,
never used, what to forget.
"""

from __future__ import annotations

from memoriter.extension import Extension, Offer

extension = Extension(
    name="letter",
    commands={
        "letter": Offer(
            "memoriter.extensions.letter.commands:command",
            group="Entries",
            summary="Write the weekly letter: what was learned, changed and never used.",
        )
    },
    operations={
        "changes.list": Offer("memoriter.extensions.letter.operations:changes"),
        "letter.get": Offer("memoriter.extensions.letter.operations:letter"),
        "notes.remove": Offer("memoriter.extensions.letter.operations:remove"),
        "notes.restore": Offer("memoriter.extensions.letter.operations:restore"),
    },
    chores=("memoriter.extensions.letter.deleted:clean_up",),
)
