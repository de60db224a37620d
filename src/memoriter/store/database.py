"""One SQLite file shared by threads and processes: one writer, a reader for each thread, errors in our own words.

It knows nothing of what the tables mean, and it never repairs: a derived store is set aside by ``healing``, a store
of record is restored by its owner.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import apsw

from memoriter.errors import StoreBroken, StoreError, StoreLocked
from memoriter.store.connection import (
    SIDE_FILES,
    Handle,
    Inode,
    Migration,
    MovedError,
    Opener,
    inode_of,
    roll_back,
    run,
    store_lock,
    translated,
    value,
)

__all__ = ["Database", "Migration"]

_inherited: list[apsw.Connection] = []
"""Connections that came through a fork: never used, nor closed, for closing could remove the parent's log."""


class Database:
    """One SQLite file: a writer under a lock, and a reader for each thread."""

    def __init__(
        self,
        path: Path,
        *,
        application_id: int,
        migrations: Sequence[Migration],
        synchronous: Literal["NORMAL", "FULL"],
        timeout_s: float = 30.0,
        on_connect: Callable[[apsw.Connection], None] | None = None,
    ) -> None:
        self.path = path
        self._opener = Opener(path, application_id, tuple(migrations), synchronous, timeout_s, on_connect)
        self._timeout_s = timeout_s
        self._closed = False
        self._connections: weakref.WeakSet[apsw.Connection] = weakref.WeakSet()
        self._local = threading.local()  # .handle: this thread's reader; .used: the file it last worked on
        self._write_lock = threading.Lock()
        self._writer: Handle | None = None
        self._owner: int | None = None  # the thread whose write transaction is open
        self._doomed = False  # a part of the open transaction failed
        self.reader()

    # ---- reading ---------------------------------------------------------------------------------------------

    def reader(self) -> apsw.Connection:
        """This thread's read connection; inside ``write()`` the writer, so that one reads what one wrote."""
        if self._owner == threading.get_ident() and self._writer is not None:
            return self._writer.connection
        handle: Handle | None = getattr(self._local, "handle", None)
        if handle is None or not self._is_current(handle):
            with translated(self.path):
                self._drop(handle)
                handle = self._open(query_only=True)
            self._local.handle = handle
        self._local.used = handle.inode
        return handle.connection

    @contextlib.contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """The reader, with SQLite's errors translated."""
        connection = self.reader()
        with translated(self.path):
            yield connection

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[apsw.Connection]:
        """The reader; everything that this thread reads inside sees one state of the database."""
        with self.read() as connection:
            if connection.in_transaction:  # an outer snapshot, or our own write
                yield connection
                return
            run(connection, "begin")
            try:
                yield connection
            finally:
                roll_back(connection)

    # ---- writing ---------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def write(self) -> Iterator[apsw.Connection]:
        """One transaction: committed at the end, rolled back on any error. A nested call joins the outer one."""
        if self._owner == threading.get_ident():
            with self._joined() as connection:
                yield connection
            return
        if not self._write_lock.acquire(timeout=self._timeout_s):
            raise StoreLocked(f"{self.path}: another thread has been writing for {self._timeout_s:g} s")
        try:
            with translated(self.path), self._transaction() as connection:
                yield connection
        finally:
            self._write_lock.release()

    @contextlib.contextmanager
    def _joined(self) -> Iterator[apsw.Connection]:
        assert self._writer is not None
        try:
            yield self._writer.connection
        except BaseException:
            # Savepoints would make FTS5 flush at each document; instead a failed part fails the whole.
            self._doomed = True
            raise

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[apsw.Connection]:
        connection = self._begin()
        self._owner, self._doomed = threading.get_ident(), False
        try:
            yield connection
            self._refuse_doomed()
            run(connection, "commit")
        except BaseException:
            roll_back(connection)
            raise
        finally:
            self._owner = None

    def _refuse_doomed(self) -> None:
        if self._doomed:
            raise StoreError(f"{self.path}: nothing was written, because a part of the transaction failed")

    def _begin(self) -> apsw.Connection:
        """A write transaction on the file that stands at the path now."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            if self._writer is None or not self._is_current(self._writer):
                self._drop(self._writer)
                self._writer = self._open(query_only=False)
            self._local.used = self._writer.inode
            run(self._writer.connection, "begin immediate")
            if self._writer.inode == inode_of(self.path):
                return self._writer.connection
            roll_back(self._writer.connection)  # the file was replaced while we waited for its lock
            if time.monotonic() > deadline:
                raise StoreLocked(f"{self.path}: the file keeps being replaced")

    # ---- opening and closing ---------------------------------------------------------------------------------

    def _open(self, *, query_only: bool) -> Handle:
        """Open a connection, again and again while others are about the same.

        Turning a new file to WAL takes an exclusive lock for which SQLite does not call its busy handler, so
        the first open of several processes at once can be refused at once.
        """
        deadline = time.monotonic() + self._timeout_s
        while not self._closed:
            try:
                handle = self._opener.open(query_only=query_only)
            except (apsw.BusyError, apsw.LockedError, MovedError) as error:
                if time.monotonic() > deadline:
                    waited = f"{self._timeout_s:g} s"
                    raise StoreLocked(f"{self.path}: cannot be opened within {waited}") from error
                time.sleep(0.01)
                continue
            self._connections.add(handle.connection)
            return handle
        raise StoreError(f"{self.path}: is closed")

    def _is_current(self, handle: Handle) -> bool:
        """Whether the handle may be used on. The inode of a file that is open is never given to another."""
        if self._closed or handle.inode[0] != os.getpid():
            return False
        return handle.connection.in_transaction or handle.inode == inode_of(self.path)

    def _drop(self, handle: Handle | None) -> None:
        if handle is None:
            return
        if handle.inode[0] != os.getpid():
            _inherited.append(handle.connection)
            return
        with contextlib.suppress(apsw.Error):  # in use by another thread: it closes when that lets go
            handle.connection.close()

    def used_inode(self) -> Inode | None:
        """The file that this thread last worked on, which may have been replaced since."""
        return getattr(self._local, "used", None)

    def close(self) -> None:
        """Close every connection of this process to the file."""
        self._closed = True
        self._writer = None
        for connection in list(self._connections):
            with contextlib.suppress(apsw.Error):
                connection.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def truncate_log(self) -> bool:
        """Move all that is committed into the file and leave nothing in the log; False while others read from it."""
        if self._owner == threading.get_ident():
            raise StoreError(f"{self.path}: the log cannot be emptied inside a transaction")
        with self.write():
            pass  # opens the writer where needed
        with self._write_lock, translated(self.path):
            assert self._writer is not None
            busy = value(self._writer.connection, "pragma wal_checkpoint(truncate)")
        return not busy

    def changes_of_others(self) -> int:
        """A number that is another one after somebody else than this object has changed the file.

        SQLite counts for each connection the commits of all others, and everything here is written by one.
        """
        with self.write() as connection:
            return int(value(connection, "pragma data_version"))

    # ---- checking --------------------------------------------------------------------------------------------

    def check(self, *, deep: bool = False) -> list[str]:
        """What is wrong with the file's structure, full-text tables included; empty when all is well.

        A fresh connection looks: on one that has searched, FTS5 checks its own memory of the index, and calls it
        damaged when another connection has written since.
        """
        pragma = "pragma integrity_check(20)" if deep else "pragma quick_check(20)"
        try:
            with translated(self.path):
                handle = self._open(query_only=True)
                try:
                    found = [str(row[0]) for row in handle.connection.execute(pragma)]
                finally:
                    self._drop(handle)
        except StoreBroken as error:
            return [str(error)]
        return [] if found == ["ok"] else found


# ---- damaged databases --------------------------------------------------------------------------------------------

KEPT = 2
"""Broken files that are kept for whoever wants to look at them."""


def set_aside(path: Path, *, broken: Inode | None, timeout_s: float) -> str | None:
    """Rename the database and what lies beside it to ``<name>.broken-<n>``; the new name.

    ``broken`` is the file that was found broken: when another one stands at the path, or none, somebody else
    has been here already, and nothing is done.
    """
    with store_lock(path, timeout_s=timeout_s):
        if broken is None or inode_of(path) != broken:
            return None
        number = max(_numbers(path), default=0) + 1
        aside = path.with_name(f"{path.name}.broken-{number}")
        try:
            path.rename(aside)
        except OSError as error:
            raise StoreError(f"{path}: is broken and cannot be set aside ({error.strerror})") from error
        for suffix in SIDE_FILES:
            with contextlib.suppress(FileNotFoundError):
                path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
        _forget_old(path)
        return aside.name


def _numbers(path: Path) -> list[int]:
    pattern = re.compile(re.escape(path.name) + r"\.broken-(\d+)")
    return sorted(
        int(found[1]) for place in path.parent.iterdir() if (found := pattern.fullmatch(place.name))
    )


def _forget_old(path: Path) -> None:
    for number in _numbers(path)[:-KEPT]:
        for suffix in ("", *SIDE_FILES):
            with contextlib.suppress(OSError):  # a folder, or gone already: it does no harm where it is
                path.with_name(f"{path.name}.broken-{number}{suffix}").unlink()
