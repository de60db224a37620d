"""A folder with the files of one agent that a Postgres server holds, so that code for files works on them unchanged.

The server has the truth. The folder is a cache, which may be deleted at any time, also while it is in use. A change is
made in the folder and stored in one transaction, and is acknowledged after its commit. If the server does not answer,
the change fails, and the folder is as before.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.errors import StoreError, WriteError
from memoriter.extensions.postgres import files
from memoriter.extensions.postgres.files import NewFile, StoredFile
from memoriter.extensions.postgres.manifest import NAME, Clock, FileState, Manifest
from memoriter.extensions.postgres.server import lock_number
from memoriter.files import shared
from memoriter.files.locks import file_lock

if TYPE_CHECKING:
    from memoriter.extensions.postgres.connection import PostgresConnection
    from memoriter.extensions.postgres.database import PostgresDatabase

log = logs.get("store")

#: How long a thread or process waits for another one that works in the same folder.
WAIT_S = 60.0


class WorkingCopy:
    """The files of one agent in a folder. Implements `SharedFolder`.

    ``parts`` are the names of the files and folders below the root that are stored. Others belong to this machine.
    """

    def __init__(self, database: PostgresDatabase, root: Path, parts: Sequence[str]) -> None:
        self.root = Path(os.path.realpath(root))
        self._database = database
        self._parts = frozenset(parts)
        self._manifest = Manifest(self.root)
        self._known = Clock()  # without the lock: up to which change the folder was fetched
        self._threads = threading.RLock()
        self._owner: int | None = None
        self._changing = set[str]()
        self._fetched = 0  # how often changes of others were fetched
        #: How often others have announced a change.
        self.announcements = 0

    # ---- reading ---------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Fetch what others have changed. Raises `StoreError` if the server does not answer."""
        if self._owner == threading.get_ident():
            return
        with self._database.read() as connection:
            if files.read_clock(connection) == self._known and self._manifest.is_present():
                return
        with self._locked(), self._database.read() as connection:
            self._pull(connection)

    # ---- changing --------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def changing(self, paths: Sequence[str]) -> Iterator[None]:
        """Let this thread change files. Their changes are committed at the end, all or none."""
        named = {path for path in map(self._relative, paths) if self._is_stored(path)}
        if self._owner == threading.get_ident():
            self._changing |= named
            yield
            return
        if not named:
            yield
            return
        with self._locked():
            stored: tuple[Clock, Mapping[str, FileState | None]] | None = None
            try:
                with self._database.write() as connection:
                    self._pull(connection)
                    self._restore(connection, named)
                    self._changing, self._owner = named, threading.get_ident()
                    yield
                    stored = self._push(connection)
            except BaseException:
                self._undo(named | self._changing)
                raise
            finally:
                self._owner = None
            if stored is not None:
                self._record(*stored)

    def _push(self, connection: PostgresConnection) -> tuple[Clock, Mapping[str, FileState | None]] | None:
        """Store the files that were changed. Return the change, or None if there is none."""
        new, gone = dict[str, NewFile](), list[str]()
        for path, (state, status) in self._differing(self._changing).items():
            if status is None:
                gone.append(path)
                continue
            file = NewFile((self.root / path).read_bytes(), status.st_mtime_ns, state)
            if state is not None and files.digest_of(file.data) == state.digest:
                os.utime(self.root / path, ns=(state.changed_ns, state.changed_ns))
                continue
            _check_name(path)
            new[path] = file
        if not new and not gone:
            return None
        clock = files.write_files(connection, {**new, **dict.fromkeys(gone)})
        states: dict[str, FileState | None] = {
            path: FileState(clock.version, len(file.data), files.digest_of(file.data), file.changed_ns)
            for path, file in new.items()
        }
        return clock, {**states, **dict.fromkeys(gone)}

    def _record(self, clock: Clock, states: Mapping[str, FileState | None]) -> None:
        self._manifest.put(clock, states)
        self._known = clock

    def _undo(self, paths: set[str]) -> None:
        """Restore the stored files after a failure. It is unknown whether a commit that failed was made."""
        if not any(self._differing(paths)):
            return
        self._forget_clock()
        try:
            with self._database.read() as connection:
                self._pull(connection)
        except StoreError as error:  # the next use restores them
            log.warning("files in %s differ from the server until it answers: %s", self.root, error)

    def _forget_clock(self) -> None:
        self._known = Clock()
        self._manifest.put(Clock(), {})

    def erase_history(self, path: str) -> None:
        """Delete the earlier versions of a note, with the dead rows that hold its text."""
        with self._database.write() as connection:
            files.erase_versions(connection, self._relative(path))
        try:
            self._database.purge()
        except StoreError as error:  # the rows are deleted; the server removes their bytes later
            log.warning("the text of deleted rows stays until the server vacuums them: %s", error)

    # ---- locks -----------------------------------------------------------------------------------------------

    def try_lock(self, path: str) -> bool:
        """Try to take a lock against other machines."""
        if self._owner == threading.get_ident():
            return True  # this thread keeps all others from changing any file
        if not self._database.server.locks.try_lock(self._lock_number(path)):
            return False
        try:
            self.refresh()
        except BaseException:
            self.unlock(path)
            raise
        return True

    def unlock(self, path: str) -> None:
        if self._owner != threading.get_ident():
            self._database.server.locks.unlock(self._lock_number(path))

    def _lock_number(self, path: str) -> int:
        return lock_number(self._database.tenant, self._database.agent, "file", self._relative(path))

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other threads, and other processes with the same folder, from changing its files."""
        lock = self.root.with_name(f".{self.root.name}.lock")
        with self._threads, file_lock(lock, WAIT_S):
            yield

    # ---- following -------------------------------------------------------------------------------------------

    def follow(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Fetch changes of others as they happen, in the background. Return a function that ends this."""
        followed = self._fetched

        def changed() -> None:
            nonlocal followed
            self.announcements += 1
            self.refresh()
            if self._fetched != followed:  # also if another thread has fetched the change
                followed = self._fetched
                on_change()

        return self._database.server.feed.subscribe(self._database.tenant, self._database.agent, changed)

    def close(self) -> None:
        """Close the database and the manifest. The files stay for the next time."""
        with self._threads:
            self._manifest.close()
        self._database.close()

    # ---- fetching --------------------------------------------------------------------------------------------

    def _pull(self, connection: PostgresConnection) -> None:
        """Make the folder match the server."""
        now, known = files.read_clock(connection), self._manifest.clock()
        if now.version > known.version >= 0:
            self._apply(connection, files.list_files(connection, known.version), now)
        elif now != known:
            # A new folder, or the server lost changes in a fail-over: compare everything.
            self._compare_all(connection, now)
        if self._known != now:
            self._known = now
            self._fetched += 1

    def _compare_all(self, connection: PostgresConnection, now: Clock) -> None:
        for part in self._parts:
            if "." not in part:
                (self.root / part).mkdir(mode=0o700, parents=True, exist_ok=True)
        stored = [file for file in files.list_files(connection, -1) if not file.is_deleted]
        names = {file.path for file in stored}
        for path in self._found(self._parts):
            if path not in names:
                self._remove(path)
        recorded = self._manifest.files()
        gone = [path for path in recorded if path not in names]
        same = {file.path for file in stored if self._is_same(file, recorded.get(file.path))}
        self._manifest.put(Clock(), dict.fromkeys(gone))
        self._apply(connection, [file for file in stored if file.path not in same], now, whole=True)

    def _is_same(self, file: StoredFile, known: FileState | None) -> bool:
        if known is None or known.digest != file.state.digest or known.stat != file.state.stat:
            return False
        status = _stat(self.root / file.path)
        return status is not None and (status.st_mtime_ns, status.st_size) == known.stat

    def _apply(
        self,
        connection: PostgresConnection,
        changed: Sequence[StoredFile],
        now: Clock,
        *,
        whole: bool = False,
    ) -> None:
        states: dict[str, FileState | None] = {}
        for file in changed:
            if not _is_inside(file.path) or not self._is_stored(file.path):
                log.warning("a file of the store has a path that is not used here: %r", file.path[:200])
            elif file.is_deleted:
                self._remove(file.path)
                states[file.path] = None
            else:
                states[file.path] = self._fetch(connection, file, whole=whole)
        self._manifest.put(now, states)

    def _restore(self, connection: PostgresConnection, paths: set[str]) -> None:
        """Fetch files again that were changed here without being stored, such as by a killed process."""
        differing = self._differing(paths)
        for path, (state, _) in differing.items():
            if state is None:
                self._remove(path)
            else:
                self._fetch(connection, StoredFile(path, state, False), whole=True)

    def _fetch(self, connection: PostgresConnection, file: StoredFile, *, whole: bool) -> FileState:
        target, known = self.root / file.path, self._manifest.below(file.path).get(file.path)
        status = _stat(target)
        is_known = (
            known is not None and status is not None and (status.st_mtime_ns, status.st_size) == known.stat
        )
        since = known.version if known is not None and is_known and not whole else -1
        start, data = files.read_parts(connection, file.path, since)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if start and target.suffix == ".jsonl":  # readers of a transcript continue where they stopped
            with target.open("r+b") as opened:
                opened.truncate(start)
                opened.seek(start)
                opened.write(data)
        else:
            head = target.read_bytes()[:start] if start else b""
            temporary = target.with_name(f".{target.name[:40]}.{os.getpid()}-{threading.get_ident()}.tmp")
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
                opened.write(head + data)
            temporary.replace(target)
        os.utime(target, ns=(file.state.changed_ns, file.state.changed_ns))
        return replace(file.state, size=start + len(data))

    def _remove(self, path: str) -> None:
        """Remove a file, and the folders above it that are empty then."""
        target = self.root / path
        with contextlib.suppress(FileNotFoundError):
            target.unlink()
        with contextlib.suppress(OSError):
            for folder in target.parents:
                if self.root in (folder, folder.parent):
                    return
                folder.rmdir()

    # ---- comparing -------------------------------------------------------------------------------------------

    def _differing(self, paths: set[str]) -> dict[str, tuple[FileState | None, os.stat_result | None]]:
        """Return the files at or below these paths whose stat differs from what was stored."""
        found = {path: _stat(self.root / path) for path in self._found(paths)}
        known = {path: state for named in paths for path, state in self._manifest.below(named).items()}
        result = dict[str, tuple[FileState | None, os.stat_result | None]]()
        for path in sorted({*found, *known}):
            state, status = known.get(path), found.get(path)
            stat = (status.st_mtime_ns, status.st_size) if status else None
            if stat != (state.stat if state else None):
                result[path] = state, status
        return result

    def _found(self, paths: set[str] | frozenset[str]) -> Iterator[str]:
        """Yield the files on disk at or below these paths, without locks and temporary files."""
        for path in paths:
            place = self.root / path
            if place.is_file() and not place.is_symlink():
                yield path
                continue
            for folder, folders, names in os.walk(place):
                folders[:] = [name for name in folders if not name.startswith(".")]
                for name in names:
                    below = self._relative(os.path.join(folder, name))  # noqa: PTH118
                    if self._is_stored(below):
                        yield below

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self.root).replace(os.sep, "/")

    def _is_stored(self, path: str) -> bool:
        first, name = path.split("/", 1)[0], path.rpartition("/")[2]
        hidden = name.startswith(".") or name.endswith(".lock") or name == NAME
        return first in self._parts and not hidden


# ---- working copies of this process -------------------------------------------------------------------------------

_open: dict[Path, tuple[WorkingCopy, int]] = {}
_opening = threading.Lock()


def open_working_copy(
    root: Path, parts: Sequence[str], *, url: str, tenant: str, agent: str, connections: int
) -> Callable[[], None]:
    """Share a folder with all machines that use the same server. Return a function that ends the use of it.

    The parts of one process that use the same folder share the working copy.
    """
    from memoriter.extensions.postgres.database import PostgresDatabase
    from memoriter.extensions.postgres.server import open_server

    root = Path(os.path.realpath(root))
    with _opening:
        copy, users = _open.get(root, (None, 0))
        if copy is None:
            server = open_server(url, connections=connections)
            copy = WorkingCopy(
                PostgresDatabase(server, agent=agent, tenant=tenant, area="files"), root, parts
            )
            shared.share(root, copy)
        _open[root] = copy, users + 1
    return lambda: _close_working_copy(root)


def _close_working_copy(root: Path) -> None:
    with _opening:
        copy, users = _open[root]
        if users > 1:
            _open[root] = copy, users - 1
            return
        del _open[root]
        shared.unshare(root)
    copy.close()


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_inside(path: str) -> bool:
    return all(part not in ("", ".", "..") for part in path.split("/"))


def _check_name(path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise WriteError(f"{path!r} was not stored, because its name is not valid UTF-8.") from error
