"""The tables of ``memory.db``, entries and events as rows of it, and the filter of entries in SQL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from memoriter.records import Chunk, Document, Entry, EntryEvent, EntryState, EntryType, Trust, text_hash
from memoriter.sentences import pack, unpack
from memoriter.store.checksums import add_checksums
from memoriter.store.database import Migration, read_migrations
from memoriter.store.protocol import Connection, value
from memoriter.text.redaction import stored_names

APPLICATION_ID = 0x6D6D656D  # "mmem"

_ENTRY = "id type category importance confidence trust state session source created_at updated_at valid_from"
_ENTRY += " expires_at superseded_by repetitions related tags seq digest text workspace"
_EVENT_COLUMNS = "seq change at kind entry_id by note before after said"
_RECALL = "id at interface session query characters tokens block"
_RECALLED = "recall_id position kind ref entered reason score parts text"

_M007 = Migration(
    "m007_checksums",
    (
        *add_checksums("meta", ("key",), ("key", "value")),
        *add_checksums("entries", ("id",), _ENTRY.split()),
        *add_checksums("events", ("seq",), _EVENT_COLUMNS.split()),
        *add_checksums("tombstones", ("digest",), ("digest", "at", "seq")),
        *add_checksums("recalls", ("id",), _RECALL.split()),
        *add_checksums("recalled", ("recall_id", "position"), _RECALLED.split()),
        *add_checksums("retention", ("entry_id",), ("entry_id", "since")),
    ),
)

MIGRATIONS = (*read_migrations("entries.sql"), _M007)


COLUMNS = tuple(field.name for field in fields(Entry))
_LISTS = ("related", "tags")

SELECT = f"select {', '.join(COLUMNS)} from entries"  # noqa: S608
_PUT = (
    f"insert into entries({', '.join(COLUMNS)}, digest) values({', '.join('?' * (len(COLUMNS) + 1))})"
    f" on conflict(id) do update set {', '.join(f'{name} = excluded.{name}' for name in (*COLUMNS, 'digest'))}"
)
_EVENT = (
    "insert into events(seq, change, at, kind, entry_id, by, note, before, after, said)"
    " values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """A filter of entries. By default it selects the active ones."""

    types: tuple[EntryType, ...] = ()
    #: Tags that the entry must all have.
    tags: tuple[str, ...] = ()
    #: Created at or after.
    since: float | None = None
    #: Created before.
    until: float | None = None
    min_importance: float = 0.0
    #: Whether it has been used. None: either.
    used: bool | None = None
    trust: tuple[Trust, ...] = ()
    session: str | None = None
    #: Only entries learned in one of these sessions, or outside sessions.
    within: tuple[str, ...] | None = None
    source: str | None = None
    #: Only entries learned in this workspace, or in none.
    workspace: str | None = None
    states: tuple[EntryState, ...] = ("active",)
    #: Entries that have expired by then are left out. None: they are included.
    now: float | None = None

    def admits(self, entry: Entry) -> bool:
        """Return whether an entry matches."""
        return (
            (not self.states or entry.state in self.states)
            and (not self.types or entry.type in self.types)
            and (not self.trust or entry.trust in self.trust)
            and set(self.tags) <= set(entry.tags)
            and entry.importance >= self.min_importance
            and (self.used is None or (entry.access_count > 0) == self.used)
            and (self.since is None or entry.created_at >= self.since)
            and (self.until is None or entry.created_at < self.until)
            and (self.session is None or entry.session in stored_names(self.session))
            and (self.within is None or entry.session is None or entry.session in self._within())
            and (self.source is None or entry.source in stored_names(self.source))
            and self.admits_workspace(entry)
            and (self.now is None or entry.expires_at is None or entry.expires_at > self.now)
        )

    def _within(self) -> list[str]:
        return [stored for name in self.within or () for stored in stored_names(name)]

    def admits_workspace(self, entry: Entry) -> bool:
        """Return whether an entry was learned in the workspace that the filter names, or in none."""
        return self.workspace is None or entry.workspace in (None, self.workspace)


# ---- entries -------------------------------------------------------------------------------------------------


def load(connection: Connection, ids: Iterable[str]) -> dict[str, Entry]:
    """Return the entries with these ids that exist, by id."""
    wanted = json.dumps(list(ids))
    rows = connection.execute(f"{SELECT} where id in (select value from json_each(?))", (wanted,))  # noqa: S608
    return {entry.id: entry for entry in map(entry_of, rows)}


def put(connection: Connection, entry: Entry, digest: str) -> None:
    """Insert an entry, or replace the one with the same id."""
    values = (_stored_value(getattr(entry, name), name) for name in COLUMNS)
    connection.execute(_PUT, (*values, digest))


_WITHIN = "(session is null or session in (select value from json_each(?)))"


def clauses(where: EntryFilter) -> tuple[list[str], list[object]]:
    """Return the filter as SQL conditions, and their values."""
    found, bound = ["true"], list[object]()
    for column, values in (("state", where.states), ("type", where.types), ("trust", where.trust)):
        if values:
            found.append(f"{column} in (select value from json_each(?))")  # noqa: S608
            bound.append(json.dumps(values))
    for clause, wanted in (
        ("created_at >= ?", where.since),
        ("created_at < ?", where.until),
        ("importance >= ?", where.min_importance or None),
        ("(access_count > 0) = ?", where.used),
        ("session in (select value from json_each(?))", _names(where.session)),
        (_WITHIN, None if where.within is None else json.dumps(where._within())),
        ("source in (select value from json_each(?))", _names(where.source)),
        ("(workspace is null or workspace = ?)", where.workspace),
        ("(expires_at is null or expires_at > ?)", where.now),
    ):
        if wanted is not None:
            found.append(clause)
            bound.append(wanted)
    for tag in where.tags:
        found.append("exists (select 1 from json_each(tags) where value = ?)")
        bound.append(tag)
    return found, bound


def _names(name: str | None) -> str | None:
    return None if name is None else json.dumps(stored_names(name))


def _stored_value(content: object, name: str) -> Any:
    return json.dumps(content, ensure_ascii=False) if name in _LISTS else content


def entry_of(row: Sequence[Any]) -> Entry:
    values = dict(zip(COLUMNS, row, strict=True))
    values |= {name: tuple(json.loads(values[name])) for name in _LISTS}
    return Entry(**values)


def document_of(entry: Entry) -> tuple[Document, list[Chunk]]:
    """Return an entry as the index stores it: a document of one chunk, with the id of the entry as its path."""
    chunk = Chunk(entry.id, entry.id, "entries", 1, 1, entry.text, date=entry.day)
    return Document(entry.id, "entries", entry.text, text_hash(entry.text), 0, len(entry.text)), [chunk]


# ---- events --------------------------------------------------------------------------------------------------


def next_seq(connection: Connection) -> int:
    """Return the number of the next event. In a write transaction no other process can take it."""
    return last_seq(connection) + 1


def last_seq(connection: Connection) -> int:
    """Return the number of the newest event, erased or not; 0 before the first."""
    return int(value(connection, "select max(seq) from events") or 0)


def add_event(connection: Connection, event: EntryEvent) -> None:
    """Insert an event under its number."""
    head = (event.seq, event.change, event.at, event.kind, event.entry_id, event.by, pack(event.note))
    connection.execute(_EVENT, (*head, pack_entry(event.before), pack_entry(event.after), event.said))


def events(connection: Connection, clause: str, *bound: str | float) -> list[EntryEvent]:
    """Return the events that an SQL condition selects, oldest first."""
    columns = "seq, change, at, kind, entry_id, by, note, before, after, said"
    statement = f"select {columns} from events where {clause} order by seq"  # noqa: S608
    rows: Any = connection.execute(statement, bound)
    return [_event(*row) for row in rows]


def _event(seq: int, change: int, at: float, kind: str, entry_id: str, *rest: Any) -> EntryEvent:
    by, note, before, after, said = rest
    return EntryEvent(
        seq, change, at, kind, entry_id, by, unpack(note), unpack_entry(before), unpack_entry(after), said
    )


def pack_entry(entry: Entry | None) -> str | None:
    """Return an entry as JSON."""
    return json.dumps(asdict(entry), ensure_ascii=False) if entry else None


def unpack_entry(text: str | None) -> Entry | None:
    """Return an entry from JSON. Fields that this release does not know are dropped."""
    if text is None:
        return None
    values = {name: known for name, known in json.loads(text).items() if name in COLUMNS}
    return Entry(**values | {name: tuple(values[name]) for name in _LISTS})
