"""Lists of entries and recalls: filtered, sorted and paged. Nothing here changes an entry.

With a query, an entry in force matches if the search finds it. An entry that is not in force is never searched, so it
matches if its text contains the query.
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass, replace
from typing import Literal, TypedDict, Unpack

from memoriter.entries.context import EntryContext
from memoriter.entries.drafts import TYPES, type_of
from memoriter.entries.search import EntryFilters, find, limited
from memoriter.errors import NotFound
from memoriter.records import (
    Bucket,
    Entry,
    EntryEvent,
    EntryPage,
    EntrySort,
    EntryType,
    Facets,
    Recall,
    RecallHead,
    RecallPage,
    referenced_id,
)
from memoriter.search.shape import ALL_WORDS, relevant
from memoriter.sentences import sentence
from memoriter.store.entry_lists import After, PageRequest
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.ledger import RecallFilter

#: Maximum number of entries in force that a query scores.
MAX_SCORED = 200
#: Maximum number of related entries, superseded entries and recalls shown with one entry.
MAX_SHOWN = 100
#: Maximum number of events shown with one entry, the newest.
MAX_EVENTS = 200


class RecallFilters(TypedDict, total=False):
    """Filters of recalls. Every filter that is given must match."""

    session: str | None
    interface: str | None
    since: float | None
    until: float | None
    #: The id of an entry that entered the prompt.
    entry: str | None
    #: Words that the query, the text or the name of the session all contain.
    words: str | None


@dataclass(frozen=True, slots=True)
class EntryDetail:
    """An entry with everything that belongs to it."""

    entry: Entry
    history: tuple[EntryEvent, ...]
    related: tuple[Entry, ...]
    supersedes: tuple[Entry, ...]
    recalls: tuple[RecallHead, ...]


def get(context: EntryContext, entry_id: str) -> Entry:
    """Return the entry with this id. A unique prefix of the id is enough."""
    return context.store.get(context.store.complete_id(entry_id))


def history(context: EntryContext, entry_id: str) -> builtins.list[EntryEvent]:
    """Return every change of an entry, oldest first."""
    return context.store.history(context.store.complete_id(entry_id))


def replaced_by(context: EntryContext, entry_id: str) -> builtins.list[Entry]:
    """Return the entries that this entry superseded, newest first."""
    return context.store.replaced_by(context.store.complete_id(entry_id))


@dataclass(frozen=True, slots=True)
class EntryStats:
    """Counts, averages and times of the entries in force. None: there are none."""

    total: int
    by_type: dict[EntryType, int]
    average_importance: float | None
    average_confidence: float | None
    oldest: float | None
    newest: float | None


def stats(context: EntryContext) -> EntryStats:
    """Return counts, averages and times of the entries in force."""
    counts = context.store.facets(context.clock()).types
    by_type = {type_: counts[type_] for type_ in TYPES if type_ in counts}
    return EntryStats(sum(by_type.values()), by_type, **context.store.averages(context.clock()))


def facets(context: EntryContext) -> Facets:
    """Return how many entries there are of each state, type, trust and tag."""
    return context.store.facets(context.clock())


def timeline(
    context: EntryContext, *, since: float | None = None, until: float | None = None, buckets: int = 60
) -> builtins.list[Bucket]:
    """Return counts of changes and recalls in time spans of equal length, from the first event until now."""
    return context.store.timeline(since, until, buckets, context.clock())


def list_entries(
    context: EntryContext,
    type: str | None = None,  # noqa: A002
    *,
    sort: Literal["updated", "importance"] = "updated",
    limit: int | None = None,
    **filters: Unpack[EntryFilters],
) -> builtins.list[Entry]:
    """Return the entries that match every filter, newest first, or the most important first.

    Without ``states`` only entries in force are returned: active ones that have not expired. An empty ``states``
    means any state. ``sort`` is "updated" or "importance".
    """
    where = limited(context, filters)
    if type is not None:
        where = replace(where, types=(type_of(type),))
    if filters.get("states") is None:  # only a cleanup marks expired entries, so the time decides
        where = replace(where, now=context.clock())
    return context.store.find(where, limit, sort)


def page(
    context: EntryContext,
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
    """Return one page of the entries that match every filter, largest sort value first.

    With a query the default order is by score. ``after`` is the ``after`` of the previous page. ``offset`` skips
    entries instead. ``around`` is the id of an entry that the page should contain.
    """
    where, query = limited(context, filters), query.strip()
    scores, degraded = _scores(context, query, where) if query else (None, None)
    order = sort or ("created" if scores is None else "score")
    request = PageRequest(
        where, context.clock(), order, scores, query, limit, after, offset, around, ascending
    )
    found = context.store.page(request)
    return replace(found, degraded=degraded, offset=None if after else found.offset)


def _scores(context: EntryContext, query: str, where: EntryFilter) -> tuple[dict[str, float], str | None]:
    """Return the scores of the entries in force that the search finds, by id."""
    if where.states and "active" not in where.states:
        return {}, None
    active = replace(where, states=("active",))
    found = find(context, query, limit=MAX_SCORED, threshold=context.options.threshold, where=active)
    likely = {hit.entry.id for hit in relevant(found.hits)}
    matching = (hit for hit in found.hits if hit.entry.id in likely or hit.explain.coverage >= ALL_WORDS)
    return {hit.entry.id: hit.score for hit in matching}, found.degraded


def detail(context: EntryContext, entry_id: str) -> EntryDetail:
    """Return one entry by its id, or by a unique prefix of it, with everything that belongs to it."""
    entry = context.store.get(context.store.complete_id(entry_id))
    related = context.store.load(entry.related[:MAX_SHOWN])
    return EntryDetail(
        context.as_of_now(entry),
        tuple(context.store.history(entry.id)[-MAX_EVENTS:]),
        tuple(context.as_of_now(related[id_]) for id_ in entry.related[:MAX_SHOWN] if id_ in related),
        tuple(context.store.replaced_by(entry.id, MAX_SHOWN)),
        tuple(context.store.ledger.of_entry(entry.id, MAX_SHOWN)),
    )


def recalls(
    context: EntryContext, *, limit: int = 100, after: After | None = None, **filters: Unpack[RecallFilters]
) -> RecallPage:
    """Return one page of the recall ledger, newest first."""
    if entry_id := filters.get("entry"):
        filters["entry"] = context.store.complete_id(entry_id)
    return context.store.ledger.page(RecallFilter(**filters), limit, after)


def get_recall(context: EntryContext, recall_id: str | None = None) -> Recall:
    """Return one recall: what entered a prompt, what did not, and why. A unique prefix of the id is enough.

    Without an id it is the newest recall; with the id of an entry, the newest that added the entry to a prompt.
    """
    id_ = recall_id
    if id_ is None:
        return _newest(context, None)
    try:
        return context.store.ledger.get(id_)
    except NotFound:
        if referenced_id(id_) is None:
            raise
    return _newest(context, context.store.complete_id(id_))


def _newest(context: EntryContext, entry_id: str | None) -> Recall:
    newest = context.store.ledger.page(RecallFilter(entry=entry_id), 1).recalls
    if not newest:
        why = sentence("recall.none_of_entry", id=entry_id) if entry_id else sentence("recall.none")
        raise NotFound(why)
    return context.store.ledger.get(newest[0].id)
