"""A file of somebody else's, copied to the byte to where nothing stands; what stands there is compared, never replaced.

A transcript is the exception: it only grows, so a copy that is the beginning of it is brought up to date.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal

from recollect.errors import SourceError
from recollect.records import ImportAction, ImportStep
from recollect.writing.exchange import place
from recollect.writing.folders import make_folder, sync_folder

MOST = 512 * 1024 * 1024  #: bytes of one file

_counter = itertools.count()


def step_of(kind: Literal["note", "session"], source: Path, target: Path) -> ImportStep:
    """What copying a file would do."""
    try:
        action = compared(source, target, grows=kind == "session")
    except (SourceError, OSError) as error:
        return ImportStep(kind, source, target, "other", str(error))
    return ImportStep(kind, source, target, action, "another file stands there" if action == "other" else "")


def copied(step: ImportStep) -> ImportStep:
    """The step, done if there is anything to do, or with the reason why it was not."""
    if step.action not in ("new", "grown"):
        return step
    try:
        copy(step.source, step.target, step.action)
    except (SourceError, OSError) as error:
        return ImportStep(step.kind, step.source, step.target, "other", str(error))
    return step


def compared(source: Path, target: Path, *, grows: bool) -> ImportAction:
    """What copying would do."""
    try:
        there = target.lstat()
    except FileNotFoundError:
        return "new"
    if not stat.S_ISREG(there.st_mode):
        return "other"
    with _opened(source) as ours, target.open("rb") as theirs:
        while part := theirs.read(1024 * 1024):
            if ours.read(len(part)) != part:
                return "other"
        if not ours.read(1):
            return "same"
    return "grown" if grows else "other"


def copy(source: Path, target: Path, action: ImportAction) -> None:
    """Copy a file that is new or has grown; on the disk when this returns."""
    make_folder(target.parent)
    beside = target.with_name(f".{target.name[:60]}.{os.getpid()}-{next(_counter)}.tmp")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file, _opened(source) as ours:
            while part := ours.read(1024 * 1024):
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
            status = os.fstat(ours.fileno())
        os.utime(
            beside, ns=(status.st_atime_ns, status.st_mtime_ns)
        )  # how old it is says when it was written
        if action == "new":
            place(beside, target)
        else:
            beside.replace(target)
    except FileExistsError as error:
        raise SourceError(f"{target} was made by somebody else meanwhile, and is left as it is.") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            beside.unlink()
    sync_folder(target.parent)


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
