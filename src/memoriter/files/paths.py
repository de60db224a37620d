"""Open files and folders below a root so that nothing outside of it is read or written.

Between the check of a path and its use, one of its folders may become a symbolic link. So paths are walked one folder
at a time. Each folder is opened relative to the one before, and links are never followed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

from memoriter.errors import NotFound, PathRefused, SourceError, reason_of
from memoriter.files import platform
from memoriter.files.durable import make_folder

#: Bytes of one part of a path. This leaves room for the suffix of a temporary file.
MAX_NAME_BYTES = 200
MAX_DEPTH = 16

_PINNED = ("/", "proc", "self", "fd")


def path_parts(path: str) -> tuple[str, ...]:
    """Split a relative path into its parts. Raises `PathRefused` for parts that are hidden or ambiguous."""
    parts = tuple(part for part in path.split("/") if part)
    for part in parts:
        if part.startswith(".") or part != part.strip() or "\\" in part or ":" in part:
            raise PathRefused(
                f"{path[:200]!r} is refused. Use a path relative to the folder, without '..' and hidden names."
            )
        if any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in part):
            raise PathRefused(f"{path[:200]!r} is refused because it contains invisible characters.")
        if platform.is_reserved(part):
            raise PathRefused(
                f"{path[:200]!r} is refused because this system cannot have a file named {part!r}."
            )
        if len(part.encode()) > MAX_NAME_BYTES:
            raise PathRefused(
                f"{path[:80]!r}… is refused because a name is longer than {MAX_NAME_BYTES} bytes."
            )
    if len(parts) > MAX_DEPTH:
        raise PathRefused(f"{path[:80]!r}… is refused because it has more than {MAX_DEPTH} parts.")
    return parts


@contextlib.contextmanager
def open_folder(root: Path, parts: Sequence[str], *, make: bool = False) -> Iterator[Path]:
    """Open the folder ``root/parts`` and yield a path that keeps pointing to it. Links below the root are refused."""
    if not platform.CAN_PIN:
        yield _checked_folder(root, parts, make=make)
        return
    try:
        descriptor = os.open(root, platform.FOLDER)
    except OSError as error:
        raise _folder_error(error, root.name) from error
    try:
        for part in parts:
            inner = _inner(descriptor, part, make=make)
            os.close(descriptor)
            descriptor = inner
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def open_resolved(folder: Path, *, make: bool = False) -> Iterator[Path]:
    """Open a folder by its resolved path and yield a path that keeps pointing to it.

    A part of the path that became a link since it was resolved is refused. A path of `open_folder` may be given too.
    """
    if folder.parts[:4] == _PINNED:
        with open_folder(Path(*folder.parts[:5]), folder.parts[5:], make=make) as pinned:
            yield pinned
        return
    missing = list(takewhile(lambda at: make and not at.is_dir(), (folder, *folder.parents)))
    top = missing[-1].parent if missing else folder
    with open_folder(top, ()) as pinned:
        # The system knows the path of an open folder. Some disks ignore case.
        found = os.readlink(pinned) if platform.CAN_PIN else str(pinned)  # noqa: PTH115 - a text is compared
        if not platform.same_path(found, str(top)):
            raise PathRefused(f"{folder} leads through a symbolic link now. Links are not followed.")
        with open_folder(pinned, [at.name for at in reversed(missing)], make=make) as inner:
            yield inner


def _inner(folder: int, name: str, *, make: bool) -> int:
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=folder)
            os.fsync(folder)
    try:
        return os.open(name, platform.FOLDER | platform.NOFOLLOW, dir_fd=folder)
    except OSError as error:
        raise _folder_error(error, name) from error


def _checked_folder(root: Path, parts: Sequence[str], *, make: bool) -> Path:
    folder = root.resolve()
    for part in ("", *parts):
        folder /= part
        try:
            if make and part:
                with contextlib.suppress(FileExistsError):
                    make_folder(folder)
            found = folder.lstat()
        except OSError as error:
            raise _folder_error(error, part or root.name) from error
        if not stat.S_ISDIR(found.st_mode) or not platform.same_path(str(folder.resolve()), str(folder)):
            raise _folder_error(OSError(errno.ELOOP, "a link"), part or root.name)
    return folder


def _folder_error(error: OSError, name: str) -> PathRefused | NotFound:
    if error.errno == errno.ENOENT:
        return NotFound(f"The folder {name!r} does not exist.")
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
        return PathRefused(f"{name!r} is not a folder, or it is a symbolic link. Links are not followed.")
    return PathRefused(f"{name!r} cannot be opened: {reason_of(error).lower()}.")


@contextmanager
def open_inside(root: str, relative: str) -> Iterator[int]:
    """Open the regular file ``root/relative`` and yield its descriptor.

    ``root`` is a resolved path. Links in it or below it, which must have been made since, are refused.
    """
    try:
        descriptor = (
            _walk(root, relative.split("/")) if platform.CAN_WALK else _open_and_compare(root, relative)
        )
    except OSError as error:
        raise _file_error(error) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise PathRefused("Not a regular file.")
        yield descriptor
    finally:
        os.close(descriptor)


def _walk(root: str, parts: list[str]) -> int:
    folder = os.open(root, platform.FOLDER | platform.NOFOLLOW)
    try:
        if os.path.realpath(root) != root or not os.path.samestat(os.fstat(folder), os.lstat(root)):
            raise OSError(errno.ELOOP, "a link")
        for part in parts[:-1]:
            inner = os.open(part, platform.FOLDER | platform.NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], platform.READ | platform.NOFOLLOW, dir_fd=folder)
    finally:
        os.close(folder)


def _open_and_compare(root: str, relative: str) -> int:
    """Open a file, then check that its path still leads to it. For systems without relative opening."""
    path = Path(root, relative)
    descriptor = platform.open_plain(path)
    real = Path(os.path.realpath(path))
    if real != path or not os.path.samestat(os.fstat(descriptor), real.lstat()):
        os.close(descriptor)
        raise OSError(errno.ELOOP, "a link")
    return descriptor


def _file_error(error: OSError) -> SourceError:
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
        return PathRefused("The file or a part of its path became a symbolic link. Links are not followed.")
    if error.errno == errno.ENOENT:
        return SourceError("The file was removed before it could be read.")
    if error.errno == errno.ENXIO:
        return PathRefused("Not a regular file.")
    return SourceError(f"The file cannot be read: {reason_of(error).lower()}.")
