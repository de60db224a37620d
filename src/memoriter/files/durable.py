"""A file that is on the disk whole, or not at all: written beside, synced, put in place, its folder synced.

Every file that memoriter replaces goes through here. A note, which people edit at the same time, is put in place by
`writing.files`, which exchanges versions; it too begins with a file beside it. Nothing else is imported here: a hook
has no time to load a room for this.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

_counter = itertools.count()


def write(path: Path, data: bytes, *, mode: int = 0o600, unless: Callable[[], bool] = lambda: False) -> bool:
    """Put the bytes in place of what stands there; on the disk when this is True.

    ``unless`` is asked at the last moment, when everything is ready: then all stays as it is.
    """
    make_folder(path.parent)
    beside = write_beside(path, [data], mode=mode)
    try:
        if unless():
            return False
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def write_beside(path: Path, pieces: Iterable[bytes], *, mode: int = 0o600) -> Path:
    """A synced file of these pieces in the folder of ``path``, hidden, for the caller to put in place or to remove."""
    beside = path.with_name(f".{path.name[:40]}.{os.getpid()}-{next(_counter)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(beside, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            beside.chmod(mode)  # whatever the umask says
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return beside


def make_folder(folder: Path) -> None:
    """Make the folder and its missing parents, each for the owner alone, and sync each parent: what stands in a lost
    folder is lost."""
    missing = list(itertools.takewhile(lambda at: not at.is_dir(), (folder, *folder.parents)))
    for new in reversed(missing):
        new.mkdir(mode=0o700, exist_ok=True)
        sync_folder(new.parent)


def sync_folder(folder: Path) -> None:
    """Let the names in a folder be on the disk."""
    if sys.platform == "win32":
        return  # folders cannot be opened there, and NTFS journals names by itself
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def newest_state_files(folder: Path) -> list[Path]:
    """The files of a folder that hold our JSON, newest first."""
    found = list[tuple[float, str]]()
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".json") and not entry.name.startswith("."):
                found.append((entry.stat().st_mtime, entry.path))
    return [Path(path) for _, path in sorted(found, reverse=True)]


def remove_temporary_files(folder: Path, older_than: float) -> None:
    """Remove what killed writers left behind before that time."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith(".tmp"):
                with contextlib.suppress(OSError):
                    if entry.stat().st_mtime < older_than:
                        Path(entry.path).unlink()
