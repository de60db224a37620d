"""Entries beside notes and sessions in one answer. How either was found is not decided here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recollect.entries.following import chunk_of
from recollect.entries.search import FoundEntries
from recollect.records import Answer, Entry, EntryHit, Hit, Trust

PREFIX = "entries/"  #: of the path that stands for an entry


def as_hit(found: EntryHit, *, cited: bool) -> Hit:
    """An entry as a hit among others: its path and citation name it, and lead nowhere on the disk."""
    entry = found.entry
    return Hit(
        path=f"{PREFIX}{entry.id}",
        start_line=1,
        end_line=1,
        score=found.score,
        snippet=entry.text,
        source="entries",
        citation=f"entry:{entry.id}" if cited else None,
        explain=found.explain,
        chunk_id=entry.id,
        date=chunk_of(entry).date,
        trust=trust_of(entry),
    )


def trust_of(entry: Entry) -> Trust:
    """Whose words an entry is made of; what the program itself has noted counts as an agent's."""
    return "agent" if entry.origin == "system" else entry.origin


def joined(answer: Answer, found: FoundEntries, limit: int) -> Answer:
    """One answer of both, best first."""
    entries = [as_hit(hit, cited=answer.citations) for hit in found.hits]
    hits: Sequence[Hit] = sorted([*answer.hits, *entries], key=lambda hit: -hit.score)
    degraded = " ".join(part for part in (answer.degraded, found.degraded) if part)
    return replace(answer, hits=tuple(hits[:limit]), degraded=degraded or None)
