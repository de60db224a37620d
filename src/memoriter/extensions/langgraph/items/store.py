"""The source of truth for named values: ``items.db``, or tables on Postgres. A change is durable when its method
returns.

An item is found by its namespace and key, until it is deleted or expires. Keywords and vectors are derived: an index
follows the numbers of the changes.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memoriter.errors import WriteError
from memoriter.store.protocol import Connection, Transactions, value
from memoriter.text.redaction import clean_name, clean_values


@dataclass(frozen=True, slots=True)
class Item:
    """One value that a program stores. Times are in seconds since the epoch."""

    id: str
    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any]
    #: The texts that are searched.
    texts: tuple[str, ...]
    created_at: float
    updated_at: float
    #: How long it lasts after its last use. None means forever.
    ttl_s: float | None = None
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class Put:
    """A value to store under a name. None deletes the stored value."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any] | None
    texts: tuple[str, ...] = ()
    ttl_s: float | None = None

    def clean(self) -> Put:
        """Return what is stored: the value without secrets and private spans."""
        return replace(self, value=clean_values(self.value), texts=tuple(clean_values(self.texts)))


@dataclass(frozen=True, slots=True)
class ItemHit:
    """An item, and how well it matches the query, 0 to 1. None if there was no query for it."""

    item: Item
    score: float | None


#: Changes whose marks are stored. An index that is further behind is built again.
MARKS = 4_096

_COLUMNS = "id, namespace, key, value, texts, created_at, updated_at, ttl_s, expires_at"
_ALIVE = "(expires_at is null or expires_at > ?)"
_NEWEST_FIRST = "order by updated_at desc, seq desc"
_PUT = """
    insert into items(id, namespace, key, value, texts, created_at, updated_at, ttl_s, expires_at, seq)
    values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    on conflict(namespace, key) do update set value = excluded.value, texts = excluded.texts,
        updated_at = excluded.updated_at, ttl_s = excluded.ttl_s, expires_at = excluded.expires_at,
        seq = excluded.seq
    returning id"""
_CHANGE = """
    insert into item_changes(id, seq, namespace) values(?, ?, ?)
    on conflict(id) do update set seq = excluded.seq, namespace = excluded.namespace"""

# The number of the newest change, and the id of the store. Rows of deleted items go, but no number is used twice.
_META = "select value from meta where key = ?"
_SET_META = "insert into meta(key, value) values(?, ?) on conflict(key) do update set value = excluded.value"
_STORE, _SEQ = "items", "items_seq"
_FORGET = """
    delete from item_changes where id = ?1 and seq <= ?2 and not exists(select 1 from items where id = ?1)"""


class ItemStore:
    """The items in one database. Safe to use from several threads and processes."""

    def __init__(self, database: Transactions) -> None:
        self.database = database
        with database.read() as connection:
            found = value(connection, _META, (_STORE,))
        if found is None:
            with database.write() as connection:  # the first use by this agent
                found = value(connection, _META, (_STORE,)) or secrets.token_hex(16)
                connection.execute(_SET_META, (_STORE, found))
        #: An id that no other store has.
        self.store_id = str(found)

    # ---- reading ---------------------------------------------------------------------------------------------

    def get(self, namespace: Sequence[str], key: str, *, now: float) -> Item | None:
        """Return the item with this name; None if it does not exist or has expired."""
        for name in dict.fromkeys((_name(namespace, key), (_pack(namespace), _encodable(key)))):
            if found := self._items(f"{_ALIVE} and namespace = ? and key = ?", now, *name):
                return found[0]
        return None

    def ids_under(self, prefix: Sequence[str], *, now: float) -> list[str]:
        """Return the ids of the items in every namespace with this prefix, the newest change first."""
        clause, bound = _under(prefix)
        statement = f"select id from items where {_ALIVE} and {clause} {_NEWEST_FIRST}"  # noqa: S608
        with self.database.read() as connection:
            return [str(row[0]) for row in connection.execute(statement, (now, *bound))]

    def values_under(self, prefix: Sequence[str], *, now: float) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield ids in the same order, each with its value."""
        clause, bound = _under(prefix)
        statement = f"select id, value from items where {_ALIVE} and {clause} {_NEWEST_FIRST}"  # noqa: S608
        with self.database.read() as connection:
            rows = connection.execute(statement, (now, *bound)).fetchall()
        return ((item_id, json.loads(content)) for item_id, content in rows)

    def load(self, ids: Iterable[str], *, now: float) -> dict[str, Item]:
        """Return the items with these ids that exist, by id."""
        clause = f"{_ALIVE} and id in (select value from json_each(?))"  # noqa: S608
        return {item.id: item for item in self._items(clause, now, json.dumps(list(ids)))}

    def namespaces(self, *, now: float) -> list[tuple[str, ...]]:
        """Return every namespace that holds an item."""
        with self.database.read() as connection:
            rows = connection.execute(f"select distinct namespace from items where {_ALIVE}", (now,))  # noqa: S608
            return [tuple(json.loads(row[0])) for row in rows]

    def expired(self, *, now: float) -> list[Item]:
        """Return the expired items."""
        return self._items("expires_at <= ?", now)

    def _items(self, clause: str, *bound: object) -> list[Item]:
        with self.database.read() as connection:
            rows: Any = connection.execute(f"select {_COLUMNS} from items where {clause}", bound)  # noqa: S608
            return [_item(*row) for row in rows]

    # ---- changing --------------------------------------------------------------------------------------------

    def put(self, put: Put, *, at: float) -> None:
        """Store a value under its name, or replace the one stored there."""
        expires = None if put.ttl_s is None else at + put.ttl_s
        name = _name(put.namespace, put.key)
        with self.database.write() as connection:
            seq = _next_seq(connection)
            content = (json.dumps(put.value), json.dumps(put.texts))
            bound = (secrets.token_hex(16), *name, *content, at, at, put.ttl_s, expires, seq)
            connection.execute(_CHANGE, (value(connection, _PUT, bound), seq, name[0]))

    def delete(self, item: Item) -> None:
        """Delete an item."""
        with self.database.write() as connection:
            connection.execute("delete from items where id = ?", (item.id,))
            connection.execute(_CHANGE, (item.id, _next_seq(connection), _pack(item.namespace)))

    def mark_for_erasure(self, item: Item, hashes: Iterable[str]) -> None:
        """Record that the derived index may still hold a deleted item and its vectors.

        The record carries the number of the change, so an item that is deleted again while it is erased keeps one.
        """
        with self.database.write() as connection:
            number = value(connection, _META, (_SEQ,))
            names = [(f"{name} {number}",) for name in (item.id, *hashes)]
            connection.executemany("insert into item_erasures(hash) values(?) on conflict do nothing", names)

    def refresh(self, ids: Iterable[str], *, at: float) -> None:
        """Start the time to live of these items again, if they have one."""
        with self.database.write() as connection:
            connection.executemany(
                "update items set expires_at = ? + ttl_s where id = ? and ttl_s is not null",
                [(at, item_id) for item_id in ids],
            )

    # ---- for the index ---------------------------------------------------------------------------------------

    def seq(self) -> int:
        """Return the number of the newest change; 0 before the first."""
        with self.database.read() as connection:
            return int(value(connection, _META, (_SEQ,)) or 0)

    def mark(self, seq: int) -> str:
        """Return a text that identifies a change; empty for a change that is unknown or too old."""
        with self.database.read() as connection:
            return str(value(connection, "select mark from item_marks where seq = ?", (seq,)) or "")

    def changed_since(self, seq: int) -> dict[str, tuple[str, ...]]:
        """Return the namespaces of the items that changed after this change, by id, including deleted ones."""
        with self.database.read() as connection:
            rows = connection.execute("select id, namespace from item_changes where seq > ?", (seq,))
            return {str(item_id): tuple(json.loads(str(packed))) for item_id, packed in rows}

    def unfinished(self) -> list[str]:
        """Return what is not erased yet: hashes of vectors and ids of items, each with the number of its change."""
        with self.database.read() as connection:
            return [str(row[0]) for row in connection.execute("select hash from item_erasures order by hash")]

    def finish(self, names: Iterable[str], seq: int) -> bool:
        """Truncate the log, and record that these are erased and that the index contains this change.

        Return False while another process reads, because the log then still contains deleted text.
        """
        if not self.database.purge():
            return False
        with self.database.write() as connection:
            gone = list(names)
            connection.executemany("delete from item_erasures where hash = ?", [(name,) for name in gone])
            connection.executemany(_FORGET, [(name.partition(" ")[0], seq) for name in gone])
        return self.database.purge()

    def check(self, *, deep: bool = False) -> list[str]:
        """Return what is wrong with the file, one sentence each. ``deep`` also compares rows with their checksums."""
        return self.database.check(deep=deep)

    def close(self) -> None:
        """Close every connection."""
        self.database.close()


# ---- rows --------------------------------------------------------------------------------------------------------


def _item(item_id: str, namespace: str, key: str, content: str, texts: str, *times: Any) -> Item:
    where = (tuple(json.loads(namespace)), key)
    return Item(item_id, *where, json.loads(content), tuple(json.loads(texts)), *times)


def _next_seq(connection: Connection) -> int:
    """Return the number of a new change. In a write transaction no other process can take it."""
    number = int(value(connection, _META, (_SEQ,)) or 0) + 1
    connection.execute(_SET_META, (_SEQ, str(number)))
    connection.execute("insert into item_marks(seq, mark) values(?, ?)", (number, secrets.token_hex(8)))
    connection.execute("delete from item_marks where seq <= ?", (number - MARKS,))
    return number


def _name(namespace: Sequence[str], key: str) -> tuple[str, str]:
    """Return the name of an item as it is stored. A secret in it is replaced."""
    return _pack([clean_name(_encodable(label)) for label in namespace]), clean_name(_encodable(key))


def _pack(namespace: Sequence[str]) -> str:
    """Return a namespace as text; different namespaces have different texts."""
    return json.dumps([_encodable(label) for label in namespace], ensure_ascii=False, separators=(",", ":"))


def _under(prefix: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the SQL condition for a prefix: the namespace itself, and those that continue it after a comma."""
    if not prefix:
        return "true", ()
    clauses, bound = list[str](), list[str]()
    # Older versions stored names as they were.
    for whole in dict.fromkeys((_name(prefix, "")[0], _pack(prefix))):
        stem = whole.removesuffix("]")
        clauses.append("namespace = ? or (namespace >= ? and namespace < ?)")
        bound += (whole, f"{stem},", f"{stem}-")
    return f"({' or '.join(clauses)})", tuple(bound)


def _encodable(name: str) -> str:
    """Return the name, or raise if it cannot be encoded as UTF-8."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise WriteError(f"{name!r} cannot be a name: it cannot be encoded as UTF-8.") from error
    return name
