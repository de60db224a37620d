"""Opening a file beneath a folder so that nothing outside it can be read, whatever is swapped meanwhile.

Checking a path and then opening it leaves a moment in which a folder may become a link to elsewhere. So the path
is walked one folder at a time, each opened relative to the one before and never through a link: what was opened is
what was checked. Which paths may be read at all is decided in ``workspace``.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recollect.errors import PathRefused, SourceError

_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
# Opening a pipe must not wait for its writer, nor a terminal become ours.
_FILE = os.O_RDONLY | _NOFOLLOW | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_FILE |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_CAN_WALK = os.open in os.supports_dir_fd and bool(_NOFOLLOW)


@contextmanager
def open_beneath(root: str, relative: str) -> Iterator[int]:
    """A descriptor of the regular file ``root/relative``, no part of which below ``root`` is a link."""
    try:
        descriptor = _walk(root, relative.split("/")) if _CAN_WALK else _open_and_compare(root, relative)
    except OSError as error:
        raise _in_words(error) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise PathRefused("It is not a regular file.")
        yield descriptor
    finally:
        os.close(descriptor)


def _walk(root: str, parts: list[str]) -> int:
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER | _NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _FILE, dir_fd=folder)
    finally:
        os.close(folder)


def _open_and_compare(root: str, relative: str) -> int:
    """Where folders cannot be walked by descriptor: open, then see that the path still leads to the same file."""
    path = Path(root, relative)
    descriptor = os.open(path, _FILE)
    real = Path(os.path.realpath(path))
    if real != path or not os.path.samestat(os.fstat(descriptor), real.lstat()):
        os.close(descriptor)
        raise OSError(errno.ELOOP, "a link")
    return descriptor


def _in_words(error: OSError) -> SourceError:
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
        return PathRefused("It turned into a symbolic link, or a part of its path did, and was not followed.")
    if error.errno == errno.ENOENT:
        return SourceError("It vanished before it could be read.")
    if error.errno == errno.ENXIO:
        return PathRefused("It is not a regular file.")
    return SourceError(f"It cannot be read: {(error.strerror or str(error)).lower()}.")
