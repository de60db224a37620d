"""What there is to see of the entries: a page of them, one with all that belongs to it, counts, what happened when.

It changes nothing. With a query, entries in force are those that the search finds; of the others, which no search may
find, those that hold the query's words as they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict, Unpack

from memoriter.records import (
    Bucket,
    Entry,
    EntryPage,
    EntrySort,
    EntryState,
    EntryType,
    Event,
    Facets,
    Origin,
    Recall,
    RecallHead,
    RecallPage,
)
from memoriter.store.entry_lists import After, Wanted
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.ledger import Ledger, RecallFilter

if TYPE_CHECKING:
    from memoriter.entries.search import EntrySearch
    from memoriter.store.entry_store import EntryStore

SCORED = 200  #: entries in force that a query finds at most
SHOWN = 100  #: related ones, versions and recalls that are shown with one entry
HISTORY = 200  #: and changes, the newest


class Narrowed(TypedDict, total=False):
    """Which entries are meant, as `EntryFilter` has it; without a word on states: those in force."""

    types: tuple[EntryType, ...]
    tags: tuple[str, ...]
    since: float | None
    until: float | None
    min_importance: float
    origins: tuple[Origin, ...]
    session: str | None
    source: str | None
    states: tuple[EntryState, ...]


class Meant(TypedDict, total=False):
    """Which recalls are meant, as `RecallFilter` has it."""

    session: str | None
    door: str | None
    since: float | None
    until: float | None
    entry: str | None


@dataclass(frozen=True, slots=True)
class Detail:
    """An entry with all that belongs to it."""

    entry: Entry
    history: tuple[Event, ...]
    related: tuple[Entry, ...]
    supersedes: tuple[Entry, ...]
    recalls: tuple[RecallHead, ...]


class Listing:
    """Shows the entries of one keeper."""

    def __init__(
        self, entries: EntryStore, searching: EntrySearch, threshold: float, clock: Callable[[], float]
    ) -> None:
        self.entries = entries
        self.ledger = Ledger(entries.database)
        self._searching = searching
        self._threshold = threshold
        self._clock = clock

    def page(
        self,
        *,
        query: str = "",
        sort: EntrySort | None = None,
        limit: int = 100,
        after: After | None = None,
        **narrowed: Unpack[Narrowed],
    ) -> EntryPage:
        """Some of the entries that are meant, greatest first; by score, where there is a query."""
        where, query = EntryFilter(**narrowed), query.strip()
        scores, degraded = self._scores(query, where) if query else (None, None)
        order = sort or ("created" if scores is None else "score")
        wanted = Wanted(where, self._clock(), order, scores, query, limit, after)
        entries, total, following = self.entries.page(wanted)
        return EntryPage(tuple(entries), total, following, scores or {}, degraded)

    def _scores(self, query: str, where: EntryFilter) -> tuple[dict[str, float], str | None]:
        """What the search finds among the entries in force."""
        if where.states and "active" not in where.states:
            return {}, None
        alive = replace(where, states=("active",))
        found = self._searching.search(query, limit=SCORED, threshold=self._threshold, where=alive)
        return {hit.entry.id: hit.score for hit in found.hits}, found.degraded

    def detail(self, entry_id: str) -> Detail:
        """One entry, by its id or the beginning of it."""
        entry = self.entries.get(self.entries.complete_id(entry_id))
        related = self.entries.load(entry.related[:SHOWN])
        return Detail(
            self.as_of_now(entry),
            tuple(self.entries.history(entry.id)[-HISTORY:]),
            tuple(self.as_of_now(related[id_]) for id_ in entry.related[:SHOWN] if id_ in related),
            tuple(self.entries.replaced_by(entry.id, SHOWN)),
            tuple(self.ledger.of_entry(entry.id, SHOWN)),
        )

    def ids(self, begun: str, limit: int) -> list[str]:
        """Ids of entries in force that begin so, newest first."""
        return self.entries.ids(begun.lower(), limit, self._clock())

    def as_of_now(self, entry: Entry) -> Entry:
        """The entry, expired if it has: only the next cleanup marks it."""
        over = entry.state == "active" and entry.expires_at is not None and entry.expires_at <= self._clock()
        return replace(entry, state="expired") if over else entry

    def facets(self) -> Facets:
        """How many entries there are of each kind."""
        return self.entries.facets(self._clock())

    def timeline(self, since: float | None, until: float | None, buckets: int) -> list[Bucket]:
        """What happened, in spans of equal length."""
        return self.entries.timeline(since, until, buckets, self._clock())

    def recalls(self, limit: int, after: After | None = None, **meant: Unpack[Meant]) -> RecallPage:
        """Some lines of the ledger, newest first."""
        return self.ledger.page(RecallFilter(**meant), limit, after)

    def recall(self, recall_id: str) -> tuple[Recall, dict[str, Entry]]:
        """One recall, and those of its entries that still exist, by id."""
        found = self.ledger.get(recall_id)
        return found, self.entries.load(one.ref for one in found.considered if one.kind == "entry")
