"""Opening one connection to one SQLite file: made private, checked to be ours, set up and migrated.

Which threads share a connection, and when it is used for what, is decided by ``database``. Nobody opens the file
but SQLite: closing any other descriptor of it would drop this process's locks.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import apsw

from memoriter.errors import LockTimeout, SchemaTooNew, StoreBroken, StoreError, StoreLocked
from memoriter.files.locks import file_lock

SIDE_FILES = ("-wal", "-shm")
"""What SQLite keeps beside the database while it is in use."""

Inode = tuple[int, int, int]
"""Which file stood at a path, as one process saw it: process, device, inode."""

_SETTINGS = (
    "pragma secure_delete = on",  # deleted text is overwritten, not only unlinked
    "pragma trusted_schema = off",
    "pragma cell_size_check = on",
    "pragma mmap_size = 0",  # a mapped page of a file that shrinks is a SIGBUS, not an error
    "pragma temp_store = memory",
    "pragma cache_size = -8192",  # 8 MiB
    "pragma journal_size_limit = 16777216",  # bytes that the log keeps after a checkpoint
)


class MovedError(Exception):
    """The file was replaced while it was being opened; it is tried again."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of a schema's history, applied in one transaction."""

    name: str
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    """A connection, and the file that it was opened on."""

    connection: apsw.Connection
    inode: Inode


@dataclass(frozen=True, slots=True)
class Opener:
    """How connections to one database are opened."""

    path: Path
    application_id: int
    migrations: tuple[Migration, ...]
    synchronous: Literal["NORMAL", "FULL"]
    timeout_s: float
    on_connect: Callable[[apsw.Connection], None] | None

    def open(self, *, query_only: bool) -> Handle:
        """A connection to the file at the path, made and migrated where needed; SQLite's errors as they are."""
        self._make_file()
        inode = inode_of(self.path)
        try:
            connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE)
        except apsw.CantOpenError as error:
            if inode_of(self.path) != inode:
                raise MovedError from error
            raise
        try:
            self._prepare(connection)
            run(connection, f"pragma query_only = {query_only:d}")
        except BaseException:
            connection.close()
            raise
        if inode is None or inode_of(self.path) != inode:
            connection.close()  # it may have met the log of the file that replaced its own
            raise MovedError
        return Handle(connection, inode)

    def _make_file(self) -> None:
        """A regular file stands at the path, and only its owner may read it."""
        try:
            mode = self.path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            make_private_folder(self.path.parent)
            with store_lock(self.path, timeout_s=self.timeout_s):
                make_private_file(self.path)
            return
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be reached ({error.strerror})") from error
        if not stat.S_ISREG(mode):
            raise StoreBroken(f"{self.path}: is not a regular file")
        if mode & 0o077:
            tighten(self.path, *SIDE_FILES)

    def _prepare(self, connection: apsw.Connection) -> None:
        connection.set_busy_timeout(int(self.timeout_s * 1000))
        if self.on_connect is not None:
            self.on_connect(connection)
        self._refuse_foreign(connection)
        run(connection, "pragma page_size = 8192")  # heard only while the file is empty
        run(connection, "pragma journal_mode = wal")
        run(connection, f"pragma synchronous = {self.synchronous}")
        for setting in _SETTINGS:
            run(connection, setting)
        self._migrate(connection)

    def _refuse_foreign(self, connection: apsw.Connection) -> None:
        """Before anything is written: the file is ours, or empty."""
        application_id = value(connection, "pragma application_id")
        if application_id == self.application_id:
            return
        if application_id or value(connection, "select count(*) from sqlite_schema"):
            raise StoreBroken(f"{self.path}: is a database of another program")

    def _migrate(self, connection: apsw.Connection) -> None:
        version, newest = value(connection, "pragma user_version"), len(self.migrations)
        if version > newest:
            raise SchemaTooNew(
                f"{self.path}: has schema {version}, this release knows {newest}; update memoriter"
            )
        for number in range(version, newest):
            self._step(connection, number)

    def _step(self, connection: apsw.Connection, number: int) -> None:
        """Apply one migration, unless another process has done so meanwhile."""
        run(connection, "begin immediate")
        try:
            if value(connection, "pragma user_version") == number:
                for statement in self.migrations[number].statements:
                    run(connection, statement)
                run(connection, f"pragma application_id = {self.application_id:d}")
                run(connection, f"pragma user_version = {number + 1:d}")
            run(connection, "commit")
        except BaseException:
            roll_back(connection)
            raise


def inode_of(path: Path) -> Inode | None:
    """Which file stands at the path now; None when none can be seen."""
    try:
        found = path.stat()
    except OSError:
        return None
    return os.getpid(), found.st_dev, found.st_ino


def run(connection: apsw.Connection, statement: str) -> None:
    """Run one statement to its end: apsw stops at the first row until the cursor is read."""
    connection.execute(statement).fetchall()


def value(connection: apsw.Connection, statement: str, bindings: tuple[Any, ...] = ()) -> Any:
    """The first column of the first row; None when there is no row."""
    rows = connection.execute(statement, bindings).fetchall()
    return rows[0][0] if rows else None


def roll_back(connection: apsw.Connection) -> None:
    """End the transaction. Some errors have ended it already, and a damaged file may refuse."""
    try:
        if connection.in_transaction:
            run(connection, "rollback")
    except apsw.Error:
        connection.close(True)


# ---- errors -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Inside, an error of SQLite on the database at ``path`` becomes one of ours."""
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
        case apsw.SQLError() if _misses_schema(str(error)):
            return StoreBroken(f"{path}: its schema is damaged ({error})")
        case apsw.BusyError() | apsw.LockedError():
            return StoreLocked(f"{path}: another process holds it for longer than we wait")
        case apsw.FullError():
            return StoreError(f"{path}: the disk is full")
        case apsw.CantOpenError() | apsw.ReadOnlyError() | apsw.PermissionsError():
            return StoreError(f"{path}: cannot be opened for writing ({error})")
        case _:
            return StoreError(f"{path}: {error}")


def _misses_schema(message: str) -> bool:
    """Our statements name only what the migrations made: a name that is missing has been lost."""
    return message.startswith(("no such table", "no such column", "malformed database schema"))


# ---- private files ------------------------------------------------------------------------------------------------


def make_private_folder(folder: Path) -> None:
    """Make the folder and its missing parents, 0700 whatever the umask; what exists is left as it is."""
    try:
        for place in reversed([folder, *folder.parents]):
            if not place.is_dir():
                place.mkdir(mode=0o700, exist_ok=True)
                place.chmod(0o700)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be made ({error.strerror})") from error


def make_private_file(path: Path) -> None:
    """Make an empty file, 0600 whatever the umask, unless one is there. Call it under ``store_lock``.

    It comes to its name after our descriptor of it is closed: closing one later would drop SQLite's locks.
    """
    made = path.with_name(path.name + ".new")
    try:
        os.close(os.open(made, os.O_CREAT | os.O_WRONLY, 0o600))
        made.chmod(0o600)
        if path.exists():
            made.unlink()
        else:
            made.rename(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be made ({error.strerror})") from error


def tighten(path: Path, *suffixes: str) -> None:
    """Take other people's rights off a file and off those beside it. What is not ours to change stays."""
    for place in (path, *(path.with_name(path.name + suffix) for suffix in suffixes)):
        with contextlib.suppress(OSError):
            place.chmod(0o600)


@contextlib.contextmanager
def store_lock(path: Path, *, timeout_s: float) -> Iterator[None]:
    """Hold ``<path>.lock`` against every other thread and process; ``StoreLocked`` when it takes too long."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(file_lock(path.with_name(path.name + ".lock"), timeout_s))
        except LockTimeout as error:
            raise StoreLocked(str(error)) from error
        except OSError as error:
            raise StoreError(f"{path}: its lock cannot be taken ({error.strerror})") from error
        yield
