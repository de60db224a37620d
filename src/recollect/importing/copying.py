"""A file of somebody else's, copied to the byte to where nothing stands; what stands there is compared, never replaced.

A transcript is the exception: it only grows, so a copy that is the beginning of it is brought up to date. Copies go
below a folder of ours and nowhere else: no link on the way is followed.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal

from recollect.durable import make_folder, sync_folder, write_beside
from recollect.errors import NotFound, SourceError
from recollect.records import ImportAction, ImportStep
from recollect.writing.beneath import pinned
from recollect.writing.exchange import place

MOST = 512 * 1024 * 1024  #: bytes of one file


def step_of(kind: Literal["note", "session"], source: Path, root: Path, *below: str) -> ImportStep:
    """What copying a file to this place below the root would do."""
    target = root.joinpath(*below)
    try:
        action = compared(source, root, target, grows=kind == "session")
    except (SourceError, OSError) as error:
        return ImportStep(kind, source, target, "other", str(error))
    return ImportStep(kind, source, target, action, "another file stands there" if action == "other" else "")


def copied(step: ImportStep, root: Path) -> ImportStep:
    """The step, done below the root if there is anything to do, or with the reason why it was not."""
    if step.action not in ("new", "grown"):
        return step
    try:
        copy(step.source, root, step.target, step.action)
    except (SourceError, NotFound, OSError) as error:
        return ImportStep(step.kind, step.source, step.target, "other", str(error))
    return step


def compared(source: Path, root: Path, target: Path, *, grows: bool) -> ImportAction:
    """What copying would do."""
    try:
        with pinned(root, target.relative_to(root).parts[:-1]) as folder:
            return _compared(source, folder / target.name, grows=grows)
    except (NotFound, FileNotFoundError):
        return "new"


def _compared(source: Path, target: Path, *, grows: bool) -> ImportAction:
    there = target.lstat()
    if not stat.S_ISREG(there.st_mode):
        return "other"
    with _opened(source) as ours, target.open("rb") as theirs:
        while part := theirs.read(1024 * 1024):
            if ours.read(len(part)) != part:
                return "other"
        if not ours.read(1):
            return "same"
    return "grown" if grows else "other"


def copy(source: Path, root: Path, target: Path, action: ImportAction) -> None:
    """Copy a file that is new or has grown; on the disk when this returns."""
    make_folder(root)
    with pinned(root, target.relative_to(root).parts[:-1], make=True) as folder:
        there = folder / target.name
        with _opened(source) as ours:
            beside = write_beside(there, iter(lambda: ours.read(1024 * 1024), b""))
            status = os.fstat(ours.fileno())
        try:
            os.utime(beside, ns=(status.st_atime_ns, status.st_mtime_ns))  # its age says when it was written
            if action == "new":
                place(beside, there)
            else:
                beside.replace(there)
        except FileExistsError as error:
            raise SourceError(
                f"{target} was made by somebody else meanwhile, and is left as it is."
            ) from error
        finally:
            beside.unlink(missing_ok=True)
        sync_folder(folder)


@contextlib.contextmanager
def _opened(source: Path) -> Iterator[BinaryIO]:
    """A regular file, never through a link."""
    try:
        descriptor = os.open(
            source, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        )
    except OSError as error:
        raise SourceError(f"{source} cannot be read: {error.strerror or error}.") from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST:
            raise SourceError(f"{source} is not a plain file of a usable size.")
        yield file
