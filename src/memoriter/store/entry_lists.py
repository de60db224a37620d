"""Entries as lists: a page in some order, counts by kind, what happened when. All of it is counted by SQL.

Every function works on a connection that it is given. Which entries answer a query in words is not decided here: the
caller brings their scores.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import apsw

from memoriter.records import Bucket, Entry, EntrySort, Facets
from memoriter.store import entry_rows
from memoriter.store.entry_rows import EntryFilter

MOST_TAGS = 200  #: that are counted; the most frequent ones

After = tuple[float, str]
"""The place after which a page begins: the value that is sorted by, and the id."""

# An entry counts as expired from that moment on, though only the next cleanup marks it.
_STATE = "case when e.state = 'active' and e.expires_at <= ?1 then 'expired' else e.state end"
_COLUMNS = ", ".join(_STATE if name == "state" else f"e.{name}" for name in entry_rows.COLUMNS)
_ORDER: Mapping[EntrySort, str] = {
    "created": "e.created_at",
    "updated": "e.updated_at",
    "importance": "e.importance",
    "score": "coalesce(s.value, 0.0)",
}
_ALIVE = "from entries e where e.state = 'active' and (e.expires_at is null or e.expires_at > ?1)"
_CAPTURED = ("add", "merge", "stage", "import")
_KINDS: Mapping[str, str] = dict.fromkeys(_CAPTURED, "captured") | {
    "supersede": "superseded",
    "forget": "forgotten",
    "purge": "forgotten",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries, in which order."""

    where: EntryFilter
    now: float  #: what has expired by then counts as expired
    sort: EntrySort = "created"
    scores: Mapping[str, float] | None = None  #: of a query, by id
    holds: str = ""  #: a text that entries which were not scored must hold; without both, all count
    limit: int = 100
    after: After | None = None


def page(connection: apsw.Connection, wanted: Wanted) -> tuple[list[Entry], int, After | None]:
    """The entries of one page, greatest first; how many there are in all; and where the next page begins."""
    clauses, bound = _clauses(wanted)
    # Materialized, so that it gets an index of its own: else it would be read through for every entry.
    scores = "with s(key, value) as materialized (select key, value from json_each(?2))"
    tables = f"from entries e left join s on s.key = e.id where {' and '.join(clauses)}"
    count: Any = connection.execute(f"{scores} select count(*) {tables}", bound).fetchall()
    order = _ORDER[wanted.sort]
    paging = f" and ({order}, e.id) < (?{len(bound) + 2}, ?{len(bound) + 3})" if wanted.after else ""
    rows: list[Any] = connection.execute(
        f"{scores} select {order}, {_COLUMNS} {tables}{paging}"
        f" order by {order} desc, e.id desc limit ?{len(bound) + 1}",
        (*bound, wanted.limit + 1, *(wanted.after or ())),
    ).fetchall()
    entries = [entry_rows.entry_of(row[1:]) for row in rows[: wanted.limit]]
    more = len(rows) > wanted.limit
    return entries, int(count[0][0]), (float(rows[wanted.limit - 1][0]), entries[-1].id) if more else None


def _clauses(wanted: Wanted) -> tuple[list[str], list[object]]:
    """What is asked for, in SQL. ?1 is the time, ?2 the scores; the others follow in their order."""
    states = wanted.where.states
    plain = replace(wanted.where, states=(), now=None)
    found, values = entry_rows.clauses(plain)
    bound: list[object] = [wanted.now, json.dumps(wanted.scores or {})]
    clauses = list[str]()
    for clause, one in zip(found[1:], values, strict=True):
        bound.append(one)
        clauses.append(clause.replace("?", f"?{len(bound)}"))
    if states:
        bound.append(json.dumps(states))
        clauses.append(f"{_STATE} in (select value from json_each(?{len(bound)}))")  # noqa: S608
    if wanted.scores is not None:
        bound.append(wanted.holds)
        held = f"({_STATE} <> 'active' and instr(lower(e.text), lower(?{len(bound)})))"
        clauses.append(f"(s.key is not null or {held})")
    return clauses or ["true"], bound


def replaced_by(connection: apsw.Connection, entry_id: str, limit: int) -> list[Entry]:
    """The entries that this one has taken the place of, newest first."""
    rows = connection.execute(
        f"{entry_rows.SELECT} where superseded_by = ? order by updated_at desc, id limit ?", (entry_id, limit)
    )
    return [entry_rows.entry_of(row) for row in rows]


def ids(connection: apsw.Connection, begun: str, limit: int, now: float) -> list[str]:
    """Ids of entries in force that begin so, newest first."""
    statement = (
        f"select e.id {_ALIVE} and substr(e.id, 1, length(?2)) = ?2 order by e.created_at desc, e.id limit ?3"
    )
    return [str(row[0]) for row in connection.execute(statement, (now, begun, limit))]


def sample(connection: apsw.Connection, limit: int, now: float) -> tuple[list[str], int]:
    """Ids of entries in force, at most so many, and how many there are.

    Ids are random, so their order is an even sample, and the same one each time.
    """
    rows = connection.execute(f"select e.id {_ALIVE} order by e.id limit ?2", (now, limit))
    found = [str(row[0]) for row in rows]
    count: Any = connection.execute(f"select count(*) {_ALIVE}", (now,)).fetchall()
    return found, int(count[0][0])


def averages(connection: apsw.Connection, now: float) -> dict[str, float | None]:
    """Averages and times of the entries in force; None where there are none."""
    columns = "round(avg(importance), 2), round(avg(confidence), 2), min(created_at), max(created_at)"
    rows: Any = connection.execute(f"select {columns} {_ALIVE}", (now,)).fetchall()
    return dict(zip(("average_importance", "average_confidence", "oldest", "newest"), rows[0], strict=True))


def facets(connection: apsw.Connection, now: float) -> Facets:
    """How many entries there are of each kind; types, trust and tags of those in force."""

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
        tags=counted(f"{tags} order by 2 desc, 1 limit {MOST_TAGS}"),
    )


def span(connection: apsw.Connection) -> tuple[float, float] | None:
    """When something first and last happened; None when nothing has."""
    rows: Any = connection.execute(
        "select min(at), max(at) from (select min(at) at from events union all select max(at) from events"
        " union all select min(at) from recalls union all select max(at) from recalls)"
    ).fetchall()
    first, last = rows[0]
    return None if first is None else (float(first), float(last))


def timeline(connection: apsw.Connection, since: float, until: float, buckets: int) -> list[Bucket]:
    """What happened from ``since`` until before ``until``, in spans of equal length."""
    width = (until - since) / buckets
    counts: list[dict[str, int]] = [{} for _ in range(buckets)]
    events: Any = connection.execute(
        "select cast((at - ?1) / ?3 as integer), kind, count(*) from events where at >= ?1 and at < ?2 group by 1, 2",
        (since, until, width),
    )
    recalls: Any = connection.execute(
        "select cast((at - ?1) / ?3 as integer), '', count(*) from recalls where at >= ?1 and at < ?2 group by 1",
        (since, until, width),
    )
    for place, kind, count in (*events, *recalls):
        name = _KINDS.get(kind) if kind else "recalls"
        if name:
            mine = counts[min(place, buckets - 1)]
            mine[name] = mine.get(name, 0) + count
    edges = [since + width * number for number in range(buckets)] + [until]
    return [Bucket(edges[number], edges[number + 1], **counts[number]) for number in range(buckets)]
