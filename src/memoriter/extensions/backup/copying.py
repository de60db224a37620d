"""Copy a SQLite database while other processes use it. The copy is one state of the database, and it is checked."""

from __future__ import annotations

import contextlib
from pathlib import Path
from urllib.parse import quote

import apsw

from memoriter.errors import StoreBroken
from memoriter.store.checksums import damaged_rows
from memoriter.store.connection import SIDE_FILES, run, translate_errors
from memoriter.store.protocol import value

#: Milliseconds that a copy waits for a writer.
BUSY_MS = 30_000


def copy_database(source: Path, target: Path) -> None:
    """Write a checked copy of a database to a new file. Deleted content is not copied."""
    with translate_errors(source), contextlib.closing(_open(source)) as connection:
        connection.set_busy_timeout(BUSY_MS)
        connection.execute("vacuum into ?", (str(target),)).fetchall()
    check_database(target, name=source)


def check_database(path: Path, *, name: Path | None = None) -> None:
    """Raise `StoreBroken` if a database is damaged. ``name`` is the file that the error names, by default its own."""
    with translate_errors(name or path), contextlib.closing(_open(path, immutable=True)) as connection:
        problem = value(connection, "pragma integrity_check(1)")
        problems = damaged_rows(connection) if problem == "ok" else [f"{problem}."]
    if problems:
        raise StoreBroken(f"{name or path} is damaged: {' '.join(problems)}")


def _open(path: Path, *, immutable: bool = False) -> apsw.Connection:
    """Open a database for reading. On a read-only disk SQLite needs to know that nothing changes it."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"file:{quote(str(path))}{'?immutable=1' if immutable else ''}", flags=flags)
    try:
        run(connection, "select count(*) from sqlite_schema")
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        connection.close()
        has_log = any(path.with_name(path.name + suffix).exists() for suffix in SIDE_FILES)
        if immutable or has_log:
            raise
        return _open(path, immutable=True)
    except BaseException:
        connection.close()
        raise
    return connection
