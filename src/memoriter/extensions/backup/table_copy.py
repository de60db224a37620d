"""Copy the tables of a memory from one database to another, and verify every row.

A copy that was interrupted continues: rows that the target has already are not written again. At the end the number of
rows and a digest over all values of every table are equal on both sides, or the copy fails.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from memoriter.errors import StoreError
from memoriter.records import Entry, Progress, ProgressCallback
from memoriter.store.protocol import Connection, Transactions, value

#: Rows that are read and written together.
BATCH = 1000


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is copied."""

    name: str
    columns: tuple[str, ...]
    #: The columns that identify a row.
    key: tuple[str, ...]
    #: Columns that a server stores as boolean and SQLite as a number.
    booleans: tuple[str, ...] = ()
    #: Only these rows belong to the area.
    where: str = "true"


def _table(
    name: str, columns: str, key: str, *, booleans: tuple[str, ...] = (), where: str = "true"
) -> Table:
    return Table(name, tuple(columns.split()), tuple(key.split()), booleans, where)


#: Every table of record, by area. The order is that of copying: what makes a memory complete comes last.
TABLES = {
    "entries": (
        _table("meta", "key value", "key", where="key not in ('items', 'items_seq')"),
        _table("tombstones", "digest at seq", "digest"),
        _table("unfinished", "hash", "hash"),
        _table("retention", "entry_id since", "entry_id"),
        _table("recalls", "id at interface session query characters tokens block", "id"),
        _table(
            "recalled",
            "recall_id position kind ref entered reason score parts text",
            "recall_id position",
            booleans=("entered",),
        ),
        Table("entries", (*(field.name for field in fields(Entry)), "digest"), ("id",)),
        _table("events", "seq change at kind entry_id by note before after said", "seq"),
    ),
    "items": (
        _table("meta", "key value", "key", where="key in ('items', 'items_seq')"),
        _table("item_changes", "id seq namespace", "id"),
        _table("item_erasures", "hash", "hash"),
        _table("item_marks", "seq mark", "seq"),
        _table("items", "id namespace key value texts created_at updated_at ttl_s expires_at seq", "id"),
    ),
}


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """A table that is the same on both sides."""

    area: str
    name: str
    rows: int
    #: SHA-256 over all values, in the order of the key.
    digest: str


def copy_area(
    area: str, source: Transactions, target: Transactions, progress: ProgressCallback | None = None
) -> list[CopiedTable]:
    """Copy all tables of an area and verify them. Raise if the target holds another memory."""
    _check_target(area, source, target)
    with source.pinned():
        for table in TABLES[area]:
            _copy(table, source, target, progress)
        copied = []
        for table in TABLES[area]:
            wanted, found = _measure(table, source), _measure(table, target)
            if wanted != found:
                raise StoreError(
                    f"The table {table.name} differs after the copy: {wanted[0]} rows in {source.name}, "
                    f"{found[0]} in {target.name}. The target was used meanwhile, or it held another memory."
                )
            copied.append(CopiedTable(area, table.name, *wanted))
    return copied


def _check_target(area: str, source: Transactions, target: Transactions) -> None:
    """Raise if the target holds another memory than the source. Clear the identity of one that was never used."""
    meta = TABLES[area][0]
    identity = f"select value from meta where key = '{'store' if area == 'entries' else 'items'}'"  # noqa: S608
    with source.read() as connection:
        own = value(connection, identity)
    with target.write() as connection:
        theirs = value(connection, identity)
        if theirs is None or theirs == own:
            return
        for table in TABLES[area][1:]:
            if value(connection, f"select count(*) from {table.name}"):  # noqa: S608
                raise StoreError(
                    f"{target.name} already holds another memory of this agent. Choose an agent or a tenant "
                    "that has none."
                )
        connection.execute(f"delete from meta where {meta.where}")  # noqa: S608


def _copy(
    table: Table, source: Transactions, target: Transactions, progress: ProgressCallback | None
) -> None:
    if _measure(table, source) == _measure(table, target):
        return
    names, marks = ", ".join(table.columns), ", ".join("?" * len(table.columns))
    # Rows with the same key were copied before. If one of them differs, the verification says so.
    insert = f"insert into {table.name}({names}) values({marks}) on conflict do nothing"
    with source.read() as reading:
        total = int(value(reading, f"select count(*) from {table.name} where {table.where}"))  # noqa: S608
        done = 0
        for rows in _batches(table, reading):
            with target.write() as writing:
                writing.executemany(insert, rows)
            done += len(rows)
            if progress:
                progress(Progress("migrate", done, total, table.name))


def _batches(table: Table, connection: Connection) -> Iterator[list[tuple[object, ...]]]:
    """Yield the rows in the order of their key."""
    statement = (
        f"select {', '.join(table.columns)} from {table.name} where {table.where}"  # noqa: S608
        f" order by {', '.join(table.key)} limit ? offset ?"
    )
    offset = 0
    while rows := connection.execute(statement, (BATCH, offset)).fetchall():
        yield [_plain(table, row) for row in rows]
        offset += len(rows)


def _plain(table: Table, row: Sequence[object]) -> tuple[object, ...]:
    """Return a row as both stores hold it: some servers have booleans, and no null character in texts."""
    return tuple(
        bool(cell)
        if name in table.booleans
        else cell.replace("\0", "\ufffd")
        if isinstance(cell, str)
        else cell
        for name, cell in zip(table.columns, row, strict=True)
    )


def _measure(table: Table, database: Transactions) -> tuple[int, str]:
    """Return the number of rows and a digest over all values."""
    digest, count = hashlib.sha256(), 0
    with database.read() as connection:
        for rows in _batches(table, connection):
            count += len(rows)
            for row in rows:
                digest.update(json.dumps(row).encode() + b"\n")
    return count, digest.hexdigest()
