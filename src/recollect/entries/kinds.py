"""The kinds of entries: their types, how long each lasts, and the two scales of importance.

One table for both ways of speaking: eight types with importance 1–5, and five categories with importance 0–1. Inside
there are only types and 1–5.
"""

from __future__ import annotations

from typing import Literal, get_args

from recollect.errors import WriteError
from recollect.records import EntryType, Origin

DAY = 86_400.0

TYPES: tuple[EntryType, ...] = get_args(EntryType)
ORIGINS: tuple[Origin, ...] = get_args(Origin)
Category = Literal["preference", "decision", "entity", "fact", "other"]
CATEGORIES: tuple[Category, ...] = get_args(Category)

LIFETIME_DAYS: dict[EntryType, int] = {
    "user_preference": 3650,
    "project_context": 365,
    "technical_decision": 365,
    "workflow": 90,
    "fact": 365,
    "skill": 1825,
    "relationship": 730,
    "other": 90,
}

_TYPE_OF: dict[str, EntryType] = {
    "preference": "user_preference",
    "decision": "technical_decision",
    "entity": "relationship",
    "fact": "fact",
    "other": "other",
}
_CATEGORY_OF: dict[EntryType, Category] = {
    "user_preference": "preference",
    "project_context": "fact",
    "technical_decision": "decision",
    "workflow": "preference",
    "fact": "fact",
    "skill": "fact",
    "relationship": "entity",
    "other": "other",
}


def type_of(name: str) -> EntryType:
    """The type that a type's or a category's name means.

    >>> type_of("decision"), type_of("workflow")
    ('technical_decision', 'workflow')
    """
    if name in TYPES:
        return name
    if name in _TYPE_OF:
        return _TYPE_OF[name]
    raise WriteError(f"there is no type {name!r}; choose one of {', '.join((*TYPES, *CATEGORIES[:3]))}")


def category_of(type_: EntryType) -> Category:
    """The category that a type belongs to."""
    return _CATEGORY_OF[type_]


def expiry(type_: EntryType, importance: float, at: float) -> float | None:
    """When an entry of this type and importance expires, counted from ``at``; the most important ones never do."""
    return None if importance >= 5 else at + LIFETIME_DAYS[type_] * DAY


def from_share(share: float) -> float:
    """Importance 1–5 from the scale 0–1.

    >>> from_share(0.7), to_share(from_share(0.7))
    (3.8, 0.7)
    """
    return round(1 + 4 * min(1.0, max(0.0, share)), 4)


def to_share(importance: float) -> float:
    """Importance on the scale 0–1."""
    return round((min(5.0, max(1.0, importance)) - 1) / 4, 4)


def clamped(importance: float) -> float:
    """Importance within 1–5."""
    return min(5.0, max(1.0, float(importance)))
