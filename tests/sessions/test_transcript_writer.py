"""Transcripts are read from the end, so the cost of a turn does not depend on the length of the conversation."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

from memoriter.sessions.transcript_writer import TranscriptWriter

SIZES = [
    10,
    70_000,
    3,
    65_500,
    200_000,
    1,
    30_000,
    40_000,
    2,
    600_000,
    5,
]  # sizes around the block that is read first


def message(number: int, size: int) -> dict[str, Any]:
    return {"role": "user", "content": f"{number} " + "é" * (size // 2)}


def test_the_last_items_are_returned_in_order(tmp_path: Path) -> None:
    journal = TranscriptWriter(tmp_path, "s")
    items = [message(number, size) for number, size in enumerate(SIZES)]
    journal.add(items)
    assert journal.items() == items
    for last in range(len(items) + 2):
        assert journal.items(last) == items[max(0, len(items) - last) :]
    with journal.path.open("ab") as file:
        file.write(b'not json\n"text"\n{"type": "message", "message": 1}\n' * 2_000 + b'{"type": "mess')
    assert journal.items(2) == items[-2:]
    assert [journal.pop() for _ in items] == items[::-1]
    assert (journal.pop(), journal.items(1), journal.items()) == (None, [], [])


def test_the_end_of_a_long_conversation_is_read_alone(tmp_path: Path) -> None:
    journal = TranscriptWriter(tmp_path, "s")
    journal.add([message(number, 1_000) for number in range(5_000)])
    tracemalloc.start()
    try:
        assert [item["content"][:4] for item in journal.items(2)] == ["4998", "4999"]
        assert str(journal.pop())[:30] == str(message(4_999, 0))[:30]
        journal.add([message(5_000, 10)])
        assert tracemalloc.get_traced_memory()[1] < 2_000_000  # of 5 MB
    finally:
        tracemalloc.stop()
