"""Small files of our own in one folder: taking turns, the newest first, and what killed writers left behind."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from memoriter.files.durable import make_folder

PAUSE_S = 0.05  #: between two looks at a lock that somebody holds


@contextlib.contextmanager
def alone(lock: Path, wait_s: float, *, needless: Callable[[], bool] = lambda: False) -> Iterator[bool]:
    """Whether nobody else holds the lock, now or within this time; then it is ours meanwhile.

    ``needless``: whether there is nothing left to wait for.
    """
    from filelock import FileLock, Timeout

    make_folder(lock.parent)
    held = FileLock(lock, timeout=0, mode=0o600)
    end = time.monotonic() + wait_s
    while not held.is_locked:
        try:
            held.acquire()
        except Timeout:
            left = end - time.monotonic()
            if left <= 0 or needless():
                yield False
                return
            time.sleep(min(PAUSE_S, left))
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
