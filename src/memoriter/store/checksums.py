"""Checksums: in every row of the databases of truth, and in every page of an index, since SQLite stores none.

Triggers compute the checksum of a row at every write, so that no statement can forget it. A check compares it; ordinary
reads ignore it. The checksum of a page is written and compared by an extension of SQLite, at every read from the disk.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import apsw
from apsw import sqlite_extra

from memoriter import logs

log = logs.get("store")

COLUMN = "checksum"
#: Counters that a recall advances. A checksum of them would be computed again over a damaged row.
COUNTERS = ("access_count", "last_accessed_at")
#: Damaged rows that a check names in each table.
MAX_NAMED = 5

_FUNCTION = "row_checksum"
_TABLES = f"select name from sqlite_schema where type = 'table' and sql like '% {COLUMN} %' order by name"  # noqa: S608


def checksum(*values: object) -> int:
    """Return the checksum of the values of a row."""
    return zlib.crc32(json.dumps(values).encode())


def register(connection: apsw.Connection) -> None:
    """Provide the function that the triggers call."""
    connection.create_scalar_function(_FUNCTION, checksum, deterministic=True, flags=apsw.SQLITE_INNOCUOUS)


#: Bytes at the end of every page that hold its checksum.
PAGE_BYTES = 8
_EXTENSION, _VFS = "cksumvfs", "cksmvfs"


@cache
def page_vfs() -> str | None:
    """Return the name of the file layer that checks pages; None if this build of SQLite does not have it."""
    default = apsw.vfs_names()[0]
    try:
        with contextlib.closing(apsw.Connection(":memory:")) as connection:
            sqlite_extra.load(connection, _EXTENSION)
    except (apsw.Error, sqlite_extra.NotAvailable, ImportError, OSError) as error:
        log.warning("damage to an index may stay unnoticed, because its pages have no checksums: %s", error)
        return None
    apsw.set_default_vfs(default)  # the extension makes itself the default of the whole process
    return _VFS


def add_checksums(table: str, key: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """Return the statements that give every row of a table a checksum of these columns, now and at every write."""

    def computed(row: str) -> str:
        return f"{_FUNCTION}({', '.join(row + column for column in columns)})"

    same = " and ".join(f"{column} = new.{column}" for column in key)
    update = f"update {table} set {COLUMN} = {computed('new.')} where {same}"  # noqa: S608
    return (
        f"alter table {table} add column {COLUMN} integer",
        f"update {table} set {COLUMN} = {computed('')}",  # noqa: S608
        f"create trigger {table}_inserted after insert on {table} begin {update}; end",
        f"create trigger {table}_updated after update of {', '.join(columns)} on {table} begin {update}; end",
    )


def damaged_rows(connection: apsw.Connection) -> list[str]:
    """Compare every row with its checksum; name the tables and the rows that differ."""
    found: list[str] = []
    for (table,) in connection.execute(_TABLES).fetchall():
        info: Any = connection.execute("select name, pk from pragma_table_info(?)", (table,)).fetchall()
        columns = [name for name, _ in info if name != COLUMN and name not in COUNTERS]
        key = columns.index(min((pk, name) for name, pk in info if pk)[1])
        damaged = list(_damaged(connection, str(table), columns, key))
        if damaged:
            named = ", ".join([*damaged[:MAX_NAMED], *(["…"] if len(damaged) > MAX_NAMED else [])])
            rows = "row is" if len(damaged) == 1 else "rows are"
            found.append(f"{len(damaged)} {rows} damaged in the table {table}: {named}.")
    return found


def _damaged(connection: apsw.Connection, table: str, columns: Sequence[str], key: int) -> Iterator[str]:
    rows: Any = connection.execute(f"select {', '.join(columns)}, {COLUMN} from {table}")  # noqa: S608
    for *values, stored in rows:
        try:
            intact = checksum(*values) == stored
        except TypeError:  # a text that has become bytes
            intact = False
        if not intact:
            yield str(values[key])
