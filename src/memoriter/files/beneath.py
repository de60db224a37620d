"""A folder of the workspace that stays the same folder, whatever is swapped meanwhile.

Between looking at a path and writing to it, one of its folders may become a link to elsewhere. So the path is walked
one folder at a time, each opened relative to the one before and never through a link, and what is written goes to the
folder that is open. Where a system cannot name an open folder, its path is looked at and must do.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from memoriter.errors import NotFound, PathRefused

MAX_NAME_BYTES = 200  #: of one part of a path; room for the suffix of a temporary file is left
MAX_DEPTH = 16

_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CAN_PIN = sys.platform == "linux" and Path("/proc/self/fd").is_dir()


def parts_of(path: str) -> tuple[str, ...]:
    """The names that a path is made of; refuses one that could mean something else than what it says."""
    parts = tuple(part for part in path.split("/") if part)
    for part in parts:
        if part.startswith(".") or part != part.strip() or "\\" in part or ":" in part:
            raise PathRefused(
                f"{path[:200]!r} is refused: write it from the folder down, without '..' and hidden names."
            )
        if any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in part):
            raise PathRefused(f"{path[:200]!r} is refused: it holds characters that cannot be seen.")
        if len(part.encode()) > MAX_NAME_BYTES:
            raise PathRefused(f"{path[:80]!r}… is refused: a name has at most {MAX_NAME_BYTES} bytes.")
    if len(parts) > MAX_DEPTH:
        raise PathRefused(f"{path[:80]!r}… is refused: it has more than {MAX_DEPTH} parts.")
    return parts


@contextlib.contextmanager
def pinned(root: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[Path]:
    """A path by which the folder ``root/parts`` is reached while it is open; no part below the root is a link."""
    if not _CAN_PIN:
        yield _checked(root, parts, make=make)
        return
    try:
        descriptor = os.open(root, _FOLDER)
    except OSError as error:
        raise _in_words(error, root.name) from error
    try:
        for part in parts:
            inner = _inner(descriptor, part, make=make)
            os.close(descriptor)
            descriptor = inner
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _inner(folder: int, name: str, *, make: bool) -> int:
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=folder)
            os.fsync(folder)
    try:
        return os.open(name, _FOLDER | _NOFOLLOW, dir_fd=folder)
    except OSError as error:
        raise _in_words(error, name) from error


def _checked(root: Path, parts: Sequence[str], *, make: bool) -> Path:
    folder = root.resolve()
    for part in parts:
        folder /= part
        if make:
            folder.mkdir(mode=0o700, exist_ok=True)
        if folder.is_symlink():
            raise PathRefused(f"{part!r} is a symbolic link, and is not followed.")
        if not folder.is_dir():
            raise NotFound(f"There is no folder {part!r}.")
    return folder


def _in_words(error: OSError, name: str) -> PathRefused | NotFound:
    if error.errno == errno.ENOENT:
        return NotFound(f"There is no folder {name!r}.")
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
        return PathRefused(f"{name!r} is no folder, or a symbolic link, which is not followed.")
    return PathRefused(f"{name!r} cannot be opened: {(error.strerror or str(error)).lower()}.")
