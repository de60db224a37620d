"""``items.db``: values that programs keep under a name. It is truth: what is put is on the disk when the call returns.

An item is found by its namespace and key, and goes when it is deleted or its time is over. Keywords and vectors are
derived elsewhere, by comparing sequence numbers. What a value means is known only to the program that put it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from memoriter.errors import WriteError
from memoriter.records import Condition, Item, Put
from memoriter.store.connection import Migration, value
from memoriter.store.database import Database

EXACT = 2.0**53  #: numbers below this are the same as integers and as floats

_NUMBER = "(json_type(value, ?) not in ('integer', 'real') or value ->> ? {} ?)"
"""A text may hold a number too: SQLite would call it greater than every number."""


@dataclass(frozen=True, slots=True)
class Question:
    """A part of a statement over ``items``."""

    part: str  #: what to read of a value, as JSON
    part_bound: tuple[object, ...]
    clause: str  #: empty, or conditions that begin with "and"
    clause_bound: tuple[object, ...]


def question(names: Iterable[str], conditions: Iterable[Condition]) -> Question:
    """How to read these members of the values that may fulfil all conditions."""
    paths = {name: _path(name) for name in names}
    part, part_bound = "value", list[object]()
    if all(paths.values()):
        members = ", ".join("?, value -> ?" for _ in paths)
        part = f"iif(instr(value, 'NaN'), value, json_object({members}))"  # SQLite would make null of it
        part_bound = [bound for pair in paths.items() for bound in pair]
    clause, bound = "", list[object]()
    for name, sign, wanted in conditions:
        path = _path(name)
        if path is None or not _comparable(wanted):
            continue
        if wanted is None:
            clause, bound = f"{clause} and value ->> ? is null", [*bound, path]
        elif sign == "=":
            clause, bound = f"{clause} and value ->> ? = ?", [*bound, path, wanted]
        else:
            clause, bound = f"{clause} and {_NUMBER.format(sign)}", [*bound, path, path, wanted]
    return Question(part, tuple(part_bound), clause, tuple(bound))


def _path(name: str) -> str | None:
    """Where SQLite finds the member of this name; None for one that it could not name."""
    return f'$."{name}"' if _plain(name) and '"' not in name and "\\" not in name else None


def _comparable(wanted: str | float | None) -> bool:
    if isinstance(wanted, str):
        return _plain(wanted)
    return wanted is None or abs(wanted) < EXACT


def _plain(text: str) -> bool:
    """Whether SQLite takes a text as it is: one with a null or half a character it does not."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


APPLICATION_ID = 0x72656369  # "reci"

_M001 = Migration(
    "m001_initial",
    (
        "create table meta(key text primary key, value text not null) without rowid",
        "insert into meta(key, value) values('store', lower(hex(randomblob(16))))",
        """create table items(
            id text primary key, namespace text not null, key text not null, value text not null,
            texts text not null, created_at real not null, updated_at real not null, ttl_s real,
            expires_at real, unique(namespace, key))""",
        "create index items_expiry on items(expires_at) where expires_at is not null",
        # One row an item that ever was; a change gives it a new number, greater than all before.
        """create table changes(
            seq integer primary key autoincrement, id text not null unique, namespace text not null)""",
        # Vectors of deleted texts, by hash, that the derived index may still hold, and the items that had them, by
        # id: what was cut short is completed.
        "create table unfinished(hash text primary key) without rowid",
    ),
)

MIGRATIONS = (_M001,)

_COLUMNS = "id, namespace, key, value, texts, created_at, updated_at, ttl_s, expires_at"
_ALIVE = "(expires_at is null or expires_at > ?)"
_NEWEST_FIRST = "order by updated_at desc, rowid desc"
_PUT = """
    insert into items(id, namespace, key, value, texts, created_at, updated_at, ttl_s, expires_at)
    values(lower(hex(randomblob(16))), ?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7)
    on conflict(namespace, key) do update set
        value = ?3, texts = ?4, updated_at = ?5, ttl_s = ?6, expires_at = ?7
    returning id"""

_NEWEST = "select max(seq) from sqlite_sequence where name = 'changes'"
_FORGET = """
    delete from changes where id = ?1 and seq <= ?2 and not exists(select 1 from items where id = ?1)"""


class ItemStore:
    """What ``items.db`` holds. Safe to use from many threads and processes at once."""

    def __init__(self, folder: Path, *, timeout_s: float = 30.0) -> None:
        self.path = folder / "items.db"
        self.database = Database(
            self.path,
            application_id=APPLICATION_ID,
            migrations=MIGRATIONS,
            synchronous="FULL",
            timeout_s=timeout_s,
        )
        with self.database.read() as connection:
            self.store_id = str(value(connection, "select value from meta where key = 'store'"))

    # ---- reading ---------------------------------------------------------------------------------------------

    def get(self, namespace: Sequence[str], key: str, *, now: float) -> Item | None:
        """The item under this name, unless its time is over."""
        found = self._items("namespace = ? and key = ?", (_packed(namespace), _encodable(key)), now)
        return found[0] if found else None

    def ids_under(self, prefix: Sequence[str], *, now: float) -> list[str]:
        """The ids of the items in every namespace that begins so, the last changed first."""
        clause, bound = _beneath(prefix)
        statement = f"select id from items where {_ALIVE} and {clause} {_NEWEST_FIRST}"  # noqa: S608
        with self.database.read() as connection:
            return [str(row[0]) for row in connection.execute(statement, (now, *bound))]

    def parts_under(
        self, prefix: Sequence[str], names: Iterable[str], conditions: Iterable[Condition], *, now: float
    ) -> list[tuple[str, dict[str, Any]]]:
        """Ids in the same order, each with these members of its value, where it may fulfil the conditions."""
        clause, bound = _beneath(prefix)
        asked = question(names, conditions)
        statement = "select id, {} from items where {} and {}{} {}"
        with self.database.read() as connection:
            try:
                filled = statement.format(asked.part, _ALIVE, clause, asked.clause, _NEWEST_FIRST)
                values = (*asked.part_bound, now, *bound, *asked.clause_bound)
                rows: Any = connection.execute(filled, values).fetchall()
            except apsw.SQLError:  # a value that is deeper than SQLite reads: Python reads them all
                filled = statement.format("value", _ALIVE, clause, "", _NEWEST_FIRST)
                rows = connection.execute(filled, (now, *bound)).fetchall()
        return [(item_id, json.loads(part)) for item_id, part in rows]

    def load(self, ids: Iterable[str], *, now: float) -> dict[str, Item]:
        """The items of these ids that are there."""
        wanted = (json.dumps(list(ids)),)
        return {item.id: item for item in self._items("id in (select value from json_each(?))", wanted, now)}

    def namespaces(self, *, now: float) -> list[tuple[str, ...]]:
        """Every namespace that holds an item."""
        with self.database.read() as connection:
            rows = connection.execute(f"select distinct namespace from items where {_ALIVE}", (now,))  # noqa: S608
            return [tuple(json.loads(row[0])) for row in rows]

    def expired(self, *, now: float) -> list[Item]:
        """The items whose time is over."""
        with self.database.read() as connection:
            rows: Any = connection.execute(
                f"select {_COLUMNS} from items where expires_at <= ?",  # noqa: S608
                (now,),
            )
            return [_item(*row) for row in rows]

    def _items(self, clause: str, bound: tuple[str, ...], now: float) -> list[Item]:
        with self.database.read() as connection:
            rows: Any = connection.execute(
                f"select {_COLUMNS} from items where {_ALIVE} and {clause}",  # noqa: S608 - clauses of ours
                (now, *bound),
            )
            return [_item(*row) for row in rows]

    # ---- changing --------------------------------------------------------------------------------------------

    def put(self, put: Put, *, at: float) -> None:
        """Keep a value under its name, in place of the one that stands there."""
        expires = None if put.ttl_s is None else at + put.ttl_s
        name = (_packed(put.namespace), _encodable(put.key))
        with self.database.write() as connection:
            bound = (*name, json.dumps(put.value), json.dumps(put.texts), at, put.ttl_s, expires)
            _changed(connection, str(value(connection, _PUT, bound)), put.namespace)

    def delete(self, item: Item) -> None:
        """Delete an item."""
        with self.database.write() as connection:
            connection.execute("delete from items where id = ?", (item.id,))
            _changed(connection, item.id, item.namespace)

    def mark_for_erasure(self, item: Item, hashes: Iterable[str]) -> None:
        """Record that the derived index may still hold a deleted item and its vectors.

        The record carries the number of the change, so an item that is deleted again while it is erased keeps one.
        """
        with self.database.write() as connection:
            number = value(connection, _NEWEST)
            names = [(f"{name} {number}",) for name in (item.id, *hashes)]
            connection.executemany("insert or ignore into unfinished(hash) values(?)", names)

    def refresh(self, ids: Iterable[str], *, at: float) -> None:
        """Let the time of these items begin anew, where they have one."""
        with self.database.write() as connection:
            connection.executemany(
                "update items set expires_at = ? + ttl_s where id = ? and ttl_s is not null",
                [(at, item_id) for item_id in ids],
            )

    # ---- for those who follow --------------------------------------------------------------------------------

    def seq(self) -> int:
        """The number of the newest change; 0 before the first."""
        with self.database.read() as connection:
            return int(value(connection, _NEWEST) or 0)

    def changed_since(self, seq: int) -> dict[str, tuple[str, ...]]:
        """The namespaces of the items that changed after this, by id; deleted ones are among them."""
        with self.database.read() as connection:
            rows = connection.execute("select id, namespace from changes where seq > ?", (seq,))
            return {str(item_id): tuple(json.loads(str(packed))) for item_id, packed in rows}

    def unfinished(self) -> list[str]:
        """What still has to go: names of vectors, and ids of items, each with a number after a space."""
        with self.database.read() as connection:
            return [str(row[0]) for row in connection.execute("select hash from unfinished")]

    def finish(self, names: Iterable[str], seq: int) -> bool:
        """Empty the log, and note that these are gone, and that the index has come to this change.

        False while another process reads, so that deleted text still stands in the log.
        """
        if not self.database.truncate_log():
            return False
        with self.database.write() as connection:
            gone = list(names)
            connection.executemany("delete from unfinished where hash = ?", [(name,) for name in gone])
            connection.executemany(_FORGET, [(name.partition(" ")[0], seq) for name in gone])
        return self.database.truncate_log()

    def close(self) -> None:
        """Close every connection; the store can no longer be used."""
        self.database.close()


# ---- rows --------------------------------------------------------------------------------------------------------


def _item(
    item_id: str,
    namespace: str,
    key: str,
    content: str,
    texts: str,
    created: float,
    updated: float,
    *time: Any,
) -> Item:
    where = (tuple(json.loads(namespace)), key)
    return Item(item_id, *where, json.loads(content), tuple(json.loads(texts)), created, updated, *time)


def _changed(connection: apsw.Connection, item_id: str, namespace: Sequence[str]) -> None:
    statement = "insert or replace into changes(id, namespace) values(?, ?)"
    connection.execute(statement, (item_id, _packed(namespace)))


def _packed(namespace: Sequence[str]) -> str:
    """A namespace as text, in which no two look alike."""
    return json.dumps([_encodable(label) for label in namespace], ensure_ascii=False, separators=(",", ":"))


def _beneath(prefix: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The namespaces that begin so: the prefix itself, and all whose text goes on after it with a comma."""
    if not prefix:
        return "true", ()
    whole = _packed(prefix)
    stem = whole.removesuffix("]")
    return "(namespace = ? or (namespace >= ? and namespace < ?))", (whole, f"{stem},", f"{stem}-")


def _encodable(name: str) -> str:
    """The name itself; one that no file and no other program could hold is refused."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise WriteError(f"{name!r} cannot be a name: it has no UTF-8 form.") from error
    return name
