"""Atomic writes: after a crash, a file has its old content or its new content, never a mixture.

The new content is written to a temporary file in the same folder and synced. The temporary file then replaces the
target, and the folder is synced. Notes, which people edit at the same time, are written by ``edits``.

Hooks must start quickly, so this module imports only two others.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from memoriter.files import platform, shared

_counter = itertools.count()


def write(path: Path, data: bytes, *, mode: int = 0o600, unless: Callable[[], bool] = lambda: False) -> bool:
    """Replace a file atomically. When this returns True, the data is on disk.

    ``unless`` is called right before the replacement. If it returns true, nothing changes and this returns False.
    """
    with shared.changing(path):
        make_folder(path.parent)
        temporary = write_beside(path, [data], mode=mode)
        try:
            if unless():
                return False
            platform.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        platform.sync_path(path.parent)
        return True


def remove(path: Path) -> None:
    """Remove a state file. Raises `FileNotFoundError` if it does not exist."""
    with shared.changing(path):
        platform.sharing(path.unlink)


def write_beside(path: Path, pieces: Iterable[bytes], *, mode: int = 0o600) -> Path:
    """Write a synced, hidden temporary file next to ``path``. The caller renames or removes it."""
    temporary = path.with_name(f".{path.name[:40]}.{os.getpid()}-{next(_counter)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(temporary, flags, 0o600)
    except OSError as error:
        error.filename = str(path)  # people know the file, not its temporary name
        raise
    try:
        with os.fdopen(descriptor, "wb") as file:
            platform.set_mode(temporary, mode)
            for piece in pieces:
                file.write(piece)
            file.flush()
            platform.sync_file(descriptor)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents with mode 0700, and sync each parent."""
    missing = list(itertools.takewhile(lambda at: not at.is_dir(), (folder, *folder.parents)))
    for new in reversed(missing):
        new.mkdir(mode=0o700, exist_ok=True)
        platform.make_private(new)
        platform.sync_path(new.parent)


def remove_temporary_files(folder: Path, older_than: float) -> None:
    """Remove temporary files of killed writers that were last changed before this time."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith(".tmp"):
                with contextlib.suppress(OSError):
                    if entry.stat().st_mtime < older_than:
                        Path(entry.path).unlink()
