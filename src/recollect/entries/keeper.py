"""The keeper of what was learned: remembers, finds, changes and takes back. One object for every door.

How two statements relate is `merge`'s duty, how long one lasts `lifecycle`'s, how all trace of one goes `erase`'s.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict, Unpack

from recollect.entries import exchange, history
from recollect.entries.drafts import Draft
from recollect.entries.following import Following
from recollect.entries.kinds import TYPES, expiry, type_of
from recollect.entries.search import EntrySearch, FoundEntries, Mode
from recollect.errors import WriteError
from recollect.records import Entry, Event, Imported, Origin, Remembered
from recollect.store.entries import IN_FORCE, Edit, Entries
from recollect.store.entry_rows import EntryFilter

if TYPE_CHECKING:
    from recollect.embedding import Cached, Embedder
    from recollect.store.index import Index


@dataclass(frozen=True, slots=True)
class Ways:
    """How the keeper behaves; the defaults are those of the settings."""

    threshold: float = 0.6


class DraftFields(TypedDict, total=False):
    """What may be said of a statement beside its text and type."""

    category: str | None
    importance: float
    confidence: float
    origin: Origin
    session: str | None
    source: str | None
    tags: tuple[str, ...]


class Keeper:
    """What one agent has learned."""

    def __init__(
        self,
        entries: Entries,
        index: Index,
        embedder: Embedder | None = None,
        cached: Cached | None = None,
        ways: Ways | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.entries = entries
        self.index = index
        self.ways = ways or Ways()
        self.clock = clock
        self.following = Following(entries, index, cached)
        self.searching = EntrySearch(self.following, embedder, clock=clock)

    # ---- remembering -----------------------------------------------------------------------------------------

    def remember(self, draft: Draft, *, by: str = "owner") -> Remembered:
        """Keep a statement, unless it is kept already; on the disk when this returns."""
        begun = self.entries.seq()
        draft = draft.cleaned()
        with self.entries.transaction():
            if refusal := self._refusal(draft, begun):
                return Remembered(None, "refused", note=refusal)
            at = self.clock()
            same = [one for one in self.entries.same_text(draft.text) if one.state == "active"]
            if same:
                return self._repeat(same[0], draft, at, by)
            (entry,) = self.entries.apply([Edit("add", draft.entry(at))], at=at, by=by)
        return Remembered(entry, "added")

    def add(self, text: str, type_: str = "other", **fields: Unpack[DraftFields]) -> Remembered:
        """Keep a statement that somebody wants kept."""
        return self.remember(Draft(text, type_of(type_), **fields), by=fields.get("origin", "owner"))

    def _refusal(self, draft: Draft, begun: int) -> str | None:
        """Why a forgotten text stays forgotten; saying it again on purpose, later, lifts that."""
        buried = self.entries.buried_at(draft.text)
        if buried is None:
            return None
        if draft.on_purpose and buried <= begun:
            self.entries.exhume(draft.text)
            return None
        return "this was forgotten on request, and is not taken in again by itself"

    def _repeat(self, entry: Entry, draft: Draft, at: float, by: str) -> Remembered:
        again = replace(
            entry,
            repetitions=entry.repetitions + 1,
            importance=max(entry.importance, draft.importance),
            confidence=max(entry.confidence, draft.confidence),
            tags=tuple(dict.fromkeys((*entry.tags, *draft.tags))),
            updated_at=at,
        )
        again = replace(again, expires_at=expiry(again.type, again.importance, at))
        (entry,) = self.entries.apply([Edit("repeat", again, entry)], at=at, by=by)
        return Remembered(entry, "repeated")

    def update(self, entry_id: str, changes: Mapping[str, object], *, by: str = "owner") -> Entry:
        """Change what an entry says or how it is kept; what it was stays in its history."""
        allowed = {"text", "type", "category", "importance", "confidence", "tags", "expires_at"}
        if unknown := set(changes) - allowed:
            raise WriteError(
                f"{', '.join(sorted(unknown))} cannot be changed; {', '.join(sorted(allowed))} can"
            )
        with self.entries.transaction():
            entry = self.entries.get(entry_id)
            changed = replace(entry, **changes, updated_at=self.clock())  # type: ignore[arg-type]
            cleaned = Draft(
                changed.text,
                changed.type,
                importance=changed.importance,
                confidence=changed.confidence,
                tags=changed.tags,
            ).cleaned()
            changed = replace(
                changed,
                text=cleaned.text,
                type=cleaned.type,
                importance=cleaned.importance,
                confidence=cleaned.confidence,
                tags=cleaned.tags,
            )
            (made,) = self.entries.apply([Edit("update", changed, entry)], at=changed.updated_at, by=by)
        return made

    # ---- finding ---------------------------------------------------------------------------------------------

    def get(self, entry_id: str) -> Entry:
        """The entry of this id; the beginning of an id is enough when only one begins so."""
        return self.entries.get(self.entries.complete_id(entry_id))

    def find(self, where: EntryFilter = IN_FORCE, limit: int | None = None) -> list[Entry]:
        """The entries that the filter admits, newest first; expired ones are hidden."""
        return self.entries.find(replace(where, now=self.clock()) if where.now is None else where, limit)

    def listed(
        self,
        type_: str | None,
        *,
        tags: Sequence[str] = (),
        everything: bool = False,
        limit: int | None = None,
    ) -> list[Entry]:
        """The entries of one type or of all, newest first; ``everything``: also those no longer in force."""
        types = (type_of(type_),) if type_ else ()
        where = EntryFilter(types=types, tags=tuple(tags), states=() if everything else ("active",))
        return self.entries.find(where, limit) if everything else self.find(where, limit)

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        threshold: float | None = None,
        mode: Mode = "hybrid",
        where: EntryFilter = IN_FORCE,
    ) -> FoundEntries:
        """The entries that answer a query, best first."""
        floor = self.ways.threshold if threshold is None else threshold
        return self.searching.search(query, limit=limit, threshold=floor, mode=mode, where=where)

    # ---- history ---------------------------------------------------------------------------------------------

    def history(self, entry_id: str) -> list[Event]:
        """Everything that happened to an entry, oldest first."""
        return self.entries.history(self.entries.complete_id(entry_id))

    def undo(
        self, entry_id: str | None = None, *, by: str = "owner"
    ) -> tuple[list[Event], tuple[Entry, ...]]:
        """Take back the newest change, of one entry or of all."""
        whole = self.entries.complete_id(entry_id) if entry_id else None
        return history.undo(self.entries, entry_id=whole, at=self.clock(), by=by)

    # ---- out and in ------------------------------------------------------------------------------------------

    def export(self, type_: str | None = None) -> Iterator[str]:
        """Every entry with its history, one JSON object a line."""
        where = EntryFilter(types=(type_of(type_),) if type_ else (), states=())
        return exchange.export_lines(self.entries, where)

    def take_in(self, text: str, *, by: str = "owner") -> Imported:
        """Import what another export holds: all of it or nothing."""
        lines = exchange.parse_lines(text.split("\n"))
        return exchange.import_lines(self.entries, lines, at=self.clock(), by=by)

    def stats(self) -> dict[str, object]:
        """Counts, averages and times of the entries in force."""
        entries = self.find()
        count = len(entries)
        by_type = {type_: sum(entry.type == type_ for entry in entries) for type_ in TYPES}
        return {
            "total": count,
            "by_type": {type_: number for type_, number in by_type.items() if number},
            "average_importance": round(sum(e.importance for e in entries) / count, 2) if count else None,
            "average_confidence": round(sum(e.confidence for e in entries) / count, 2) if count else None,
            "oldest": min((e.created_at for e in entries), default=None),
            "newest": max((e.created_at for e in entries), default=None),
        }

    def close(self) -> None:
        """Give back files."""
        self.index.close()
        self.entries.close()
