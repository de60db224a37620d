"""Entries of any age, for the tests of `memoriter tidy`."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from memoriter import Memory
from memoriter.records import Entry, EntryEvent

NOW = datetime.now().astimezone()


def days_ago(days: float) -> float:
    return (NOW - timedelta(days)).timestamp()


def entry(number: int, text: str, *, days: float = 1.0, **fields: Any) -> Entry:
    """Return an entry that was learned some days ago."""
    at = days_ago(days)
    values = {"created_at": at, "updated_at": at, "valid_from": at, **fields}
    return Entry(str(uuid.UUID(int=number << 96)), text, **values)


def arrive(memory: Memory, *entries: Entry, said: Iterable[float] = ()) -> None:
    """Put entries into a memory as an older release has left them: uncompared, and said again some days ago."""
    lines = []
    for one in entries:
        events = [EntryEvent(1, 1, one.created_at, "add", one.id, "owner", "", None, one)]
        for number, days in enumerate(said, 2):
            again = replace(one, updated_at=days_ago(days))
            event = EntryEvent(
                number, number, days_ago(days), "repeat", one.id, "capture", "", events[-1].after, again
            )
            events.append(event)
        final = replace(events[-1].after or one, repetitions=max(one.repetitions, len(events)))
        line = {"entry": asdict(final), "history": [asdict(event) for event in events]}
        lines.append(json.dumps(line, ensure_ascii=False))
    memory.entries.import_("\n".join(['{"format": "memoriter entries 1"}', *lines]))
