"""What an agent should know before anything was asked: what holds always, and what belongs to the project at hand.

There is no question to compare with, so entries are weighed by what they are: their importance, whether they hold
whatever the work is, and whether they were learned in this project or in another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from recollect.records import Entry, EntryType, Part

IMPORTANCE = 0.6  #: weight of an entry's stars
LASTING = 0.2  #: of a preference or a habit, which hold in every project
HERE = 0.2  #: of what was learned in this project
LEAST = 0.5  #: below this an entry waits until it is asked for

ALWAYS: tuple[EntryType, ...] = ("user_preference", "workflow", "skill", "relationship")


def weighed(
    entries: Iterable[Entry], sessions: Collection[str]
) -> list[tuple[Entry, tuple[Part, ...], float]]:
    """The entries that matter, with the parts of their weight: heaviest first, newest first among equals.

    ``sessions`` are those of the project at hand. What was decided in another one may be wrong here, and is left out.
    """
    found = list[tuple[Entry, tuple[Part, ...], float]]()
    for entry in entries:
        always, here = entry.type in ALWAYS, entry.session is None or entry.session in sessions
        if not always and not here:
            continue
        parts = (
            Part("importance", entry.importance / 5, IMPORTANCE, IMPORTANCE * entry.importance / 5),
            Part("always", float(always), LASTING, LASTING * always, entry.type),
            Part("here", float(here), HERE, HERE * here),
        )
        score = sum(part.contribution for part in parts)
        if score >= LEAST:
            found.append((entry, parts, score))
    return sorted(found, key=lambda one: (-one[2], -one[0].updated_at))
