"""Changes of files that this process did not make: by other machines that share a folder, and on this disk.

The files of a shared folder are a working copy of what a store keeps.

Code that changes files does so inside `changing`, and code that reads them calls `refresh` before. A folder on one disk
is not shared: both then do nothing. The table of shared folders belongs to the process, like the files themselves, so
that no writer can bypass it by a path of its own.

Hooks must start quickly, so this module imports nothing else of the package.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from memoriter.files.scan import Scan


class SharedFolder(Protocol):
    """A folder whose files other machines read and change too."""

    def refresh(self) -> None:
        """Fetch what others have changed."""

    def changing(self, paths: Sequence[str]) -> AbstractContextManager[None]:
        """Keep others from changing the folder, and fetch their changes. Store the changes of these paths at the end.

        A path names a file, or everything below a folder. If the store fails, the files are as before.
        """

    def try_lock(self, path: str) -> bool:
        """Try to take a lock against other machines. Once it is taken, fetch what others have changed."""

    def unlock(self, path: str) -> None:
        """Release a lock."""

    def erase_history(self, path: str) -> None:
        """Delete the earlier versions of a file from the store."""

    def follow(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Fetch changes of others as they happen, in the background. Return a function that ends this."""

    @property
    def announcements(self) -> int:
        """How often others have announced a change since `follow`, of files or of anything else."""


_folders: dict[str, SharedFolder] = {}


def share(root: Path, folder: SharedFolder) -> None:
    """Let every change below a folder go through a `SharedFolder`."""
    _folders[os.path.realpath(root)] = folder


def unshare(root: Path) -> None:
    """Let the files below a folder belong to this disk alone again."""
    _folders.pop(os.path.realpath(root), None)


def refresh(path: Path) -> None:
    """Fetch what others have changed, before files at or below this path are read."""
    folder, _ = _find(path)
    if folder is not None:
        folder.refresh()


@contextlib.contextmanager
def changing(*paths: Path) -> Iterator[None]:
    """Change these files, or files below these folders. The changes are stored for others when this ends."""
    with contextlib.ExitStack() as stack:
        found = [_find(path) for path in paths]
        for shared in dict.fromkeys(folder for folder, _ in found if folder is not None):
            stack.enter_context(shared.changing([real for folder, real in found if folder is shared]))
        yield


@contextlib.contextmanager
def locking(path: Path) -> Iterator[Callable[[], bool]]:
    """Yield a function that tries to lock a path against other machines. The lock is released at the end."""
    folder, real = _find(path)
    if folder is None:
        yield lambda: True
        return
    is_locked = False

    def try_lock() -> bool:
        nonlocal is_locked
        is_locked = is_locked or folder.try_lock(real)
        return is_locked

    try:
        yield try_lock
    finally:
        if is_locked:
            folder.unlock(real)


def erase_history(path: Path) -> None:
    """Delete the earlier versions of a file, because they contain text that was erased."""
    folder, real = _find(path)
    if folder is not None:
        folder.erase_history(real)


def follow(path: Path, on_change: Callable[[], None]) -> Callable[[], None]:
    """Fetch changes of others as they happen, and call a function after each. Return a function that ends this."""
    folder, _ = _find(path)
    return folder.follow(on_change) if folder is not None else lambda: None


def announcements(path: Path) -> int:
    """Return a number that grows when others announce a change. It stays 0 if the folder is not shared."""
    folder, _ = _find(path)
    return folder.announcements if folder is not None else 0


def _find(path: Path) -> tuple[SharedFolder | None, str]:
    """Return the shared folder of a path, and the path without links in the folders above it."""
    if not _folders:
        return None, ""
    real = os.path.join(os.path.realpath(path.parent), path.name)  # noqa: PTH118 - a link itself is not followed
    for root, folder in _folders.items():
        if real == root or real.startswith(root + os.sep):
            return folder, real
    return None, real


# ---- changes on this disk ----------------------------------------------------------------------------------------

#: A file that changed this recently may change again without a new timestamp, so it is compared again.
UNSETTLED_NS = 2_000_000_000


def changed_at(path: str) -> int:
    """Return when a file or folder last changed, in nanoseconds; -1 if it does not exist."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - faster than Path.stat
    except OSError:
        return -1


class Snapshot:
    """The stats of all files and folders at one moment. It tells without the database that nothing has changed.

    An edit in place changes no folder, so every file is compared. That takes about 2 µs for each.
    """

    def __init__(
        self, root: Path, files: Mapping[str, tuple[int, int]], folders: Mapping[str, int], mark: str
    ) -> None:
        self._root = root
        self._files = files
        self._folders = folders
        #: The sync after which it was taken.
        self._mark = mark

    @classmethod
    def none(cls, root: Path) -> Snapshot:
        """Return a snapshot that is never current."""
        return cls(root, {}, {}, "")

    @classmethod
    def of(cls, root: Path, scan: Scan, taken_at: float, mark: str) -> Snapshot:
        """Return the snapshot of a listing. It is never current if a file may change without a new timestamp."""
        files = {str(found.absolute): (found.mtime_ns, found.size) for found in scan.files}
        times = [*(mtime_ns for mtime_ns, _ in files.values()), *scan.folders.values()]
        if any(abs(taken_at * 1e9 - mtime_ns) < UNSETTLED_NS for mtime_ns in times):
            return cls.none(root)
        return cls(root, files, scan.folders, mark)

    def is_current(self, last_sync: str | None) -> bool:
        """Return whether no file has changed since then: this was the last sync, and every stat is the same."""
        refresh(self._root)
        if self._mark != last_sync:
            return False
        try:
            for folder, mtime_ns in self._folders.items():
                if changed_at(folder) != mtime_ns:
                    return False
            for file, stat in self._files.items():
                now = os.stat(file)  # noqa: PTH116 - faster than Path.stat
                if (now.st_mtime_ns, now.st_size) != stat:
                    return False
        except OSError:
            return False
        return True
