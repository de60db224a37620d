"""A memory that is larger than any person's: statements, for tests and figures."""

from __future__ import annotations

import time
from typing import Any, get_args

from memoriter.records import EntryType

TYPES = get_args(EntryType)
WORDS = (
    "harbour",
    "lantern",
    "quince",
    "ferry",
    "ledger",
    "cellar",
    "violin",
    "orchard",
    "compass",
    "kettle",
)


def statements(count: int, start: int = 0) -> list[dict[str, Any]]:
    """Return statements as `entries.import` reads them, each ten minutes older than the one before."""
    now = time.time()
    return [
        {
            "text": f"Statement {number} on the {WORDS[number % 10]} of house {number // 10}",
            "importance": 1 + number % 5,
            "tags": [WORDS[number % 7]],
            "created_at": now - number * 600,
        }
        for number in range(start, start + count)
    ]
