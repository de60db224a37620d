"""A file of somebody else's, copied to the byte to where nothing stands; what stands there is compared, never replaced.

A transcript is the exception: it only grows, so a copy that is the beginning of it is brought up to date. One that was
told from a database is sealed: as long as the seal fits nobody has changed it, and a newer telling may take its place.
Copies go below a folder of ours and nowhere else: no link on the way is followed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from memoriter.errors import NotFound, SourceError
from memoriter.files.durable import make_folder, sync_folder, write_beside
from memoriter.files.edits import rename_without_replacing
from memoriter.files.paths import open_folder
from memoriter.records import ImportAction, ImportStep

MOST = 512 * 1024 * 1024  #: bytes of one file
SEAL = "sealed"  #: the key in a head


@dataclass(frozen=True, slots=True)
class Told:
    """A transcript that is no file yet: records of a session, the first of which is its head."""

    records: Sequence[Mapping[str, Any]]
    written_ns: int

    def sealed(self) -> bytes:
        """Its bytes; the head holds a digest of what follows."""
        head, *rest = self.records
        body = b"".join(_line(record) for record in rest)
        return _line({**head, SEAL: hashlib.sha256(body).hexdigest()}) + body

    def may_replace(self, there: bytes) -> bool:
        """Whether what stands there is an earlier telling, or a copy of the file that held the session before."""
        first, _, body = there.partition(b"\n")
        try:
            seal = json.loads(first).get(SEAL)
            if seal is not None:
                return bool(seal == hashlib.sha256(body).hexdigest())
            messages = [one for one in map(json.loads, there.splitlines()) if one.get("type") == "message"]
            known = {record.get("id") for record in self.records}
            return bool(json.loads(first).get("id") == self.records[0].get("id")) and all(
                one.get("id") in known for one in messages
            )
        except (ValueError, AttributeError, RecursionError, TypeError):  # the last: an id that is no text
            return False


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def step_of(
    kind: Literal["note", "session"], source: Path, root: Path, *below: str, told: Told | None = None
) -> ImportStep:
    """What copying a file to this place below the root would do, or putting there what was told."""
    target = root.joinpath(*below)
    try:
        action = compared(source, root, target, grows=kind == "session", told=told)
    except (SourceError, OSError) as error:
        return ImportStep(kind, source, target, "other", str(error))
    return ImportStep(kind, source, target, action, "another file stands there" if action == "other" else "")


def copied(step: ImportStep, root: Path, told: Told | None = None) -> ImportStep:
    """The step, done below the root if there is anything to do, or with the reason why it was not."""
    if step.action not in ("new", "grown"):
        return step
    try:
        copy(step.source, root, step.target, step.action, told)
    except (SourceError, NotFound, OSError) as error:
        return ImportStep(step.kind, step.source, step.target, "other", str(error))
    return step


def compared(
    source: Path, root: Path, target: Path, *, grows: bool, told: Told | None = None
) -> ImportAction:
    """What copying would do."""
    try:
        with open_folder(root, target.relative_to(root).parts[:-1]) as folder:
            there = folder / target.name
            return _compared_told(told, there) if told else _compared(source, there, grows=grows)
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


def _compared_told(told: Told, target: Path) -> ImportAction:
    there = target.lstat()
    if not stat.S_ISREG(there.st_mode) or there.st_size > MOST:
        return "other"
    held = target.read_bytes()
    return "same" if held == told.sealed() else "grown" if told.may_replace(held) else "other"


def copy(source: Path, root: Path, target: Path, action: ImportAction, told: Told | None = None) -> None:
    """Copy a file that is new or has grown, or put there what was told; on the disk when this returns."""
    make_folder(root)
    with open_folder(root, target.relative_to(root).parts[:-1], make=True) as folder:
        there = folder / target.name
        with io.BytesIO(told.sealed()) if told else _opened(source) as ours:
            beside = write_beside(there, iter(lambda: ours.read(1024 * 1024), b""))
            written = told.written_ns if told else os.fstat(ours.fileno()).st_mtime_ns
        try:
            os.utime(beside, ns=(written, written))  # its age says when it was written
            if action == "new":
                rename_without_replacing(beside, there)
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
