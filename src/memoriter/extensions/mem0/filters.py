"""mem0's filters: entities, metadata and times, with AND, OR, NOT and comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memoriter.errors import BadArgument
from memoriter.extensions.mem0.spaces import KINDS, Entity

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, wanted: value == wanted,
    "ne": lambda value, wanted: value != wanted,
    "gt": lambda value, wanted: value is not None and value > wanted,
    "gte": lambda value, wanted: value is not None and value >= wanted,
    "lt": lambda value, wanted: value is not None and value < wanted,
    "lte": lambda value, wanted: value is not None and value <= wanted,
    "in": lambda value, wanted: value in wanted,
    "nin": lambda value, wanted: value not in wanted,
    "contains": lambda value, wanted: value is not None and wanted in value,
    "icontains": lambda value, wanted: value is not None and str(wanted).lower() in str(value).lower(),
}


def named_entities(filters: Mapping[str, Any]) -> list[Entity]:
    """Return the entities whose memories a filter can match: those of the first kind that it names."""
    named = list(_entities(filters))
    for kind in KINDS:
        found = [entity for entity in dict.fromkeys(named) if entity[0] == kind]
        if found:
            return found
    return []


def _entities(filters: Mapping[str, Any]) -> Iterator[Entity]:
    for key, wanted in filters.items():
        if key in ("AND", "OR"):
            for part in wanted:
                yield from _entities(part)
        elif key in KINDS:
            values = wanted.get("in", [wanted.get("eq")]) if isinstance(wanted, Mapping) else [wanted]
            yield from ((key, value) for value in values if isinstance(value, str) and value)


def admits(filters: Mapping[str, Any], memory: Mapping[str, Any]) -> bool:
    """Return whether a memory, as the API shows it, passes a filter."""
    return all(_passes(key, wanted, memory) for key, wanted in filters.items())


def _passes(key: str, wanted: Any, memory: Mapping[str, Any]) -> bool:
    if key in ("AND", "OR", "NOT"):
        parts = wanted if isinstance(wanted, list) else [wanted]
        results = [admits(part, memory) for part in parts]
        return {"AND": all(results), "OR": any(results), "NOT": not any(results)}[key]
    if key == "metadata" and isinstance(wanted, Mapping):
        return admits(wanted, memory.get("metadata") or {})
    value = memory.get(key) if key in memory else (memory.get("metadata") or {}).get(key)
    if wanted == "*":
        return value is not None
    if not isinstance(wanted, Mapping):
        return bool(value == wanted) or (isinstance(value, list) and wanted in value)
    if unknown := set(wanted) - set(COMPARE):
        raise BadArgument(f"Unknown operator {min(unknown)!r} in `filters`. Known: {', '.join(COMPARE)}.")
    try:
        return all(COMPARE[name](value, other) for name, other in wanted.items())
    except TypeError:
        return False
