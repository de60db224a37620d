"""Taking turns: in a folder of people's notes, and in one of our own. And whether the notes' own folder is there."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from memoriter.errors import WriteError


def present(root: Path, was_there: Callable[[], bool]) -> None:
    """Refuse to write where a workspace was and is no more: it lies on a volume that is away, perhaps.

    What were written in its place would be hidden when it is back. One that never was may be made.
    """
    if not root.is_dir() and was_there():
        raise WriteError(
            f"The workspace {root} is not there, though its notes were indexed: nothing was written. Mount the volume"
            " that it lies on and try again, or make it anew with `memoriter init` if it is gone for good."
        )


@contextlib.contextmanager
def alone(folder: Path, wait_s: float) -> Iterator[None]:
    """No other writer of ours, in any thread or process, changes a note of this folder meanwhile."""
    if sys.platform == "win32":
        from filelock import FileLock

        with FileLock(folder / ".memoriter.lock", timeout=wait_s):
            yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        end, pause = time.monotonic() + wait_s, 0.001
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise WriteError(
                        f"Another process has been writing in {folder} for {wait_s:g} s; try again."
                    ) from None
                time.sleep(pause)
                pause = min(pause * 1.5, 0.02)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(path: Path, wait_s: float = 300.0) -> Iterator[None]:
    """Hold a lock of our own, in a folder of our own, while several files are looked at and one is written."""
    from filelock import FileLock, Timeout

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = FileLock(path, timeout=wait_s, mode=0o600)
    try:
        lock.acquire()
    except Timeout as error:
        raise WriteError(f"Another process has held {path} for {wait_s:g} s; try again.") from error
    try:
        yield
    finally:
        lock.release()
