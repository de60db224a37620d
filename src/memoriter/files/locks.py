"""Locks between threads and processes, and the check that a workspace is mounted."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from memoriter.errors import LockTimeout, WriteError, reason_of
from memoriter.files import platform, shared
from memoriter.files.durable import make_folder

LOCK_WAIT_S = 10.0
#: Longest pause between two attempts.
MAX_PAUSE_S = 0.02


def check_mounted(root: Path, was_there: Callable[[], bool]) -> None:
    """Raise `WriteError` if a workspace with indexed notes is missing.

    Its volume is probably not mounted. Files written in its place would be hidden once the volume is back.
    """
    shared.refresh(root)
    if not root.is_dir() and was_there():
        raise WriteError(
            f"The workspace {root} is missing, although its notes are indexed. Nothing was written. Mount its volume"
            " and try again, or run `memoriter init` to create it again if it is gone for good."
        )


@contextlib.contextmanager
def file_lock(
    path: Path, timeout_s: float = LOCK_WAIT_S, *, give_up: Callable[[], object] = lambda: False
) -> Iterator[None]:
    """Hold an exclusive lock against every other thread and process.

    ``path`` is a lock file, which is created if it is missing. If it is an existing folder, the folder itself is
    locked, so that no lock files appear among people's notes. In a shared folder, other machines are locked out too.

    Raises `LockTimeout` when the lock is still held after ``timeout_s``, or as soon as ``give_up``, which is called
    between two attempts, returns true. Exceptions of ``give_up`` are passed on. Raises `OSError` when the lock
    cannot be created.
    """
    if not path.is_dir():
        held = _locked_file(path)
    else:
        held = _locked_folder(path) if platform.CAN_LOCK_FOLDERS else _locked_file(_lock_file_of(path))
    with held as try_lock, shared.locking(path) as try_lock_elsewhere:
        end, pause = time.monotonic() + timeout_s, 0.001
        while not (try_lock() and try_lock_elsewhere()):
            left = end - time.monotonic()
            if left <= 0 or give_up():
                raise LockTimeout(f"Another process has held {path} for {timeout_s:g} s. Try again later.")
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, MAX_PAUSE_S)
        yield


@contextlib.contextmanager
def state_lock(path: Path, timeout_s: float = LOCK_WAIT_S) -> Iterator[None]:
    """Hold `file_lock`. Raises `WriteError` instead of `OSError` when the lock cannot be created."""
    with contextlib.ExitStack() as stack:
        with state_errors(path.parent):
            stack.enter_context(file_lock(path, timeout_s))
        yield


@contextlib.contextmanager
def state_errors(folder: Path) -> Iterator[None]:
    """Raise `WriteError` for an `OSError` of a file in this folder."""
    try:
        yield
    except OSError as error:
        raise WriteError(
            f"{folder} cannot be written ({reason_of(error)}). Check the disk, then try again."
        ) from error


@contextlib.contextmanager
def _locked_folder(folder: Path) -> Iterator[Callable[[], bool]]:
    held = list[int]()

    def try_lock() -> bool:
        with contextlib.suppress(BlockingIOError):
            if not held:
                held.append(platform.lock_folder(str(folder), wait=False))
        return bool(held)

    try:
        yield try_lock
    finally:
        for descriptor in held:
            os.close(descriptor)


def _lock_file_of(folder: Path) -> Path:
    """Return the file that stands for a folder where folders cannot be locked. It is not among people's notes."""
    name = hashlib.sha256(os.path.normcase(folder.resolve()).encode("utf-8", "surrogateescape")).hexdigest()
    return Path(tempfile.gettempdir(), "memoriter-locks", name[:32])


@contextlib.contextmanager
def _locked_file(path: Path) -> Iterator[Callable[[], bool]]:
    from filelock import FileLock, Timeout

    make_folder(path.parent)
    lock = FileLock(path, timeout=0, mode=0o600)

    def try_lock() -> bool:
        with contextlib.suppress(Timeout):
            if not lock.is_locked:
                lock.acquire()
        return bool(lock.is_locked)

    try:
        yield try_lock
    finally:
        lock.release()
