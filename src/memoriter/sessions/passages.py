"""Group the turns of a session into passages: consecutive whole turns, as many as fit.

The open turns are the only state. A transcript that is read in pieces therefore gives the same passages as one that is
read as a whole.
"""

from __future__ import annotations

import codecs
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

from memoriter.records import Passage, Turn, least_trusted
from memoriter.sessions.messages import EMPTY_MESSAGE, MAX_LINE, DamagedLine, parse, parse_or_empty, turns_of
from memoriter.sessions.outside_text import OutsideText, TrustRules
from memoriter.text.tokens import width

_LABEL = {"user": "User", "assistant": "Assistant"}

#: A pause this long ends a passage. The next morning, people talk about something else.
PAUSE_S = 6 * 3600.0


class Passages:
    """Groups turns into passages of about ``target`` and at most ``tokens`` tokens."""

    def __init__(self, tokens: int = 512, target: int = 512, open_turns: Iterable[Turn] = ()) -> None:
        self.budget = max(32, tokens * 4)
        self.target = min(target * 4, self.budget)
        self.open: list[Turn] = list(open_turns)

    def add(self, turn: Turn) -> list[Passage]:
        """Add a turn and return the passages that it completes."""
        completed: list[Passage] = []
        if self.open and not self._joins(turn):
            completed.append(passage(self.open))
            self.open = []
        self.open.append(turn)
        if width(_text(turn)) > self.budget:
            # A turn over the budget is a passage of its own, so that its pieces never change.
            completed.append(passage(self.open))
            self.open = []
        return completed

    def incomplete(self) -> list[Passage]:
        """Return the open turns as a passage, as if the session ended here."""
        return [passage(self.open)] if self.open else []

    def _joins(self, turn: Turn) -> bool:
        last = self.open[-1]
        used = sum(width(_text(one)) + 2 for one in self.open)
        # Text from outside gets its own passage. Otherwise it would lower the trust of what people said.
        same_side = (turn.trust == "untrusted") == (last.trust == "untrusted")
        pause = turn.time - last.time if turn.time and last.time else 0.0
        # End a passage before a question, not between a question and its answer.
        enough = self.target if turn.role == "user" else 3 * self.target
        fits = used < enough and used + width(_text(turn)) <= self.budget
        return same_side and pause < PAUSE_S and fits


def passage(turns: Sequence[Turn]) -> Passage:
    """Join turns into one passage. It has the lowest trust of its turns."""
    first = next((turn.time for turn in turns if turn.time), None)
    return Passage(
        start_line=turns[0].line,
        end_line=turns[-1].line,
        text="\n\n".join(map(_text, turns)),
        date=local_time(first).date().isoformat() if first else None,
        trust=least_trusted(*(turn.trust for turn in turns)),
    )


def local_time(seconds: float) -> datetime:
    """Convert seconds since the epoch to local time."""
    return datetime.fromtimestamp(seconds).astimezone()


def _text(turn: Turn) -> str:
    return f"{_LABEL[turn.role]}: {turn.text}"


# ---- reading a growing transcript -----------------------------------------------------------------------------

#: Bytes that are read at a time, so that a huge transcript is never in memory as a whole.
SLICE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """The position up to which a transcript has been read, and what identifies the part that was read."""

    inode: int = 0
    #: Digest of the first bytes.
    head: str = ""
    #: Digest of the last bytes before ``offset``.
    tail: str = ""
    offset: int = 0
    #: Checksum of everything before ``offset``.
    checksum: int = 0
    #: The size and the time of the file when it was read.
    size: int = 0
    mtime_ns: int = 0
    #: Complete lines before ``offset``.
    line: int = 0
    damaged: int = 0
    #: Whether the session contains text from outside.
    tainted: bool = False
    #: Calls of local tools without a result yet.
    calls: tuple[str, ...] = ()
    session: str = ""
    #: Turns whose passage is not complete.
    open: tuple[Turn, ...] = ()

    def to_json(self) -> str:
        """Serialise the position for the index."""
        fields = {name: getattr(self, name) for name in self.__slots__ if name != "open"}
        turns = [[turn.role, turn.text, turn.line, turn.time, turn.trust] for turn in self.open]
        return json.dumps({**fields, "open": turns}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> ReadPosition:
        """Parse a stored position. An unreadable one means reading from the start."""
        try:
            fields = json.loads(text)
            turns = tuple(Turn(*turn) for turn in fields["open"])
            return cls(**{**fields, "calls": tuple(fields["calls"]), "open": turns})
        except (ValueError, TypeError, KeyError):
            return cls()


def _may_become_record(line: bytes) -> bool:
    """Return whether an incomplete line can be the start of a record: an object in JSON, in UTF-8."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(line)
    except UnicodeDecodeError:
        return False
    return text.lstrip()[:1] in ("", "{") and "\0" not in text


class PassageReader:
    """Reads lines from a transcript and groups them into passages."""

    def __init__(self, position: ReadPosition, tokens: int, target: int, rules: TrustRules) -> None:
        self._sizes = (tokens, target)
        self._passages = Passages(*self._sizes, position.open)
        #: The turns of a last line without a line break, and whether it cannot become a record.
        self._ending: tuple[Turn, ...] = ()
        self.damaged_ending = False
        self.complete: list[Passage] = []
        self.bytes_read = 0
        self.offset, self.line, self.damaged = position.offset, position.line, position.damaged
        self.checksum = position.checksum
        self.outside = OutsideText(position.tainted, position.calls, rules)
        self.session = position.session

    def read(self, file: BinaryIO) -> bool:
        """Read a slice of complete lines. Return whether there is more."""
        while self.bytes_read < SLICE_BYTES:
            line = file.readline(MAX_LINE)
            self.bytes_read += len(line)
            if not line:
                return False
            if line.endswith(b"\n"):
                self._whole(line)
            elif len(line) < MAX_LINE:
                # The last line may be incomplete. Use it if it parses, and read it again next time.
                self._ending, _ = turns_of(parse_or_empty(line), self.line + 1, self.outside)
                self.damaged_ending = not _may_become_record(line)
                return False
            elif not self._skip(file, line):
                return False
        return True

    def _whole(self, line: bytes) -> None:
        self.offset += len(line)
        self.checksum = zlib.crc32(line, self.checksum)
        self.line += 1
        try:
            message = parse(line) if line.strip() else EMPTY_MESSAGE
        except DamagedLine:
            self.damaged += 1
            return
        self.session = self.session or message.session or ""
        turns, self.outside = turns_of(message, self.line, self.outside)
        for turn in turns:
            self.complete += self._passages.add(turn)

    def _skip(self, file: BinaryIO, start: bytes) -> bool:
        """Skip a line that is too long. Return False if its end has not been written yet."""
        length, checksum = len(start), zlib.crc32(start, self.checksum)
        while part := file.readline(MAX_LINE):
            self.bytes_read += len(part)
            length, checksum = length + len(part), zlib.crc32(part, checksum)
            if part.endswith(b"\n"):
                self.offset, self.checksum = self.offset + length, checksum
                self.line += 1
                return True
        return False

    def position(self) -> ReadPosition:
        """Return the position after the lines that were read."""
        return ReadPosition(
            offset=self.offset,
            checksum=self.checksum,
            line=self.line,
            damaged=self.damaged,
            tainted=self.outside.tainted,
            calls=self.outside.calls,
            session=self.session,
            open=tuple(self._passages.open),
        )

    def incomplete(self) -> list[Passage]:
        """Return the incomplete passages. They are not part of the position."""
        ending = Passages(*self._sizes, self._passages.open)
        complete = [passage for turn in self._ending for passage in ending.add(turn)]
        return [*complete, *ending.incomplete()]
