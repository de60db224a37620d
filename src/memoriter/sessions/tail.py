"""A transcript from where it was last heard: the records in which somebody spoke, as the host wrote them.

Records are handed on whole, so that whoever reads them sees the tools that were used and knows whose words are whose.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from memoriter.errors import SourceError
from memoriter.sessions.messages import MAX_LINE, Message, read_record
from memoriter.sessions.untrusted_tools import OutsideText

HEAD_BYTES = 1024  #: bytes at the beginning that must be the same when hearing goes on
SLICE_BYTES = (
    512 * 1024
)  #: bytes that are heard at a time: what is noted is at most so far behind what was done
END_BYTES = 8 * 1024 * 1024  #: bytes at the end of the whole that are looked at

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TailPosition:
    """How far a transcript was heard."""

    inode: int = 0
    head: str = ""  #: digest of its first bytes
    offset: int = 0
    tainted: bool = False  #: text from the network came in since a person last spoke
    calls: tuple[str, ...] = ()  #: of tools that bring in such text, not answered yet


@dataclass(frozen=True, slots=True)
class NewTurns:
    """What was said beyond a mark, and the mark after it."""

    records: tuple[Record, ...]
    mark: TailPosition
    more: bool = False  #: whether there is more beyond the new mark


class RecordFilter:
    """Which records are handed on: those in which somebody spoke, with the tools that say whose words they are."""

    def __init__(self, outside: OutsideText) -> None:
        self.outside = outside  #: where it stands, of all that was looked at
        self._told = OutsideText()  #: where whoever reads what is handed on believes that it stands

    def takes_up(self, said: Message, *, others: bool = False) -> bool:
        """Whether this record is handed on; ``others``: it is none of this session's own."""
        person = said.role == "user"
        self.outside = self.outside.after(said.use, person=person, stranger=said.stranger)
        told = self._told.after(said.use, person=person, stranger=said.stranger)
        if others or (self.outside.tainted and not told.tainted and not person):
            return False  # what an agent made of text from outside is not taken up without that
        if not said.role and told == self._told:
            return False
        self._told = told
        return True


def file_size(path: Path) -> int | None:
    """How many bytes the transcript has now; None when it is not a file."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def read_new_turns(path: Path, mark: TailPosition | None = None, upto: int | None = None) -> NewTurns:
    """The records beyond the mark, or the last ones of the whole without one; raises `SourceError`."""
    with _opened(path) as (file, status):
        end = status.st_size if upto is None else min(upto, status.st_size)
        if mark is None:
            start = max(0, end - END_BYTES)
            outside = OutsideText(tainted=start > 0)  # what came before is not known
            if start:
                start += len(_line(file, start - 1)) - 1  # at the next whole line
        elif _goes_on(file, status, mark):
            start, outside = mark.offset, OutsideText(mark.tainted, mark.calls)
        else:
            start, outside = 0, OutsideText()
        records, telling = list[Record](), RecordFilter(outside)
        offset, more = start, False
        for line, after in _lines(file, start, end):
            if mark is not None and offset - start >= SLICE_BYTES:
                more = True
                break
            offset = after
            record = _record(line)
            if telling.takes_up(read_record(record)):
                records.append(record)
        head = _digest(file, min(HEAD_BYTES, offset))
        outside = telling.outside
        return NewTurns(
            tuple(records), TailPosition(status.st_ino, head, offset, outside.tainted, outside.calls), more
        )


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, os.stat_result]]:
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    try:
        descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        raise SourceError(f"The transcript {path} cannot be read: {error}.") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):  # before Python opens it: a folder it would not
        os.close(descriptor)
        raise SourceError(f"The transcript {path} is not a plain file.")
    with os.fdopen(descriptor, "rb") as file:
        yield file, status


def _goes_on(file: BinaryIO, status: os.stat_result, mark: TailPosition) -> bool:
    """Whether the file is still the one that was heard: it may have been cut or written anew."""
    if status.st_ino != mark.inode or status.st_size < mark.offset:
        return False
    return _digest(file, min(HEAD_BYTES, mark.offset)) == mark.head


def _digest(file: BinaryIO, length: int) -> str:
    file.seek(0)
    return hashlib.sha256(file.read(length)).hexdigest()


def _line(file: BinaryIO, start: int) -> bytes:
    file.seek(start)
    return file.readline()


def _lines(file: BinaryIO, start: int, end: int) -> Iterator[tuple[bytes, int]]:
    """Each whole line before ``end``, with the place after it; a line that is too long is empty."""
    file.seek(start)
    at = start
    while at < end and (line := file.readline(MAX_LINE)):
        at += len(line)
        kept = line
        while not line.endswith(b"\n") and (line := file.readline(MAX_LINE)):
            at, kept = at + len(line), b""
        if at > end or not line.endswith(b"\n"):
            return
        yield kept, at


def _record(line: bytes) -> Record:
    try:
        record = json.loads(line) if line.strip() else {}
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
