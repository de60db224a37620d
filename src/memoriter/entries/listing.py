"""Lists of entries and recalls: filtered, sorted and paged. Nothing here changes an entry.

With a query, an entry in force matches if the search finds it. An entry that is not in force is never searched, so it
matches if its text contains the query.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack, get_args

from memoriter.entries.drafts import type_of
from memoriter.errors import BadArgument, NotFound
from memoriter.records import (
    Entry,
    EntryEvent,
    EntryPage,
    EntrySort,
    EntryState,
    Recall,
    RecallHead,
    RecallPage,
    Trust,
    referenced_id,
)
from memoriter.search.confidence import ALL_WORDS, relevant
from memoriter.sentences import sentence
from memoriter.store.entry_lists import After, PageRequest
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.ledger import RecallFilter
from memoriter.text.tag_lines import tag_list

if TYPE_CHECKING:
    from memoriter.entries.search import EntrySearch
    from memoriter.store.entry_store import EntryStore

STATES: tuple[EntryState, ...] = get_args(EntryState)
#: Maximum number of entries in force that a query scores.
MAX_SCORED = 200
#: Maximum number of related entries, superseded entries and recalls shown with one entry.
MAX_SHOWN = 100
#: Maximum number of events shown with one entry, the newest.
MAX_EVENTS = 200


class EntryFilters(TypedDict, total=False):
    """Filters of entries. Every filter that is given must match."""

    types: Sequence[str]
    #: Tags that the entry must all have.
    tags: Sequence[str]
    #: Empty means any state; None means entries in force.
    states: Sequence[EntryState] | None
    trust: Sequence[Trust]
    session: str | None
    #: Only entries learned in one of these sessions, or outside sessions.
    within: Sequence[str] | None
    source: str | None
    #: Only entries learned in the workspace with this path, or in none.
    workspace: str | None
    #: Created at or after, in seconds since the epoch.
    since: float | None
    #: Created before.
    until: float | None
    min_importance: float
    #: Whether it has been used: found by an agent or added to a prompt. None: either.
    used: bool | None


class RecallFilters(TypedDict, total=False):
    """Filters of recalls. Every filter that is given must match."""

    session: str | None
    interface: str | None
    since: float | None
    until: float | None
    #: The id of an entry that entered the prompt.
    entry: str | None


@dataclass(frozen=True, slots=True)
class EntryDetail:
    """An entry with everything that belongs to it."""

    entry: Entry
    history: tuple[EntryEvent, ...]
    related: tuple[Entry, ...]
    supersedes: tuple[Entry, ...]
    recalls: tuple[RecallHead, ...]


def build_filter(filters: EntryFilters) -> EntryFilter:
    """Return the filter as the store takes it."""
    states, within = filters.get("states"), filters.get("within")
    if states is not None and (isinstance(states, str) or not {*states} <= {*STATES}):
        message = f"`states` must be a list of these: {', '.join(STATES)}."
        raise BadArgument(message, "states")
    return EntryFilter(
        types=tuple(type_of(name) for name in filters.get("types", ())),
        tags=tag_list(filters.get("tags", ())),
        states=("active",) if states is None else tuple(states),
        trust=tuple(filters.get("trust", ())),
        session=filters.get("session"),
        within=None if within is None else tuple(within),
        source=filters.get("source"),
        workspace=filters.get("workspace"),
        since=filters.get("since"),
        until=filters.get("until"),
        min_importance=filters.get("min_importance", 0.0),
        used=filters.get("used"),
    )


class EntryListing:
    """Lists the entries of one store."""

    def __init__(
        self, store: EntryStore, search: EntrySearch, threshold: float, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._ledger = store.ledger
        self._search = search
        self._threshold = threshold
        self._clock = clock

    def list(
        self,
        type_: str | None,
        *,
        sort: Literal["updated", "importance"],
        limit: int | None,
        **filters: Unpack[EntryFilters],
    ) -> builtins.list[Entry]:
        """Return the entries that match, newest first, or the most important first."""
        where = build_filter(filters)
        if type_ is not None:
            where = replace(where, types=(type_of(type_),))
        if filters.get("states") is None:  # only a cleanup marks expired entries, so the time decides
            where = replace(where, now=self._clock())
        return self._store.find(where, limit, sort)

    def page(
        self,
        *,
        query: str = "",
        sort: EntrySort | None = None,
        limit: int = 100,
        after: After | None = None,
        offset: int = 0,
        around: str | None = None,
        ascending: bool = False,
        **filters: Unpack[EntryFilters],
    ) -> EntryPage:
        """Return one page of the entries that match, largest sort value first."""
        where, query = build_filter(filters), query.strip()
        scores, degraded = self._scores(query, where) if query else (None, None)
        order = sort or ("created" if scores is None else "score")
        request = PageRequest(
            where, self._clock(), order, scores, query, limit, after, offset, around, ascending
        )
        rows = self._store.page(request)
        start = None if after else rows.offset
        return EntryPage(tuple(rows.entries), rows.total, rows.after, scores or {}, degraded, start)

    def _scores(self, query: str, where: EntryFilter) -> tuple[dict[str, float], str | None]:
        """Return the scores of the entries in force that the search finds, by id."""
        if where.states and "active" not in where.states:
            return {}, None
        active = replace(where, states=("active",))
        found = self._search.search(query, limit=MAX_SCORED, threshold=self._threshold, where=active)
        likely = {hit.entry.id for hit in relevant(found.hits)}
        matching = (hit for hit in found.hits if hit.entry.id in likely or hit.explain.coverage >= ALL_WORDS)
        return {hit.entry.id: hit.score for hit in matching}, found.degraded

    def detail(self, entry_id: str) -> EntryDetail:
        """Return one entry by its id, or by a unique prefix of it, with everything that belongs to it."""
        entry = self._store.get(self._store.complete_id(entry_id))
        related = self._store.load(entry.related[:MAX_SHOWN])
        return EntryDetail(
            self.as_of_now(entry),
            tuple(self._store.history(entry.id)[-MAX_EVENTS:]),
            tuple(self.as_of_now(related[id_]) for id_ in entry.related[:MAX_SHOWN] if id_ in related),
            tuple(self._store.replaced_by(entry.id, MAX_SHOWN)),
            tuple(self._ledger.of_entry(entry.id, MAX_SHOWN)),
        )

    def as_of_now(self, entry: Entry) -> Entry:
        """Return the entry with the state "expired" if its time is over but no cleanup has marked it yet."""
        over = entry.state == "active" and entry.expires_at is not None and entry.expires_at <= self._clock()
        return replace(entry, state="expired") if over else entry

    def recalls(self, limit: int, after: After | None = None, **filters: Unpack[RecallFilters]) -> RecallPage:
        """Return one page of the recall ledger, newest first."""
        if entry_id := filters.get("entry"):
            filters["entry"] = self._store.complete_id(entry_id)
        return self._ledger.page(RecallFilter(**filters), limit, after)

    def recall(self, id_: str | None) -> Recall:
        """Return a recall by its id, the newest recall of an entry by the entry's id, or the newest of all."""
        if id_ is None:
            return self._newest(None)
        try:
            return self._ledger.get(id_)
        except NotFound:
            if referenced_id(id_) is None:
                raise
        return self._newest(self._store.complete_id(id_))

    def _newest(self, entry_id: str | None) -> Recall:
        newest = self._ledger.page(RecallFilter(entry=entry_id), 1).recalls
        if not newest:
            why = sentence("recall.none_of_entry", id=entry_id) if entry_id else sentence("recall.none")
            raise NotFound(why)
        return self._ledger.get(newest[0].id)
