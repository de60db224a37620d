"""A memory that is larger than any person's: statements and the points of a map, for tests and figures."""

from __future__ import annotations

import time
from typing import Any, get_args

from memoriter.records import EntryType
from memoriter.server.http.responses import encode_json

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


def map_of(count: int) -> bytes:
    """Return the body of a map of many points, which the gateway would need minutes to embed."""
    now = time.time()
    points = [
        {
            "id": f"00000000-0000-4000-8000-{number:012}",
            "x": (number * 7919 % 50_021) / 25_010.5 - 1,
            "y": (number * 104_729 % 50_023) / 25_011.5 - 1,
            "type": TYPES[number % len(TYPES)],
            "importance": 1 + number % 5,
            "text": f"Statement {number} about the harbour and its ferries",
            "createdAt": now - number * 600,
            "accessCount": number % 30,
        }
        for number in range(count)
    ]
    regions = [
        {"name": f"{word} and {WORDS[place - 1]}", "x": place % 4 / 2 - 0.75, "y": place // 4 / 2 - 0.5}
        for place, word in enumerate(WORDS)
    ]
    rest = {"regions": regions, "total": count, "method": "pca", "generation": 1, "degraded": None}
    return encode_json({"points": points, **rest})
