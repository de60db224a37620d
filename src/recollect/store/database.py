"""One SQLite file, held rightly: opened, migrated, locked, checked, with every error told in our own words.

It knows nothing of what the tables mean, and it never repairs: a derived store is set aside by ``healing``, a store
of record is restored by its owner. Nobody opens the database file but SQLite: closing any other descriptor of it
would drop this process's locks.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import apsw

from recollect.errors import SchemaTooNew, StoreBroken, StoreError, StoreLocked
from recollect.store.files import file_lock, make_private_file, make_private_folder, tighten

SIDE_FILES = ("-wal", "-shm")
"""What SQLite keeps beside the database while it is in use."""

_SETTINGS = (
    "pragma secure_delete = on",  # deleted text is overwritten, not only unlinked
    "pragma trusted_schema = off",
    "pragma cell_size_check = on",
    "pragma mmap_size = 0",  # a mapped page of a file that shrinks is a SIGBUS, not an error
    "pragma temp_store = memory",
    "pragma cache_size = -8192",  # 8 MiB
    "pragma journal_size_limit = 16777216",  # bytes that the log keeps after a checkpoint
)
_Inode = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of a schema's history, applied in one transaction."""

    name: str
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Handle:
    """A connection and the file that it was opened on."""

    connection: apsw.Connection
    inode: _Inode


class _Moved(Exception):  # noqa: N818 - a signal between our own functions, no error
    """The file was replaced while it was being opened."""


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
        self._application_id = application_id
        self._migrations = tuple(migrations)
        self._synchronous = synchronous
        self._timeout_s = timeout_s
        self._on_connect = on_connect
        self._closed = False
        self._connections: weakref.WeakSet[apsw.Connection] = weakref.WeakSet()
        self._local = threading.local()  # .handle: this thread's reader; .used: the file it last worked on
        self._write_lock = threading.Lock()
        self._writer: _Handle | None = None
        self._owner: int | None = None  # the thread whose write transaction is open
        self._doomed = False  # an inner write of the open transaction failed
        self.reader()

    # ---- reading ----------------------------------------------------------------------------------------------

    def reader(self) -> apsw.Connection:
        """This thread's read connection; inside ``write()`` the writer itself, so that one reads what one wrote."""
        if self._owner == threading.get_ident() and self._writer is not None:
            return self._writer.connection
        handle: _Handle | None = getattr(self._local, "handle", None)
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
    def snapshot(self) -> Iterator[None]:
        """Everything that this thread reads inside sees one state of the database."""
        connection = self.reader()
        if connection.in_transaction:  # an outer snapshot, or our own write
            yield
            return
        with translated(self.path):
            connection.execute("begin")
            try:
                yield
            finally:
                _roll_back(connection)

    # ---- writing ----------------------------------------------------------------------------------------------

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
            if self._doomed:
                raise StoreError(
                    f"{self.path}: nothing was written, because a part of the transaction failed"
                )
            connection.execute("commit")
        except BaseException:
            _roll_back(connection)
            raise
        finally:
            self._owner = None

    def _begin(self) -> apsw.Connection:
        """A write transaction on the file that stands at the path now."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            if self._writer is None or not self._is_current(self._writer):
                self._drop(self._writer)
                self._writer = self._open(query_only=False)
            self._local.used = self._writer.inode
            self._writer.connection.execute("begin immediate")
            if self._is_current(self._writer):
                return self._writer.connection
            _roll_back(self._writer.connection)  # the file was replaced while we waited for its lock
            if time.monotonic() > deadline:
                raise StoreLocked(f"{self.path}: the file keeps being replaced")

    # ---- opening and closing ----------------------------------------------------------------------------------

    def _open(self, *, query_only: bool) -> _Handle:
        """A connection to the file at the path, made and migrated where needed.

        Turning a new file to WAL takes an exclusive lock for which SQLite does not call its busy handler, so the
        first open of several processes at once is retried here.
        """
        if self._closed:
            raise StoreError(f"{self.path}: is closed")
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                return self._attempt(query_only=query_only)
            except (apsw.BusyError, apsw.LockedError, _Moved) as error:
                if time.monotonic() > deadline:
                    raise StoreLocked(
                        f"{self.path}: cannot be opened within {self._timeout_s:g} s"
                    ) from error
                time.sleep(0.01)

    def _attempt(self, *, query_only: bool) -> _Handle:
        self._stand_ready()
        inode = inode_of(self.path)
        try:
            connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE)
        except apsw.CantOpenError as error:
            if inode_of(self.path) != inode:
                raise _Moved from error
            raise
        try:
            self._prepare(connection)
            if inode is None or inode_of(self.path) != inode:
                raise _Moved  # it may have met the log of the file that replaced it
            if query_only:
                _run(connection, "pragma query_only = on")
        except BaseException:
            connection.close()
            raise
        self._connections.add(connection)
        return _Handle(connection, inode)

    def _stand_ready(self) -> None:
        """A regular file stands at the path, which only its owner may read."""
        try:
            mode = self.path.stat().st_mode
        except FileNotFoundError:
            make_private_folder(self.path.parent)
            with file_lock(self.path, timeout_s=self._timeout_s):
                make_private_file(self.path)
            return
        if not stat.S_ISREG(mode):
            raise StoreBroken(f"{self.path}: is not a regular file")
        if mode & 0o077:
            tighten(self.path, *SIDE_FILES)

    def _prepare(self, connection: apsw.Connection) -> None:
        connection.set_busy_timeout(int(self._timeout_s * 1000))
        if self._on_connect is not None:
            self._on_connect(connection)
        self._refuse_foreign(connection)
        _run(connection, "pragma page_size = 8192")  # heard only while the file is empty
        _run(connection, "pragma journal_mode = wal")
        _run(connection, f"pragma synchronous = {self._synchronous}")
        for setting in _SETTINGS:
            _run(connection, setting)
        self._migrate(connection)

    def _refuse_foreign(self, connection: apsw.Connection) -> None:
        """Before anything is written: the file is ours, or empty."""
        application_id = value(connection, "pragma application_id")
        if application_id == self._application_id:
            return
        if application_id or value(connection, "select count(*) from sqlite_schema"):
            raise StoreBroken(f"{self.path}: is a database of another program")

    def _migrate(self, connection: apsw.Connection) -> None:
        version = value(connection, "pragma user_version")
        if version > len(self._migrations):
            raise SchemaTooNew(
                f"{self.path}: has schema {version}, this release knows {len(self._migrations)}; update recollect"
            )
        for number in range(version, len(self._migrations)):
            self._step(connection, number)

    def _step(self, connection: apsw.Connection, number: int) -> None:
        """Apply one migration, unless another process has done so meanwhile."""
        connection.execute("begin immediate")
        try:
            if value(connection, "pragma user_version") == number:
                for statement in self._migrations[number].statements:
                    _run(connection, statement)
                _run(connection, f"pragma application_id = {self._application_id:d}")
                _run(connection, f"pragma user_version = {number + 1:d}")
            connection.execute("commit")
        except BaseException:
            _roll_back(connection)
            raise

    def _is_current(self, handle: _Handle) -> bool:
        """Whether the handle's file still stands at the path. An open file's inode is never given to another."""
        return handle.connection.in_transaction or handle.inode == inode_of(self.path)

    def _drop(self, handle: _Handle | None) -> None:
        if handle is None:
            return
        if handle.inode[0] != os.getpid():
            _inherited.append(handle.connection)
            return
        with contextlib.suppress(apsw.Error):  # in use by another thread: it closes when that thread lets go
            handle.connection.close()

    def used_inode(self) -> _Inode | None:
        """The file that this thread last worked on, which may have been replaced since."""
        return getattr(self._local, "used", None)

    def close(self) -> None:
        """Close every connection of this process to the file."""
        self._closed = True
        self._local.handle = None
        self._writer = None
        for connection in list(self._connections):
            with contextlib.suppress(apsw.Error):
                connection.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- checking ---------------------------------------------------------------------------------------------

    def check(self, *, deep: bool = False) -> list[str]:
        """What is wrong with the file's structure, its full-text tables included; empty when all is well."""
        try:
            with self.read() as connection:
                pragma = "pragma integrity_check(20)" if deep else "pragma quick_check(20)"
                found = [str(row[0]) for row in connection.execute(pragma)]
        except StoreBroken as error:
            return [str(error)]
        return [] if found == ["ok"] else found


_inherited: list[apsw.Connection] = []
"""Connections that came through a fork: never used, and never closed, for closing could remove the parent's log."""


def inode_of(path: Path) -> _Inode | None:
    """Which file stands at the path, as this process sees it."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return os.getpid(), found.st_dev, found.st_ino


def _run(connection: apsw.Connection, statement: str) -> None:
    """Run one statement to its end: apsw stops at the first row until the cursor is read."""
    connection.execute(statement).fetchall()


def value(connection: apsw.Connection, statement: str, bindings: tuple[Any, ...] = ()) -> Any:
    """The first column of the first row; None when there is no row."""
    rows = connection.execute(statement, bindings).fetchall()
    return rows[0][0] if rows else None


def _roll_back(connection: apsw.Connection) -> None:
    """End the transaction. Some errors have ended it already, and a damaged file may refuse."""
    with contextlib.suppress(apsw.Error):
        if connection.in_transaction:
            connection.execute("rollback")


# ---- errors ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """The one place where SQLite's errors become ours."""
    try:
        yield
    except apsw.Error as error:
        raise _translate(error, path) from error
    except UnicodeDecodeError as error:
        raise StoreBroken(f"{path}: holds text that is not UTF-8") from error
    except UnicodeEncodeError as error:
        raise StoreError(f"{path}: cannot hold a text with a lone surrogate ({error.reason})") from error


def _translate(error: apsw.Error, path: Path) -> StoreError:
    match error:
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError():
            return StoreBroken(f"{path}: is damaged ({error})")
        case apsw.SQLError() if _names_missing_schema(str(error)):
            return StoreBroken(f"{path}: its schema is damaged ({error})")
        case apsw.BusyError() | apsw.LockedError():
            return StoreLocked(f"{path}: another process holds it for longer than we wait")
        case apsw.FullError():
            return StoreError(f"{path}: the disk is full")
        case apsw.CantOpenError() | apsw.ReadOnlyError() | apsw.PermissionsError():
            return StoreError(f"{path}: cannot be opened for writing ({error})")
        case _:
            return StoreError(f"{path}: {error}")


def _names_missing_schema(message: str) -> bool:
    """Our statements name only what the migrations made: if a name is missing, the schema is not what it was."""
    return message.startswith(("no such table", "no such column", "malformed database schema"))
