"""Read the new turns of a transcript since the last position, as the records that the host wrote.

Records are returned unchanged, so that their reader sees the tools that were used and can determine the speaker.
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
from typing import Annotated, Any, BinaryIO

from pydantic import Field

from memoriter.errors import SourceError, reason_of
from memoriter.files.platform import READ
from memoriter.sessions.messages import Message, lines_of, read_record, turns_of, written_under
from memoriter.sessions.outside_text import OutsideText, TrustRules

#: Bytes at the start of a file that must be unchanged to continue reading it.
HEAD_BYTES = 1024
#: Bytes that are read at a time. After a crash, at most this much is processed again.
SLICE_BYTES = 512 * 1024
#: Bytes at the end of a transcript that are read without a position.
END_BYTES = 8 * 1024 * 1024

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TailPosition:
    """The position up to which a transcript has been read."""

    inode: int = 0
    #: Digest of the first bytes.
    head: str = ""
    offset: Annotated[int, Field(ge=0)] = 0
    #: Whether the session contains text from outside.
    tainted: bool = False
    #: Calls of local tools without a result yet.
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewTurns:
    """New records and the position after them."""

    records: tuple[Record, ...]
    position: TailPosition
    #: Whether the transcript continues after the new position.
    more: bool = False
    #: Entries and notes that the agent wrote after it had read text from outside, by id and path.
    relayed: tuple[str, ...] = ()


class RecordFilter:
    """Selects the records with speech, and the tool records that decide whose words it is."""

    def __init__(self, outside: OutsideText) -> None:
        #: The state after all records, selected or not.
        self.outside = outside
        #: The state as a reader of the selected records computes it.
        self._selected = OutsideText(rules=outside.rules)
        #: What the agent wrote after it had read text from outside.
        self.relayed: list[str] = []

    def accepts(self, message: Message, *, copied: bool = False) -> bool:
        """Return whether to select this record. ``copied``: it belongs to another session."""
        person = message.role == "user"
        _, self.outside = turns_of(message, 0, self.outside)
        self.relayed += written_under(message, self.outside)
        _, selected = turns_of(message, 0, self._selected)
        if copied or (self.outside.tainted and not selected.tainted and not person):
            return False  # an answer about text from outside needs the record of that text
        if not message.role and selected == self._selected:
            return False
        self._selected = selected
        return True


def file_size(path: Path) -> int | None:
    """Return the size of a transcript in bytes, or None if it is not a regular file."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def read_new_turns(
    path: Path,
    position: TailPosition | None = None,
    upto: int | None = None,
    *,
    rules: TrustRules | None = None,
) -> NewTurns:
    """Read the records after a position, or the last ones without a position. Raises `SourceError`."""
    rules = rules or TrustRules()
    with _open(path) as (file, status):
        end = status.st_size if upto is None else min(upto, status.st_size)
        if position is None:
            start = max(0, end - END_BYTES)
            outside = OutsideText(tainted=start > 0, rules=rules)  # the part before is unknown
            if start:
                start += len(_line(file, start - 1)) - 1  # start at the next complete line
        elif _is_same_file(file, status, position):
            start, outside = position.offset, OutsideText(position.tainted, position.calls, rules)
        else:
            start, outside = 0, OutsideText(rules=rules)
        records, records_filter = list[Record](), RecordFilter(outside)
        offset, more = start, False
        for line, after in _lines(file, start, end):
            if position is not None and offset - start >= SLICE_BYTES:
                more = True
                break
            offset = after
            record = _record(line)
            if records_filter.accepts(read_record(record)):
                records.append(record)
        head = _digest(file, min(HEAD_BYTES, offset))
        outside = records_filter.outside
        reached = TailPosition(status.st_ino, head, offset, outside.tainted, outside.calls)
        return NewTurns(tuple(records), reached, more, tuple(records_filter.relayed))


@contextmanager
def _open(path: Path) -> Iterator[tuple[BinaryIO, os.stat_result]]:
    try:
        descriptor = os.open(path, READ)
    except (OSError, ValueError) as error:
        raise SourceError(f"The transcript {path} cannot be read: {reason_of(error)}.") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):  # check before fdopen, which fails on a folder
        os.close(descriptor)
        raise SourceError(f"The transcript {path} is not a regular file.")
    with os.fdopen(descriptor, "rb") as file:
        yield file, status


def _is_same_file(file: BinaryIO, status: os.stat_result, position: TailPosition) -> bool:
    """Return whether this is still the file that was read. It may have been truncated or replaced."""
    if status.st_ino != position.inode or status.st_size < position.offset:
        return False
    return _digest(file, min(HEAD_BYTES, position.offset)) == position.head


def _digest(file: BinaryIO, length: int) -> str:
    file.seek(0)
    return hashlib.sha256(file.read(length)).hexdigest()


def _line(file: BinaryIO, start: int) -> bytes:
    file.seek(start)
    return file.readline()


def _lines(file: BinaryIO, start: int, end: int) -> Iterator[tuple[bytes, int]]:
    """Yield each complete line before ``end`` with the offset after it. A line that is too long is empty."""
    file.seek(start)
    at = start
    for line, length, is_complete in lines_of(file):
        at += length
        if at > end or not is_complete:
            return
        yield line, at


def _record(line: bytes) -> Record:
    try:
        record = json.loads(line) if line.strip() else {}
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
