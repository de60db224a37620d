"""Files and folders that only their owner may read, and a lock between processes.

These are the operations around a database file that SQLite does not do for us. None of them opens a database.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from memoriter.errors import LockTimeout, StoreError, StoreLocked
from memoriter.files.locks import file_lock


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
