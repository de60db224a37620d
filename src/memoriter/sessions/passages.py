"""Which turns of a session stand together: as many as fit, in order, each whole.

A fold over the turns: what is still open is all that must be remembered to go on when the transcript has grown, so a
transcript read in pieces gives the same passages as one read whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

from memoriter.records import Passage, Turn, least_trusted
from memoriter.sessions.messages import (
    EMPTY_MESSAGE,
    MAX_LINE,
    DamagedLine,
    Message,
    parse,
    parse_or_empty,
    turn_of,
)
from memoriter.sessions.untrusted_tools import OutsideText
from memoriter.text.measure import width

_LABEL = {"user": "User", "assistant": "Assistant"}

#: A pause this long ends a passage: what is said next morning is about something else.
PAUSE_S = 6 * 3600.0


class Passages:
    """Gathers turns into passages of about ``target`` and at most ``tokens`` tokens."""

    def __init__(self, tokens: int = 512, target: int = 512, open_turns: Iterable[Turn] = ()) -> None:
        self.budget = max(32, tokens * 4)
        self.target = min(target * 4, self.budget)
        self.open: list[Turn] = list(open_turns)

    def add(self, turn: Turn) -> list[Passage]:
        """Take a turn; the passages that it completes."""
        done: list[Passage] = []
        if self.open and not self._joins(turn):
            done.append(passage(self.open))
            self.open = []
        self.open.append(turn)
        if width(_said(turn)) > self.budget:
            # Too long for any company: complete at once, so that its pieces never change.
            done.append(passage(self.open))
            self.open = []
        return done

    def rest(self) -> list[Passage]:
        """What is open, as if the session had ended here."""
        return [passage(self.open)] if self.open else []

    def _joins(self, turn: Turn) -> bool:
        last = self.open[-1]
        used = sum(width(_said(one)) + 2 for one in self.open)
        # Text from outside stands alone: it must not lower the trust of what people said.
        same_side = (turn.trust == "untrusted") == (last.trust == "untrusted")
        pause = turn.time - last.time if turn.time and last.time else 0.0
        # A passage ends before a question rather than between a question and its answer.
        enough = self.target if turn.role == "user" else 3 * self.target
        fits = used < enough and used + width(_said(turn)) <= self.budget
        return same_side and pause < PAUSE_S and fits


def passage(turns: Sequence[Turn]) -> Passage:
    """The turns as one text; the least trusted of them speaks for all."""
    first = next((turn.time for turn in turns if turn.time), None)
    return Passage(
        start_line=turns[0].line,
        end_line=turns[-1].line,
        text="\n\n".join(map(_said, turns)),
        date=local_time(first).date().isoformat() if first else None,
        trust=least_trusted(*(turn.trust for turn in turns)),
    )


def local_time(seconds: float) -> datetime:
    """A moment as the people of this machine would name it."""
    return datetime.fromtimestamp(seconds).astimezone()


def _said(turn: Turn) -> str:
    return f"{_LABEL[turn.role]}: {turn.text}"


# ---- a growing file ----------------------------------------------------------------------------------------------

SLICE_BYTES = 8 * 1024 * 1024  #: read at a time, so that a huge transcript never stands in memory whole


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """How far a transcript was read, and what it must look like for the reading to go on from there."""

    inode: int = 0
    head: str = ""  #: digest of its first bytes
    tail: str = ""  #: digest of the last bytes before ``offset``
    offset: int = 0
    line: int = 0  #: whole lines before ``offset``
    damaged: int = 0
    tainted: bool = False  #: text from the network came in since a person last spoke
    calls: tuple[str, ...] = ()  #: of tools that bring in such text, not answered yet
    session: str = ""
    open: tuple[Turn, ...] = ()  #: turns whose passage is not complete

    def to_json(self) -> str:
        fields = {name: getattr(self, name) for name in self.__slots__ if name != "open"}
        turns = [[turn.role, turn.text, turn.line, turn.time, turn.trust] for turn in self.open]
        return json.dumps({**fields, "open": turns}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> ReadPosition:
        try:
            fields = json.loads(text)
            turns = tuple(Turn(*turn) for turn in fields["open"])
            return cls(**{**fields, "calls": tuple(fields["calls"]), "open": turns})
        except (ValueError, TypeError, KeyError):
            return cls()  # not ours, or of another release: read from the start


class PassageReader:
    """Turns lines into passages and keeps count."""

    def __init__(self, mark: ReadPosition, tokens: int, target: int) -> None:
        self._sizes = (tokens, target)
        self._passages = Passages(*self._sizes, mark.open)
        self._ending: Turn | None = None  #: said by a last line that has no line end yet
        self.done: list[Passage] = []
        self.taken = 0
        self.offset, self.line, self.damaged = mark.offset, mark.line, mark.damaged
        self.outside, self.session = OutsideText(mark.tainted, mark.calls), mark.session

    def take(self, file: BinaryIO) -> bool:
        """Read a slice of whole lines; whether there is more."""
        while self.taken < SLICE_BYTES:
            line = file.readline(MAX_LINE)
            self.taken += len(line)
            if not line:
                return False
            if line.endswith(b"\n"):
                self._whole(line)
            elif len(line) < MAX_LINE:
                # The last line, perhaps half written: shown if it makes sense already, read again next time.
                self._ending, _ = turn_of(parse_or_empty(line), self.line + 1, self.outside)
                return False
            elif not self._skip(file, len(line)):
                return False
        return True

    def _whole(self, line: bytes) -> None:
        self.offset += len(line)
        self.line += 1
        try:
            message = parse(line) if line.strip() else EMPTY_MESSAGE
        except DamagedLine:
            self.damaged += 1
            return
        self.session = self.session or message.session or ""
        turn = self._turn(message, self.line)
        if turn:
            self.done += self._passages.add(turn)

    def _turn(self, message: Message, line: int) -> Turn | None:
        turn, self.outside = turn_of(message, line, self.outside)
        return turn

    def _skip(self, file: BinaryIO, length: int) -> bool:
        """Pass over a line that is too long to matter; False when its end is not written yet."""
        while part := file.readline(MAX_LINE):
            self.taken += len(part)
            length += len(part)
            if part.endswith(b"\n"):
                self.offset += length
                self.line += 1
                return True
        return False

    def mark(self) -> ReadPosition:
        return ReadPosition(
            offset=self.offset,
            line=self.line,
            damaged=self.damaged,
            tainted=self.outside.tainted,
            calls=self.outside.calls,
            session=self.session,
            open=tuple(self._passages.open),
        )

    def rest(self) -> list[Passage]:
        """The passages that are not complete, as they stand now; the mark knows nothing of them."""
        ending = Passages(*self._sizes, self._passages.open)
        return [*(ending.add(self._ending) if self._ending else []), *ending.rest()]
