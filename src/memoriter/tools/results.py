"""The shapes of results, as JSON schemas: written once, used by every tool that answers in them.

A shape names every field that is always there as required, so that a door's client can rely on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
BOOLEAN: Schema = {"type": "boolean"}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
MAYBE_COUNT: Schema = {"type": ["integer", "null"], "minimum": 0}
DEGRADED: Schema = {"type": ["string", "null"], "description": "What the answer went without, in words."}
ANYTHING: Schema = {"type": "object"}


def shape(optional: tuple[str, ...] = (), /, **fields: Schema) -> Schema:
    """An object with these fields; all are always there but for those named as optional."""
    required = [name for name in fields if name not in optional]
    return {"type": "object", "properties": fields, "required": required}


def many(of: Schema) -> Schema:
    """A list of these."""
    return {"type": "array", "items": of}


def maybe(of: Schema) -> Schema:
    """This, or null."""
    return {"anyOf": [of, {"type": "null"}]}


def one_of(*choices: str) -> Schema:
    """One of these words."""
    return {"type": "string", "enum": list(choices)}


SOURCE = one_of("memory", "sessions", "entries")
TRUST = one_of("owner", "agent", "untrusted")
ORIGIN = one_of("owner", "agent", "untrusted", "system")
TYPES = (
    "user_preference",
    "project_context",
    "technical_decision",
    "workflow",
    "fact",
    "skill",
    "relationship",
    "other",
)

PART = shape(
    name={"type": "string", "description": "vector, keyword, context, date, importance, …"},
    value=NUMBER,
    weight=NUMBER,
    contribution={"type": "number", "description": "Its share of the score; all together are the score."},
    detail=TEXT,
)

HIT = shape(
    ("citation", "parts", "matched", "date", "chunkId"),
    path=TEXT,
    startLine=COUNT,
    endLine=COUNT,
    score=NUMBER,
    snippet=TEXT,
    source=SOURCE,
    trust=TRUST,
    citation=TEXT,
    parts=many(PART),
    matched=many(TEXT),
    date=MAYBE_TEXT,
    chunkId=TEXT,
)

_MEMORY: Mapping[str, Schema] = {
    "id": TEXT,
    "text": TEXT,
    "type": one_of(*TYPES),
    "importance": NUMBER,
    "confidence": NUMBER,
    "origin": ORIGIN,
    "session": MAYBE_TEXT,
    "createdAt": NUMBER,
    "expiresAt": MAYBE_NUMBER,
    "tags": many(TEXT),
}

MEMORY = shape(**_MEMORY)
"""An entry as agents know it."""

MEMORY_HIT = shape(**_MEMORY, score=NUMBER, similarity=NUMBER)

REMEMBERED: Mapping[str, Schema] = {
    "action": one_of("added", "repeated", "merged", "superseded", "staged", "refused"),
    "memory": maybe(MEMORY),
    "replaced": MAYBE_TEXT,
    "note": MAYBE_TEXT,
}

RECEIPT: Mapping[str, Schema] = {
    "forgotten": many(TEXT),
    "covered": many(TEXT),
    "notCovered": many(TEXT),
    "candidates": many(MEMORY_HIT),
}

SAVED: Mapping[str, Schema] = {
    "saved": BOOLEAN,
    "path": TEXT,
    "startLine": COUNT,
    "endLine": COUNT,
    "already": BOOLEAN,
    "note": MAYBE_TEXT,
}

EXCERPT: Mapping[str, Schema] = {
    "path": TEXT,
    "text": TEXT,
    "from": COUNT,
    "lines": COUNT,
    "totalLines": COUNT,
    "nextFrom": MAYBE_COUNT,
    "truncated": BOOLEAN,
    "trust": maybe(TRUST),
}

STATE = one_of("active", "staged", "superseded", "expired", "rejected", "forgotten")

ENTRY = shape(
    ("score",),
    **_MEMORY,
    state=STATE,
    category=MAYBE_TEXT,
    source=MAYBE_TEXT,
    updatedAt=NUMBER,
    validFrom=NUMBER,
    supersededBy=MAYBE_TEXT,
    lastAccessedAt=MAYBE_NUMBER,
    accessCount=COUNT,
    repetitions=COUNT,
    related=many(TEXT),
    seq={"type": "integer", "description": "The number of its newest change; hand it back as `ifSeq`."},
    score=NUMBER,
)
"""An entry as its owner sees it."""

EVENT = shape(
    seq=COUNT,
    at=NUMBER,
    kind=TEXT,
    entryId=TEXT,
    by=TEXT,
    note=TEXT,
    before=maybe(ENTRY),
    after=maybe(ENTRY),
)

RECALL = shape(
    id=TEXT,
    at=NUMBER,
    door=TEXT,
    session=MAYBE_TEXT,
    query={"type": "string", "description": "Empty when something of it was forgotten since."},
    characters=COUNT,
    tokens=COUNT,
    entered=COUNT,
    leftOut=COUNT,
)
