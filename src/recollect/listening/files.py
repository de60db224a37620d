"""Small files of our own, written whole: beside, synced, renamed, the folder synced; and taking turns.

Not by `writing.files`, which guards notes against people's edits: a hook has no time to load that room, and no need.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

_counter = itertools.count()


def write(path: Path, data: bytes, *, mode: int = 0o600, unless: Callable[[], bool] = lambda: False) -> bool:
    """Put the bytes in place of what stands there; on the disk when this is True.

    ``unless`` is asked at the last moment, when everything is ready: then all stays as it is.
    """
    make_folder(path.parent)
    beside = path.with_name(f".{path.name[:100]}.{os.getpid()}-{next(_counter)}.tmp")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        beside.chmod(mode)
        if unless():
            return False
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    _sync(path.parent)
    return True


def make_folder(folder: Path) -> None:
    """Make the folder and what is missing above it, each for the owner alone."""
    for missing in reversed([at for at in (folder, *folder.parents) if not at.is_dir()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def _sync(folder: Path) -> None:
    if sys.platform == "win32":
        return  # folders cannot be opened there, and NTFS journals names by itself
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def alone(lock: Path, wait_s: float) -> Iterator[bool]:
    """Whether nobody else holds the lock, now or within this time; then it is ours meanwhile."""
    from filelock import FileLock, Timeout

    make_folder(lock.parent)
    held = FileLock(lock, timeout=wait_s, mode=0o600)
    try:
        held.acquire()
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        held.release()


def by_age(folder: Path) -> list[Path]:
    """The files of a folder that hold our JSON, newest first."""
    found = list[tuple[float, str]]()
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".json") and not entry.name.startswith("."):
                found.append((entry.stat().st_mtime, entry.path))
    return [Path(path) for _, path in sorted(found, reverse=True)]


def sweep(folder: Path, older_than: float) -> None:
    """Remove what killed writers left behind before that time."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith(".tmp"):
                with contextlib.suppress(OSError):
                    if entry.stat().st_mtime < older_than:
                        Path(entry.path).unlink()
