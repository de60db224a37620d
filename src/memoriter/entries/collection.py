"""The keeper of what was learned: remembers, finds, changes and takes back. One object for every door.

How two statements relate is `merge`'s duty, how long one lasts `lifecycle`'s, how all trace of one goes `erase`'s.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from memoriter.entries import capture, editing, exchange, merge
from memoriter.entries.capture import Limits, Said
from memoriter.entries.drafts import TYPES, Draft, type_of
from memoriter.entries.editing import Editing
from memoriter.entries.erase import MAYBE, OFFERED, Elsewhere, Eraser, everything, surely
from memoriter.entries.lifecycle import Lifecycle, Upkeep
from memoriter.entries.listing import Listing
from memoriter.entries.map import Maps
from memoriter.entries.search import EntrySearch, FoundEntries, Mode
from memoriter.entries.staging import Approval, Staging
from memoriter.errors import EditConflict, WriteError
from memoriter.index.follow import Follower
from memoriter.records import CleanedUp, Entry, Event, Imported, Origin, Receipt, Remembered
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.entry_store import IN_FORCE, EntryStore
from memoriter.store.index import open_index

if TYPE_CHECKING:
    from memoriter.embedding import Batched, Embedder
    from memoriter.embedding.protocol import Matrix
    from memoriter.store.index import Index


RETRIES = 5  #: of a judgement that others' changes have overtaken


@dataclass(frozen=True, slots=True)
class EntryOptions:
    """How the keeper behaves; the defaults are those of the settings."""

    threshold: float = 0.3
    approval: Approval = "none"
    upkeep: Upkeep = field(default_factory=Upkeep)
    capture: Limits = field(default_factory=Limits)


class DraftFields(TypedDict, total=False):
    """What may be said of a statement beside its text and type."""

    category: str | None
    importance: float
    confidence: float
    origin: Origin
    session: str | None
    source: str | None
    tags: tuple[str, ...]


class Entries:
    """What one agent has learned."""

    def __init__(
        self,
        entries: EntryStore,
        index: Index,
        embedder: Embedder | None = None,
        batched: Batched | None = None,
        ways: EntryOptions | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.entries = entries
        self.index = index
        self.ways = ways or EntryOptions()
        self.clock = clock
        self._turns = threading.Lock()
        self.following = Follower(entries, index, batched)
        self.searching = EntrySearch(self.following, embedder, clock=clock)
        self.pictures = Maps(self.following, clock)
        self.eraser = Eraser(entries, self.following, clock, self.pictures.forget)
        self.lifecycle = Lifecycle(entries, self.eraser, self.ways.upkeep, clock)
        self.editing = Editing(entries, clock)
        self.staging = Staging(entries, self.following, self.ways.approval, self._judged, clock)
        self.listing = Listing(entries, self.searching, self.ways.threshold, clock)
        if self.eraser.pending():
            self.eraser.complete()

    # ---- remembering -----------------------------------------------------------------------------------------

    def remember(self, draft: Draft, *, by: str = "owner", replaces: str | None = None) -> Remembered:
        """Keep a statement beside what is known already; on the disk when this returns.

        ``replaces``: the entry that it ends, where the caller knows; trust is respected all the same.
        """
        draft = draft.cleaned()
        self.lifecycle.when_due()
        begun = self.entries.seq()
        if self.staging.waits(draft):
            return self.staging.stage(draft, begun, by=by, replaces=replaces)
        with self._turns:  # threads judge one after another, so that only other processes can overtake them
            for _ in range(RETRIES):
                with contextlib.suppress(EditConflict):
                    return self._try(draft, begun, by, replaces)
            with self.entries.transaction():  # who holds the store is overtaken by nobody
                return self._try(draft, begun, by, replaces)

    def _try(self, draft: Draft, begun: int, by: str, replaces: str | None) -> Remembered:
        """Judge, then write, unless somebody has changed meanwhile what the judgement rests on."""
        seen = self.entries.seq()
        verdict, vector = self._judged(draft, replaces)
        with self.entries.transaction():
            if refusal := self._refusal(draft, begun):
                return Remembered(None, "refused", note=refusal)
            if self.entries.seq() != seen:
                raise EditConflict("the entries were changed meanwhile")
            at = self.clock()
            made = self.entries.apply(merge.edits(verdict, draft, at), at=at, by=by)
        self.following.follow({} if vector is None else {made[0].id: vector})
        return merge.outcome(verdict, made[0])

    def _judged(self, draft: Draft, replaces: str | None) -> tuple[merge.Verdict, Matrix | None]:
        """What to do with a statement beside what is known now, and its vector, if that had to be made."""
        verdict = self._known(draft)
        if verdict is not None:
            return verdict, None
        self.following.follow()
        vector = self.following.vector(draft.text)
        verdict = merge.judge(draft, merge.neighbours(self.following, draft, vector))
        if replaces and verdict.action == "add":
            verdict = self._replacing(draft, replaces)
        return verdict, vector

    def _replacing(self, draft: Draft, entry_id: str) -> merge.Verdict:
        old = self.entries.load([entry_id]).get(entry_id)
        if old is None or old.state != "active" or not merge.may_change(draft.origin, old.origin):
            return merge.Verdict("add")
        return merge.Verdict("supersede", (old,), "said to be true no longer")

    def _known(self, draft: Draft) -> merge.Verdict | None:
        """Whether just this is known: no model has to be asked."""
        same = [one for one in self.entries.same_text(draft.text) if one.state == "active"]
        return merge.Verdict("repeat", (same[0],), "said before") if same else None

    def add(self, text: str, type_: str = "other", **fields: Unpack[DraftFields]) -> Remembered:
        """Keep a statement that somebody wants kept."""
        return self.remember(Draft(text, type_of(type_), **fields), by=fields.get("origin", "owner"))

    def capture(self, turns: Iterable[Said], *, session: str | None = None) -> list[Remembered]:
        """Remember what the owner's turns are worth, by rules."""
        drafts = capture.capture(turns, session=session, limits=self.ways.capture)
        return [self.remember(draft, by="capture") for draft in drafts]

    def _refusal(self, draft: Draft, begun: int) -> str | None:
        """Why a forgotten text stays forgotten; saying it again on purpose, later, lifts that."""
        buried = self.entries.buried_at(draft.text)
        if buried is None:
            return None
        if draft.on_purpose and buried <= begun:
            self.entries.exhume(draft.text)
            return None
        return "this was forgotten on request, and is not taken in again by itself"

    def update(self, entry_id: str, changes: Mapping[str, object], *, by: str = "owner") -> Entry:
        """Change what an entry says or how it is kept; what it was stays in its history."""
        return self.editing.edit(entry_id, changes, by=by)

    # ---- finding ---------------------------------------------------------------------------------------------

    def get(self, entry_id: str) -> Entry:
        """The entry of this id; the beginning of an id is enough when only one begins so."""
        return self.entries.get(self.entries.complete_id(entry_id))

    def find(
        self,
        where: EntryFilter = IN_FORCE,
        limit: int | None = None,
        sort: Literal["updated", "importance"] = "updated",
    ) -> list[Entry]:
        """The entries that the filter admits, newest or most important first; expired ones are hidden."""
        return self.entries.find(
            replace(where, now=self.clock()) if where.now is None else where, limit, sort
        )

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

    # ---- forgetting ------------------------------------------------------------------------------------------

    def forget(
        self,
        entry_id: str | None = None,
        *,
        query: str | None = None,
        session: str | None = None,
        source: str | None = None,
        since: float | None = None,
        until: float | None = None,
        dry_run: bool = False,
        by: str = "owner",
        elsewhere: Elsewhere | None = None,
    ) -> Receipt:
        """Erase what is named in exactly one way; a query that could mean several erases nothing and offers them."""
        by_time = None if since is None and until is None else (since, until)
        if sum(way is not None for way in (entry_id, query, session, source, by_time)) != 1:
            raise WriteError("name what to forget in one way: an id, a query, a session, a source or a time")
        if query is not None:
            found = self.search(query, threshold=MAYBE, limit=OFFERED).hits
            sure = surely(query, found)
            if sure is None:
                return Receipt((), candidates=found, dry_run=dry_run)
            ids = [sure.entry.id]
        elif entry_id is not None:
            ids = [self.entries.complete_id(entry_id)]
        else:
            ids = [entry.id for entry in self.entries.find(everything(session, source, since, until))]
        return self.eraser.erase(ids, by=by, dry_run=dry_run, elsewhere=elsewhere)

    def cleanup(self) -> CleanedUp:
        """Mark what has expired and erase what expired long ago, now."""
        return self.lifecycle.cleanup()

    # ---- history ---------------------------------------------------------------------------------------------

    def history(self, entry_id: str) -> list[Event]:
        """Everything that happened to an entry, oldest first."""
        return self.entries.history(self.entries.complete_id(entry_id))

    def undo(
        self, entry_id: str | None = None, *, if_seq: int | None = None, by: str = "owner"
    ) -> tuple[list[Event], tuple[Entry, ...]]:
        """Take back the newest change, of one entry or of all; ``if_seq``: only if that is its number."""
        whole = self.entries.complete_id(entry_id) if entry_id else None
        return editing.undo(self.entries, entry_id=whole, at=self.clock(), by=by, if_seq=if_seq)

    # ---- out and in ------------------------------------------------------------------------------------------

    def export(self, type_: str | None = None) -> Iterator[str]:
        """Every entry with its history, one JSON object a line."""
        where = EntryFilter(types=(type_of(type_),) if type_ else (), states=())
        return exchange.export_lines(self.entries, where)

    def take_in(self, text: str, *, by: str = "owner", at_most: Origin = "owner") -> Imported:
        """Import what an export of ours or of another program holds: all of it or nothing.

        ``at_most``: how much the one who brings it is trusted; no entry comes in with more, and none with a history,
        which would say what others have done, and to which an undo could lead back.
        """
        lines = list(exchange.read(text, at=self.clock()))
        trusted = [
            replace(
                one,
                entry=self._brought(one.entry, at_most),
                history=one.history if at_most == "owner" else (),
            )
            for one in lines
        ]
        return exchange.import_lines(self.entries, trusted, at=self.clock(), by=by)

    def _brought(self, entry: Entry, at_most: Origin) -> Entry:
        """An entry as the one who brings it may bring it: no more trusted, and waiting where theirs have to wait."""
        entry = replace(entry, origin=merge.less_trusted(entry.origin, at_most))
        waits = at_most != "owner" and self.ways.approval != "none" and entry.state == "active"
        return replace(entry, state="staged") if waits else entry

    def stats(self) -> dict[str, object]:
        """Counts, averages and times of the entries in force."""
        found = self.listing.facets()
        by_type = {type_: found.types[type_] for type_ in TYPES if type_ in found.types}
        return {"total": sum(by_type.values()), "by_type": by_type, **self.entries.averages(self.clock())}

    def close(self) -> None:
        """Give back files."""
        self.index.close()
        self.entries.close()


INDEX_FOLDER = "entries"  #: everything in it is derived from memory.db


def open_entries(
    folder: Path,
    embedder: Embedder | None = None,
    *,
    engine: str = "scan",
    ways: EntryOptions | None = None,
    clock: Callable[[], float] = time.time,
) -> Entries:
    """The keeper of the entries in an agent's folder."""
    from memoriter.embedding import Batched

    index = open_index(folder / INDEX_FOLDER, engine=engine)
    batched = Batched(embedder) if embedder else None
    return Entries(EntryStore(folder), index, embedder, batched, ways, clock=clock)
