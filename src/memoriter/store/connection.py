"""Connections to one SQLite file: private, checked, configured and migrated, with errors of this package.

Only SQLite opens the file. Closing any other descriptor of it would release the locks of this process.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import apsw

from memoriter.errors import LockTimeout, MemoriterError, SchemaTooNew, StoreBroken, StoreError, StoreLocked
from memoriter.files.durable import make_folder
from memoriter.files.locks import file_lock
from memoriter.store import checksums
from memoriter.store.protocol import value

SIDE_FILES = ("-wal", "-shm")
"""Suffixes of the files that SQLite creates next to a database in use."""

PAGE_SIZE = 8192
#: Every database starts with a header of this size.
HEADER_BYTES = 100
#: The average pause between two attempts to lock a database.
PAUSE_S = 0.003

Inode = tuple[int, int, int]
"""A file as one process sees it: process, device, inode."""

_SETTINGS = (
    "pragma synchronous = normal",  # sync at a checkpoint; `Database` syncs the commits that have to last
    "pragma fullfsync = on",  # macOS: out of the cache of the drive
    "pragma secure_delete = on",  # overwrite deleted text
    "pragma trusted_schema = off",
    "pragma cell_size_check = on",
    "pragma mmap_size = 0",  # reading a mapped page of a file that shrinks would be a SIGBUS
    "pragma temp_store = memory",
    "pragma cache_size = -8192",  # 8 MiB
    "pragma journal_size_limit = 16777216",  # bytes of the log after a checkpoint
)


class MovedError(Exception):
    """The file was replaced while it was opened. The caller tries again."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of a schema, applied in one transaction."""

    name: str
    statements: tuple[str, ...]


#: Errors of opening a sound database in a folder that is read-only or has no space left.
_UNWRITABLE = (apsw.CantOpenError, apsw.ReadOnlyError, apsw.FullError, apsw.IOError)


@dataclass(frozen=True, slots=True, eq=False)
class Handle:
    """A connection and its file."""

    connection: apsw.Connection
    inode: Inode
    #: The folder could not be written, so the connection reads the file as if it never changed.
    immutable: bool = False


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens connections to one database."""

    path: Path
    application_id: int
    migrations: tuple[Migration, ...]
    timeout_s: float
    on_connect: Callable[[apsw.Connection], None] | None
    #: Whether every page has a checksum. Only for derived files: another program that writes does not update it.
    checked: bool = False

    def open(self, *, query_only: bool) -> Handle:
        """Open the file at the path, and create or migrate it if needed. Raises the errors of SQLite."""
        self._make_file()
        inode = inode_of(self.path)
        try:
            connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=self._vfs)
        except apsw.CantOpenError as error:
            if inode_of(self.path) != inode:
                raise MovedError from error
            raise
        try:
            self._prepare(connection)
            run(connection, f"pragma query_only = {query_only:d}")
        except _UNWRITABLE as error:
            connection.close()
            if query_only and inode is not None and not self._has_log():
                return self._open_immutable(inode, error)
            raise
        except BaseException:
            connection.close()
            raise
        if inode is None or inode_of(self.path) != inode:
            connection.close()  # it may have read the log of the file that replaced its own
            raise MovedError
        return Handle(connection, inode)

    @property
    def _vfs(self) -> str | None:
        return checksums.page_vfs() if self.checked else None

    def _has_log(self) -> bool:
        """Return whether commits are in the log and not in the file."""
        try:
            return self.path.with_name(self.path.name + "-wal").stat().st_size > 0
        except OSError:
            return False

    def _open_immutable(self, inode: Inode, cause: apsw.Error) -> Handle:
        """Open a complete file for reading where SQLite cannot create its own files, as on a read-only disk."""
        uri = f"file:{quote(str(self.path))}?immutable=1"
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(uri, flags=flags, vfs=self._vfs)
        try:
            if self.on_connect is not None:
                self.on_connect(connection)
            self._check_owner(connection)
            is_current = value(connection, "pragma user_version") == len(self.migrations)
        except BaseException:
            connection.close()
            raise
        if not is_current:  # it would have to be migrated
            connection.close()
            raise cause
        return Handle(connection, inode, immutable=True)

    def _make_file(self) -> None:
        """Make sure that the path is a regular file that only its owner can read."""
        try:
            found = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            make_private_folder(self.path.parent)
            with store_lock(self.path, timeout_s=self.timeout_s):
                make_private_file(self.path, self._write_header if self._vfs else None)
            return
        except OSError as error:
            raise StoreError(f"{self.path} cannot be accessed: {error.strerror}.") from error
        for file in (self.path, *side_files(self.path)):
            with contextlib.suppress(OSError):  # another process may delete a log at any moment
                if not stat.S_ISREG(file.stat().st_mode):
                    raise StoreBroken(f"{file} is not a regular file. Move it away.")
        if found.st_mode & 0o077:
            make_private(self.path, *SIDE_FILES)
        if self._vfs and not found.st_size:
            raise StoreBroken(f"{self.path} is empty.")
        if 0 < found.st_size < HEADER_BYTES:  # SQLite takes a single byte for a new database
            raise StoreBroken(f"{self.path} is damaged: it has only {found.st_size} bytes.")

    def _write_header(self, path: Path) -> None:
        """Make an empty file a database whose pages have checksums.

        SQLite's extension reads from the header whether they have. A connection that opens an empty file, and reads the
        header of another process from the log, would write pages without checksums.
        """
        with contextlib.closing(
            apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=self._vfs)
        ) as connection:
            connection.reserve_bytes("main", checksums.PAGE_BYTES)
            run(connection, f"pragma page_size = {PAGE_SIZE}")
            run(connection, "pragma journal_mode = wal")

    def _prepare(self, connection: apsw.Connection) -> None:
        connection.set_busy_handler(Patience(self.timeout_s))
        checksums.register(connection)
        if self.on_connect is not None:
            self.on_connect(connection)
        self._check_owner(connection)
        run(connection, f"pragma page_size = {PAGE_SIZE}")  # has an effect only while the file is empty
        run(connection, "pragma journal_mode = wal")
        for setting in _SETTINGS:
            run(connection, setting)
        self._migrate(connection)
        if self._vfs and connection.reserve_bytes("main", -1) != checksums.PAGE_BYTES:
            raise StoreBroken(f"The pages of {self.path} have no checksums.")
        if self.checked and self._is_cut_off():
            time.sleep(PAUSE_S)  # another process may be writing the page
            if self._is_cut_off():
                raise StoreBroken(f"The last page of {self.path} is incomplete.")

    def _is_cut_off(self) -> bool:
        """Return whether the file ends within a page. SQLite reads zeros there, and compares no checksum."""
        size = self.path.stat().st_size
        return size > PAGE_SIZE and size % PAGE_SIZE > 0 and not self._has_log()

    def _check_owner(self, connection: apsw.Connection) -> None:
        """Check that the file is empty or a database of this package, before anything is written."""
        # In this order: a process that creates the database meanwhile adds tables and the identity at the same time.
        tables = value(connection, "select count(*) from sqlite_schema")
        application_id = value(connection, "pragma application_id")
        if application_id == self.application_id:
            return
        if is_foreign(connection, self.migrations):
            raise StoreBroken(f"{self.path} is a database of another program.")
        if application_id or tables:
            raise StoreBroken(f"The header of {self.path} is damaged.")

    def _migrate(self, connection: apsw.Connection) -> None:
        version, newest = value(connection, "pragma user_version"), len(self.migrations)
        if version > newest:
            raise SchemaTooNew(
                f"{self.path} has schema {version}, but this release supports {newest}. Update memoriter."
            )
        for number in range(version, newest):
            self._step(connection, number)

    def _step(self, connection: apsw.Connection, number: int) -> None:
        """Apply one migration, unless another process has just done so."""
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


class Patience:
    """Waits for the lock of another process in short pauses that are equal for all.

    The handler of SQLite pauses longer and longer, up to 100 ms, so that of many writers some wait for seconds.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._ends = 0.0

    def __call__(self, attempt: int) -> bool:
        now = time.monotonic()
        if attempt == 0:
            self._ends = now + self._timeout_s
        if now >= self._ends:
            return False
        time.sleep(random.uniform(0.5, 1.5) * PAUSE_S)  # noqa: S311 - not a secret
        return True


def is_foreign(connection: apsw.Connection, migrations: Sequence[Migration]) -> bool:
    """Return whether a database has tables, but not those that the migrations create."""
    statements = " ".join(statement for step in migrations for statement in step.statements)
    own = set(re.findall(r"create (?:virtual )?table (\w+)", statements))
    found: Any = connection.execute("select name from sqlite_schema where type = 'table'").fetchall()
    names = {row[0] for row in found}
    return bool(names) and not names & own


def side_files(path: Path) -> list[Path]:
    """Return the paths of the files that SQLite creates next to a database in use."""
    return [path.with_name(path.name + suffix) for suffix in SIDE_FILES]


def inode_of(path: Path) -> Inode | None:
    """Return the file at the path, or None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return os.getpid(), found.st_dev, found.st_ino


def run(connection: apsw.Connection, statement: str) -> None:
    """Run one statement to its end. apsw stops at the first row until the cursor is read."""
    connection.execute(statement).fetchall()


def roll_back(connection: apsw.Connection) -> None:
    """Roll back the transaction. Some errors have ended it already, and a damaged file may fail."""
    try:
        if connection.in_transaction:
            run(connection, "rollback")
    except apsw.Error:
        connection.close(True)


# ---- errors -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def translate_errors(path: Path, damage: type[StoreBroken] = StoreBroken) -> Iterator[None]:
    """Convert errors of SQLite for the database at ``path`` into errors of this package.

    ``damage`` is the error for a damaged file.
    """
    try:
        yield
    except apsw.Error as error:
        raise _translate(error, path, damage) from error
    except UnicodeDecodeError as error:
        raise damage(f"{path} contains text that is not UTF-8.") from error
    except UnicodeEncodeError as error:
        raise StoreError(f"{path} cannot store a text with a lone surrogate: {error.reason}.") from error
    except StoreBroken as error:
        if isinstance(error, damage):
            raise
        raise damage(str(error)) from error


@contextlib.contextmanager
def translate_values(path: Path | str, damage: type[StoreBroken]) -> Iterator[None]:
    """Convert errors of reading rows. In a database without checksums, a damaged page can contain any value."""
    try:
        yield
    except (MemoriterError, UnicodeError):
        raise
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise damage(f"{path} contains a value that cannot be read ({error}).") from error


class Reading(contextlib.AbstractContextManager[apsw.Connection]):
    """A connection whose errors, and those of the values read from it, are converted.

    A search reads twenty times. Without an error this is five times faster than the two functions above.
    """

    __slots__ = ("_connection", "_damage", "_path")

    def __init__(self, connection: apsw.Connection, path: Path, damage: type[StoreBroken]) -> None:
        self._connection, self._path, self._damage = connection, path, damage

    def __enter__(self) -> apsw.Connection:
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            with translate_errors(self._path, self._damage), translate_values(self._path, self._damage):
                raise error


def _translate(error: apsw.Error, path: Path, damage: type[StoreBroken]) -> StoreError:
    if problem := _damage_of(error):
        return damage(f"{path} is damaged: {problem}.")
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreLocked(f"Another process has locked {path} for too long. Try again later.")
        case apsw.FullError():
            return StoreError(f"Cannot write {path}: the disk is full.")
        case apsw.IOError() | apsw.CantOpenError() if _is_full(path.parent):  # SQLite does not say why
            return StoreError(f"Cannot write {path}: the disk is full.")
        case apsw.CantOpenError() | apsw.ReadOnlyError() | apsw.PermissionsError():
            return StoreError(f"{path} cannot be opened for writing: {error}.")
        case _:
            return StoreError(f"{path}: {error}")


def _is_full(folder: Path) -> bool:
    """Return whether the disk of a folder has no room for another page."""
    with contextlib.suppress(OSError):
        return shutil.disk_usage(folder).free < PAGE_SIZE
    return False


def _damage_of(error: apsw.Error) -> str | None:
    """Return what is wrong with the file, if that is why a statement failed."""
    match error:
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError():
            return str(error)
        case apsw.IOError() if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA:
            return "a page does not match its checksum"
        case apsw.ConstraintError() | apsw.MismatchError():
            return f"a row is wrong ({error})"
        # Statements use only names that migrations created.
        case apsw.SQLError() if str(error).startswith(_MISSING):
            return f"the schema is wrong ({error})"
    return None


_MISSING = ("no such table", "no such column", "no such fts5 table", "malformed database schema")


# ---- private files ------------------------------------------------------------------------------------------------


def make_private_folder(folder: Path) -> None:
    """Create the folder and its missing parents with mode 0700, whatever the umask. Existing folders stay unchanged."""
    try:
        make_folder(folder)
    except OSError as error:
        raise StoreError(
            f"Cannot create {folder}: {error.strerror}. Choose another folder with --home."
        ) from error


def make_private_file(path: Path, fill: Callable[[Path], None] | None = None) -> None:
    """Create a file with mode 0600, unless one exists. ``fill`` writes it before it has its name. Needs ``store_lock``.

    The file gets its name after its descriptor is closed, since closing one later would release the locks of SQLite.
    """
    new = path.with_name(path.name + ".new")
    try:
        for file in (new, *side_files(new)):
            file.unlink(missing_ok=True)  # of a process that was killed here
        os.close(os.open(new, os.O_CREAT | os.O_WRONLY, 0o600))
        new.chmod(0o600)
        if path.exists():
            new.unlink()
            return
        if fill is not None:
            fill(new)
        new.rename(path)
    except OSError as error:
        raise StoreError(f"Cannot create {path}: {error.strerror}.") from error


def make_private(path: Path, *suffixes: str) -> None:
    """Let only the owner read a file and those with these suffixes, if the process may change that."""
    for file in (path, *(path.with_name(path.name + suffix) for suffix in suffixes)):
        with contextlib.suppress(OSError):
            file.chmod(0o600)


@contextlib.contextmanager
def store_lock(path: Path, *, timeout_s: float, late: type[MemoriterError] = StoreLocked) -> Iterator[None]:
    """Hold ``<path>.lock`` exclusively. Raises ``late`` after the timeout, and `StoreError` if that is impossible."""
    lock = path.with_name(path.name + ".lock")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(file_lock(lock, timeout_s))
        except LockTimeout as error:
            raise late(str(error)) from error
        except OSError as error:
            raise StoreError(f"Cannot lock {lock}: {error.strerror or error}.") from error
        yield
