"""Lists of entries in SQL: pages, counts, samples and timelines.

Every function uses the connection it receives. For a query, the caller passes the scores of the matching entries.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from memoriter.records import Bucket, Entry, EntryPage, EntrySort, Facets
from memoriter.store import entry_rows
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.protocol import Connection, Transactions

#: Maximum number of tags that are counted, the most frequent ones.
MAX_TAGS = 200

After = tuple[float, str]
"""The start of a page: the sort value and the id of the last entry before it."""

# An entry counts as expired as soon as its time is over, although only the next cleanup marks it.
_STATE = "case when e.state = 'active' and e.expires_at <= ?1 then 'expired' else e.state end"
_COLUMNS = ", ".join(_STATE if name == "state" else f"e.{name}" for name in entry_rows.COLUMNS)
_ORDER: Mapping[EntrySort, str] = {
    "created": "e.created_at",
    "updated": "e.updated_at",
    "importance": "e.importance",
    "expires": "coalesce(e.expires_at, 1e15)",  # entries that never expire are the last to expire
    "score": "coalesce(s.value, 0.0)",
    "used": "e.access_count",
}
_ALIVE = "from entries e where e.state = 'active' and (e.expires_at is null or e.expires_at > ?1)"
_IDS = f"select e.id {_ALIVE} and substr(e.id, 1, length(?2)) = ?2 order by e.created_at desc, e.id limit ?3"
# Materialized, so that SQLite builds an index for it instead of scanning it for every entry.
_SCORES = (
    "with s(key, value) as materialized (select key, cast(value as double precision) from json_each(?2))"
)
_CAPTURED = ("add", "merge", "stage", "import")
_KINDS: Mapping[str, str] = dict.fromkeys(_CAPTURED, "captured") | {
    "supersede": "superseded",
    "forget": "forgotten",
    "purge": "forgotten",
}


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for one page of entries."""

    where: EntryFilter
    #: Entries whose time is over by then count as expired.
    now: float
    sort: EntrySort = "created"
    #: The scores of a query, by id. None: there is no query.
    scores: Mapping[str, float] | None = None
    #: The query. Entries that are not in force match if they contain it.
    contains: str = ""
    limit: int = 100
    after: After | None = None
    #: Skip this many entries.
    offset: int = 0
    #: The id of an entry that the page should contain, with as many entries before as after it. If the entry does not
    #: match, the page starts at ``offset``.
    around: str | None = None
    #: Smallest sort value first.
    ascending: bool = False


class EntryLists:
    """Pages and counts of the entries in one database."""

    database: Transactions

    def page(self, request: PageRequest) -> EntryPage:
        """Return one page of entries, largest sort value first unless the request says otherwise."""
        with self.database.snapshot() as connection:
            clauses, bound = _clauses(request)
            tables = f"from entries e left join s on s.key = e.id where {' and '.join(clauses)}"
            count: Any = connection.execute(f"{_SCORES} select count(*) {tables}", bound).fetchall()
            order = _ORDER[request.sort]
            beyond, before, direction = (">", "<", "asc") if request.ascending else ("<", ">", "desc")
            paging = (
                f" and ({order}, e.id) {beyond} (?{len(bound) + 3}, ?{len(bound) + 4})"
                if request.after
                else ""
            )
            offset = request.offset
            if request.around is not None:
                place = f"select {order}, e.id {tables} and e.id = ?{len(bound) + 1}"
                rank: Any = connection.execute(
                    f"{_SCORES}, p(value, id) as ({place}) select (select count(*) from p), count(*)"  # noqa: S608
                    f" {tables} and ({order}, e.id) {before} (select value, id from p)",
                    (*bound, request.around),
                ).fetchall()
                offset = max(0, int(rank[0][1]) - request.limit // 2) if rank[0][0] else offset
            rows: list[Any] = connection.execute(
                f"{_SCORES} select {order}, {_COLUMNS} {tables}{paging}"
                f" order by {order} {direction}, e.id {direction} limit ?{len(bound) + 1} offset ?{len(bound) + 2}",
                (*bound, request.limit + 1, offset, *(request.after or ())),
            ).fetchall()
            entries = tuple(entry_rows.entry_of(row[1:]) for row in rows[: request.limit])
            more = len(rows) > request.limit
            after = (float(rows[request.limit - 1][0]), entries[-1].id) if more else None
            return EntryPage(entries, int(count[0][0]), after, request.scores or {}, offset=offset)

    def replaced_by(self, entry_id: str, limit: int = 100) -> list[Entry]:
        """Return the entries that this one superseded, newest first."""
        with self.database.read() as connection:
            rows = connection.execute(
                f"{entry_rows.SELECT} where superseded_by = ? order by updated_at desc, id limit ?",
                (entry_id, limit),
            )
            return [entry_rows.entry_of(row) for row in rows]

    def ids(self, begun: str, limit: int, now: float) -> list[str]:
        """Return ids of entries in force that start with a prefix, newest first."""
        with self.database.read() as connection:
            return [str(row[0]) for row in connection.execute(_IDS, (now, begun, limit))]

    def averages(self, now: float) -> dict[str, float | None]:
        """Return averages and times of the entries in force; None without entries."""
        with self.database.read() as connection:
            columns = "avg(importance), avg(confidence), min(created_at), max(created_at)"
            rows: Any = connection.execute(f"select {columns} {_ALIVE}", (now,)).fetchall()
            importance, confidence, oldest, newest = rows[0]
            return {
                "average_importance": None if importance is None else round(importance, 2),
                "average_confidence": None if confidence is None else round(confidence, 2),
                "oldest": oldest,
                "newest": newest,
            }

    def facets(self, now: float) -> Facets:
        """Count all entries by state, and the entries in force by type, trust, tag, source and workspace."""
        with self.database.snapshot() as connection:

            def counted(statement: str) -> dict[str, int]:
                rows: Any = connection.execute(statement, (now,))
                return {str(name): int(count) for name, count in rows}

            by_state = counted(f"select {_STATE}, count(*) from entries e group by 1 order by 2 desc, 1")  # noqa: S608
            tags = f"select t.value, count(*) {_ALIVE.replace(' where', ', json_each(e.tags) t where')} group by 1"
            return Facets(
                total=sum(by_state.values()),
                types=counted(f"select e.type, count(*) {_ALIVE} group by 1 order by 2 desc, 1"),
                states=by_state,
                trust=counted(f"select e.trust, count(*) {_ALIVE} group by 1 order by 2 desc, 1"),
                tags=counted(f"{tags} order by 2 desc, 1 limit {MAX_TAGS}"),
                sources=counted(
                    f"select e.source, count(*) {_ALIVE} and e.source is not null group by 1 order by 2 desc, 1"
                ),
                workspaces=counted(
                    f"select e.workspace, count(*) {_ALIVE} and e.workspace is not null group by 1 order by 2 desc, 1"
                ),
            )

    def timeline(self, since: float | None, until: float | None, buckets: int, now: float) -> list[Bucket]:
        """Count changes, recalls and entries in spans of equal length, by default from the first event until now."""
        with self.database.snapshot() as connection:
            first, last = _span(connection) or (now, now)
            since = first if since is None else since
            # The end is exclusive, and a clock that was set back may have left events after "now".
            until = max(now, last) + 1 if until is None else until
            return _timeline(connection, since, until, buckets, now) if until > since else []


def _clauses(request: PageRequest) -> tuple[list[str], list[object]]:
    """Return the conditions in SQL and their values. ?1 is the time and ?2 the scores."""
    states = request.where.states
    plain = replace(request.where, states=(), now=None)
    found, values = entry_rows.clauses(plain)
    bound: list[object] = [request.now, json.dumps(request.scores or {})]
    clauses = list[str]()
    for clause, one in zip(found[1:], values, strict=True):
        bound.append(one)
        clauses.append(clause.replace("?", f"?{len(bound)}"))
    if states:
        bound.append(json.dumps(states))
        clauses.append(f"{_STATE} in (select value from json_each(?{len(bound)}))")  # noqa: S608
    if request.scores is not None:
        bound.append(request.contains)
        held = f"({_STATE} <> 'active' and instr(lower(e.text), lower(?{len(bound)})) > 0)"
        clauses.append(f"(s.key is not null or {held})")
    return clauses or ["true"], bound


def _span(connection: Connection) -> tuple[float, float] | None:
    """Return the times of the first and the last event or recall; None without any."""
    rows: Any = connection.execute(
        "select min(at), max(at) from (select min(at) as at from events union all select max(at) from events"
        " union all select min(at) from recalls union all select max(at) from recalls) as times"
    ).fetchall()
    first, last = rows[0]
    return None if first is None else (float(first), float(last))


def _timeline(connection: Connection, since: float, until: float, buckets: int, now: float) -> list[Bucket]:
    """Count changes, recalls and entries from ``since`` until before ``until``, in spans of equal length."""
    width = (until - since) / buckets
    counts: list[dict[str, int]] = [{} for _ in range(buckets)]
    span_values = (since, until, width)
    for place, kind, count in connection.execute(_CHANGED, span_values):
        if name := _KINDS.get(kind):
            mine = counts[min(place, buckets - 1)]
            mine[name] = mine.get(name, 0) + count
    for place, *numbers in connection.execute(_RECALLED, span_values):
        mine = counts[min(int(place), buckets - 1)]
        for name, count in zip(("recalls", "hits", "tokens"), numbers, strict=True):
            mine[name] = mine.get(name, 0) + int(count)
    for number, entries in enumerate(_growth(connection, since, until, buckets, now)):
        counts[number]["entries"] = entries
    edges = [since + width * number for number in range(buckets)] + [until]
    return [Bucket(edges[number], edges[number + 1], **counts[number]) for number in range(buckets)]


_CHANGED = """
    select cast(floor((at - ?1) / ?3) as integer), kind, count(*) from events
    where at >= ?1 and at < ?2 group by 1, 2"""
_RECALLED = """
    select cast(floor((r.at - ?1) / ?3) as integer), count(*),
    sum((select count(*) from recalled c where c.recall_id = r.id and c.entered)), sum(r.tokens)
    from recalls r where r.at >= ?1 and r.at < ?2 group by 1"""


def _growth(connection: Connection, since: float, until: float, buckets: int, now: float) -> Iterator[int]:
    """Yield for each span how many of the entries in force were created before its end."""
    # Entries from before the first span count from there.
    place = "case when e.created_at < ?2 then 0 else cast(floor((e.created_at - ?2) / ?4) as integer) end"
    rows: Any = connection.execute(
        f"select {place}, count(*) {_ALIVE} and e.created_at < ?3 group by 1",
        (now, since, until, (until - since) / buckets),
    )
    created = [0] * buckets
    for place, count in rows:
        created[min(place, buckets - 1)] += count
    yield from accumulate(created)
