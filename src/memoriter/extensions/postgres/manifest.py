"""The content of a working copy: the version, digest and stat of each file, in a small SQLite file beside them.

It is a cache like the files. If it is missing or damaged, all files are compared with the server again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import apsw

NAME = ".working-copy.db"
_SCHEMA = """
pragma journal_mode = wal; pragma synchronous = off;
create table if not exists files(path text primary key, version integer, size integer, digest text, changed_ns integer)
without rowid;
create table if not exists clock(id integer primary key, version integer, stamp text);
"""


@dataclass(frozen=True, slots=True)
class Clock:
    """The state of an agent's files: the number of the last change, and a random mark of it."""

    version: int = -1
    stamp: str = ""


@dataclass(frozen=True, slots=True)
class FileState:
    """One file of a working copy, as it was stored."""

    version: int
    size: int
    digest: str
    changed_ns: int

    @property
    def stat(self) -> tuple[int, int]:
        """The time and size by which a change is noticed."""
        return self.changed_ns, self.size


class Manifest:
    """The manifest of one working copy. Callers hold the lock of the working copy."""

    def __init__(self, root: Path) -> None:
        self._path = root / NAME
        self._connection: apsw.Connection | None = None
        self._inode = 0

    def is_present(self) -> bool:
        """Return whether the file is still the one that was opened. The working copy may have been deleted."""
        try:
            return self._connection is not None and os.stat(self._path).st_ino == self._inode  # noqa: PTH116
        except OSError:
            return False

    def clock(self) -> Clock:
        """Return the state up to which changes were fetched."""
        for version, stamp in self._open().execute("select version, stamp from clock"):
            return Clock(version, stamp)
        return Clock()

    def files(self) -> dict[str, FileState]:
        """Return all files."""
        rows = self._open().execute("select path, version, size, digest, changed_ns from files")
        return {path: FileState(*state) for path, *state in rows}

    def below(self, path: str) -> dict[str, FileState]:
        """Return the file with this path, or the files below it."""
        rows = self._open().execute(
            "select path, version, size, digest, changed_ns from files where path = ? or (path > ? and path < ?)",
            (path, f"{path}/", f"{path}0"),  # "0" follows "/"
        )
        return {found: FileState(*state) for found, *state in rows}

    def put(self, clock: Clock, files: Mapping[str, FileState | None]) -> None:
        """Record files, None for those that are gone, and the state that they belong to."""
        connection = self._open()
        with connection:
            _write(connection, files.items())
            connection.execute("insert or replace into clock values(1, ?, ?)", (clock.version, clock.stamp))

    def close(self) -> None:
        """Close the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(apsw.Error):
                connection.close()

    def _open(self) -> apsw.Connection:
        if self._connection is not None and self.is_present():
            return self._connection
        self.close()
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._connection = _connect(self._path)
        except apsw.Error:  # damaged: start again
            for file in _side_files(self._path):
                file.unlink(missing_ok=True)
            self._connection = _connect(self._path)
        self._inode = os.stat(self._path).st_ino  # noqa: PTH116
        return self._connection


def _connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(10_000)
    for _ in connection.execute(_SCHEMA):
        pass
    return connection


def _write(connection: apsw.Connection, files: Iterable[tuple[str, FileState | None]]) -> None:
    for path, state in files:
        if state is None:
            connection.execute("delete from files where path = ?", (path,))
        else:
            connection.execute(
                "insert or replace into files values(?, ?, ?, ?, ?)",
                (path, state.version, state.size, state.digest, state.changed_ns),
            )


def _side_files(path: Path) -> Iterator[Path]:
    yield from (path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm"))
