"""One SQLite file shared by threads and processes: one writer, and a reader for each thread.

A database never repairs itself. ``discard`` deletes a damaged derived database. Its owner restores any other.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import apsw

from memoriter.errors import StoreBroken, StoreError, StoreLocked
from memoriter.files.platform import sharing, sync_file
from memoriter.store.checksums import damaged_rows
from memoriter.store.connection import (
    Handle,
    Inode,
    Migration,
    MovedError,
    Opener,
    Patience,
    Reading,
    inode_of,
    is_foreign,
    roll_back,
    run,
    side_files,
    store_lock,
    translate_errors,
)
from memoriter.store.protocol import Traces, Transactions, value

__all__ = ["Database", "Migration", "read_migrations"]

#: How long `purge` tries to empty a log, and how long each attempt keeps other writers out while it waits for readers.
PURGE_S, ATTEMPT_S = 5.0, 0.1

_inherited: list[apsw.Connection] = []
"""Connections inherited by a fork. They are neither used nor closed: closing could delete the log of the parent."""


class Database(Transactions):
    """One SQLite file: a writer under a lock, and a reader for each thread."""

    traces = Traces("forget.logs", "forget.busy_logs")

    def __init__(
        self,
        path: Path,
        *,
        application_id: int,
        migrations: Sequence[Migration],
        synchronous: Literal["NORMAL", "FULL"],
        timeout_s: float = 30.0,
        on_connect: Callable[[apsw.Connection], None] | None = None,
        damage: type[StoreBroken] = StoreBroken,
        checked: bool = False,
    ) -> None:
        self.path = path
        self.name = str(path)
        #: The error for a damaged file.
        self._damage = damage
        self._opener = Opener(path, application_id, tuple(migrations), timeout_s, on_connect, checked)
        self._durable = synchronous == "FULL"
        self._timeout_s = timeout_s
        self._closed = False
        self._connections: weakref.WeakSet[apsw.Connection] = weakref.WeakSet()
        self._local = threading.local()  # .handle: this thread's reader; .used: the file it last worked on
        self._write_lock = threading.Lock()
        self._writer: Handle | None = None
        self._owner: int | None = None  # the thread whose write transaction is open
        self._failed = False  # a part of the open transaction failed
        self.reader()

    # ---- reading ---------------------------------------------------------------------------------------------

    def reader(self) -> apsw.Connection:
        """Return the read connection of this thread. Inside ``write()`` it is the writer, to see its changes."""
        if self._owner == threading.get_ident() and self._writer is not None:
            return self._writer.connection
        handle: Handle | None = getattr(self._local, "handle", None)
        if handle is None or not self._is_current(handle):
            with self._errors():
                self._drop(handle)
                handle = self._open(query_only=True)
            self._local.handle = handle
        self._local.used = handle.inode
        return handle.connection

    def read(self) -> contextlib.AbstractContextManager[apsw.Connection]:
        """Return the reader, for statements and the values of their rows. Errors of both are converted."""
        return Reading(self.reader(), self.path, self._damage)

    def _errors(self) -> contextlib.AbstractContextManager[None]:
        return translate_errors(self.path, self._damage)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[apsw.Connection]:
        """Return the reader, as `read` does. All reads of this thread inside see one state of the database."""
        with self.pinned(), self.read() as connection:
            yield connection

    @contextlib.contextmanager
    def pinned(self) -> Iterator[None]:
        connection = self.reader()
        with self._errors():
            if connection.in_transaction:  # an outer snapshot, or a write of this thread
                yield
                return
            run(connection, "begin")
            try:
                yield
            finally:
                roll_back(connection)

    # ---- writing ---------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def write(self, wait_s: float | None = None) -> Iterator[apsw.Connection]:
        if self._owner == threading.get_ident():
            with self._join() as connection:
                yield connection
            return
        wait_s = self._timeout_s if wait_s is None else wait_s
        if not self._write_lock.acquire(timeout=wait_s):
            raise StoreLocked(f"Another thread has been writing {self.path} for {wait_s:g} s. Try again.")
        try:
            with self._errors(), self._transaction(wait_s) as connection:
                before = connection.total_changes()
                yield connection
                changed = connection.total_changes() != before
        finally:
            self._write_lock.release()
        if changed and self._durable:
            self._sync_log()

    def _sync_log(self) -> None:
        """Write the commits in the log to the disk.

        SQLite would do so under its lock, so that every writer waits for the disk in turn. Here the next one writes
        meanwhile, and the disk flushes the commits of several writers together. Commits that a checkpoint has moved
        out of the log are on disk already.
        """
        try:
            descriptor = os.open(f"{self.path}-wal", os.O_RDWR)
        except FileNotFoundError:
            return  # the folder was deleted, or a checkpoint has emptied and removed the log
        except OSError as error:
            raise StoreError(f"Cannot open the log of {self.path}: {error.strerror}.") from error
        try:
            sync_file(descriptor, data_only=True)
        except OSError as error:
            raise StoreError(
                f"The last change of {self.path} may not be on disk: {error.strerror}."
            ) from error
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _join(self) -> Iterator[apsw.Connection]:
        assert self._writer is not None
        try:
            yield self._writer.connection
        except BaseException:
            # Savepoints would make FTS5 flush after each document, so a failed part fails the whole transaction.
            self._failed = True
            raise

    @contextlib.contextmanager
    def _transaction(self, wait_s: float) -> Iterator[apsw.Connection]:
        connection = self._begin(wait_s)
        self._owner, self._failed = threading.get_ident(), False
        try:
            yield connection
            self._refuse_failed()
            run(connection, "commit")
        except BaseException:
            roll_back(connection)
            raise
        finally:
            self._owner = None

    def _refuse_failed(self) -> None:
        if self._failed:
            raise StoreError(f"Nothing was written to {self.path}, because a part of the transaction failed.")

    def _begin(self, wait_s: float) -> apsw.Connection:
        """Begin a write transaction on the file that is at the path now."""
        deadline = time.monotonic() + wait_s
        while True:
            if self._writer is None or not self._is_current(self._writer):
                self._drop(self._writer)
                self._writer = self._open(query_only=False)
            self._local.used = self._writer.inode
            self._writer.connection.set_busy_handler(Patience(wait_s))
            run(self._writer.connection, "begin immediate")
            if self._writer.inode == inode_of(self.path):
                return self._writer.connection
            roll_back(self._writer.connection)  # the file was replaced while this thread waited for its lock
            if time.monotonic() > deadline:
                raise StoreLocked(f"{self.path} keeps being replaced by other processes. Try again later.")

    # ---- opening and closing ---------------------------------------------------------------------------------

    def _open(self, *, query_only: bool) -> Handle:
        """Open a connection. Retry while other processes open the file too.

        Switching a new file to WAL takes an exclusive lock for which SQLite does not call its busy handler, so the
        first open by several processes at the same time can fail immediately.
        """
        deadline = time.monotonic() + self._timeout_s
        while not self._closed:
            try:
                handle = self._opener.open(query_only=query_only)
            except (apsw.BusyError, apsw.LockedError, MovedError) as error:
                if time.monotonic() > deadline:
                    waited = f"{self._timeout_s:g} s"
                    raise StoreLocked(
                        f"{self.path} cannot be opened within {waited}. Try again later."
                    ) from error
                time.sleep(0.01)
                continue
            self._connections.add(handle.connection)
            return handle
        raise StoreError(f"{self.path} is closed.")

    def _is_current(self, handle: Handle) -> bool:
        """Return whether the handle can still be used. The inode of an open file is never reused."""
        if self._closed or handle.inode[0] != os.getpid():
            return False
        if handle.immutable and not handle.connection.in_transaction and _is_writable(self.path.parent):
            return False  # the file may change from now on
        return handle.connection.in_transaction or handle.inode == inode_of(self.path)

    def _drop(self, handle: Handle | None) -> None:
        if handle is None:
            return
        if handle.inode[0] != os.getpid():
            _inherited.append(handle.connection)
            return
        with contextlib.suppress(apsw.Error):  # in use by another thread, which closes it later
            handle.connection.close()

    def used_inode(self) -> Inode | None:
        """Return the file that this thread last used, which may have been replaced since."""
        return getattr(self._local, "used", None)

    def close(self) -> None:
        """Close all connections of this object to the file."""
        self._closed = True
        self.release()

    def release(self) -> None:
        """Close all connections that no other thread is using. The next call opens the file again."""
        self._writer, self._local = None, threading.local()
        for connection in list(self._connections):
            with contextlib.suppress(apsw.Error):
                connection.close()

    def purge(self) -> bool:
        """Move all commits from the log into the file and empty the log. Return False while others read it.

        Deleted rows are overwritten in the file, so only the log still contains them.
        """
        if self._owner == threading.get_ident():
            raise StoreError(f"The log of {self.path} cannot be emptied inside a transaction.")
        with self.write():
            pass  # opens the writer if needed
        ends = time.monotonic() + min(PURGE_S, self._timeout_s)
        while not (is_empty := self._empty_log()) and time.monotonic() < ends:
            time.sleep(ATTEMPT_S)  # SQLite waits for readers with the lock of the writers
        return is_empty

    def _empty_log(self) -> bool:
        with self._write_lock, self._errors():
            assert self._writer is not None
            connection = self._writer.connection
            connection.set_busy_handler(Patience(ATTEMPT_S))  # the next transaction sets its own
            return not value(connection, "pragma wal_checkpoint(truncate)")

    def changes_of_others(self) -> int:
        """Return a number that changes when another object or process has changed the file.

        SQLite counts, for each connection, the commits of all others. This object writes with one connection.
        """
        with self.write() as connection:
            return int(value(connection, "pragma data_version"))

    # ---- checking --------------------------------------------------------------------------------------------

    def check(self, *, deep: bool = False) -> list[str]:
        """Describe damage to the structure of the file, including full-text tables. Empty if there is none.

        ``deep`` also compares indexes with their tables, and rows with their checksums.

        Uses a new connection. On one that has searched, FTS5 checks its cache of the index and reports damage when
        another connection has written since.
        """
        pragma = "pragma integrity_check(20)" if deep else "pragma quick_check(20)"
        try:
            with self._errors():
                handle = self._open(query_only=True)
                try:
                    found = [str(row[0]) for row in handle.connection.execute(pragma)]
                    found = [] if found == ["ok"] else found
                    if deep and not found:
                        found = damaged_rows(handle.connection)
                finally:
                    self._drop(handle)
        except StoreBroken as error:
            return [str(error)]
        return found


def _is_writable(folder: Path) -> bool:
    """Return whether files can be created in a folder, as far as its permissions and its file system say."""
    is_allowed = os.access(folder, os.W_OK)
    if sys.platform == "win32":
        return is_allowed
    with contextlib.suppress(OSError):
        return is_allowed and not os.statvfs(folder).f_flag & os.ST_RDONLY
    return is_allowed


def read_migrations(file: str) -> tuple[Migration, ...]:
    """Return the migrations in a file of this folder. Each begins with a line ``-- migration NAME``."""
    text = Path(__file__).with_name(file).read_text("utf-8")
    found = list[Migration]()
    for part in text.split("\n-- migration ")[1:]:
        name, _, body = part.partition("\n")
        statements = re.sub(r"^--.*\n", "", body, flags=re.MULTILINE).split(";\n")
        found.append(Migration(name, tuple(one.strip() for one in statements if one.strip())))
    return tuple(found)


# ---- damaged databases --------------------------------------------------------------------------------------------


def discard(
    path: Path, migrations: Sequence[Migration], *, broken: Inode | None, timeout_s: float
) -> str | None:
    """Delete a damaged derived database and its side files, because a copy would keep text that is erased later.

    A database of another program or a folder is renamed to ``<name>.replaced-<n>`` instead. Return that name.
    ``broken`` is the damaged file. If another file or none is at the path, another process has replaced it already,
    and nothing is done.
    """
    with store_lock(path, timeout_s=timeout_s):
        if broken is None or inode_of(path) != broken:
            return None
        try:
            aside = replaced_name(path) if path.is_dir() or _is_of_others(path, migrations) else None
            if aside is None:
                sharing(path.unlink)
            else:
                sharing(lambda: path.rename(aside))
            for file in side_files(path):
                move_away(file) if file.is_dir() else file.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{path} is damaged and cannot be replaced: {error.strerror}.") from error
        return aside.name if aside else None


def _is_of_others(path: Path, migrations: Sequence[Migration]) -> bool:
    if not path.is_file():
        return False  # opening a pipe would wait for its writer
    connection = None
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        return is_foreign(connection, migrations)
    except (apsw.Error, UnicodeError):
        return False
    finally:
        if connection is not None:
            connection.close()


def move_away(path: Path) -> None:
    """Rename what is at a path where a derived file or folder has to be."""
    path.rename(replaced_name(path))


def replaced_name(path: Path) -> Path:
    """Return the first unused name for something that is replaced."""
    number = 1
    while (aside := path.with_name(f"{path.name}.replaced-{number}")).exists():
        number += 1
    return aside
