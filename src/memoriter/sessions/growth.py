"""Reading a file of lines that only grows, from where the last reading stopped.

A `Mark` says how far a transcript was read and what must still be true of the file for the reading to go on there; a
`Reading` takes whole lines from an open file and folds them into passages. Files are opened by ``transcripts``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from memoriter.records import Passage, Trust, Turn
from memoriter.sessions.messages import NOTHING, Damaged, Message, parse, read_record
from memoriter.sessions.passages import Passages
from memoriter.sessions.untrusted_tools import Outside

SLICE_BYTES = 8 * 1024 * 1024  #: read at a time, so that a huge transcript never stands in memory whole
MAX_LINE = 4 * 1024 * 1024  #: bytes; a longer line is a picture or a tool's output, and skipped unread


@dataclass(frozen=True, slots=True)
class Mark:
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
    def from_json(cls, text: str) -> Mark:
        try:
            fields = json.loads(text)
            turns = tuple(Turn(*turn) for turn in fields["open"])
            return cls(**{**fields, "calls": tuple(fields["calls"]), "open": turns})
        except (ValueError, TypeError, KeyError):
            return cls()  # not ours, or of another release: read from the start


class Reading:
    """Turns lines into passages and keeps count."""

    def __init__(self, mark: Mark, tokens: int, target: int) -> None:
        self._sizes = (tokens, target)
        self._passages = Passages(*self._sizes, mark.open)
        self._ending: Turn | None = None  #: said by a last line that has no line end yet
        self.done: list[Passage] = []
        self.taken = 0
        self.offset, self.line, self.damaged = mark.offset, mark.line, mark.damaged
        self.outside, self.session = Outside(mark.tainted, mark.calls), mark.session

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
                self._ending, _ = turn_of(parsed(line), self.line + 1, self.outside)
                return False
            elif not self._skip(file, len(line)):
                return False
        return True

    def _whole(self, line: bytes) -> None:
        self.offset += len(line)
        self.line += 1
        try:
            message = parse(line) if line.strip() else NOTHING
        except Damaged:
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

    def mark(self) -> Mark:
        return Mark(
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


def turn_of(message: Message, line: int, before: Outside) -> tuple[Turn | None, Outside]:
    """What was said, with whose words it is, and whether text from outside is in play after it.

    What an agent says after a tool brought in text from the network may be a stranger's words, until a person speaks;
    so may what it answers to a stranger.
    """
    outside = before.after(message.use, person=message.role == "user", stranger=message.stranger)
    if message.role is None:
        return None, outside
    person: Trust = "untrusted" if message.stranger else "owner"
    trust: Trust = person if message.role == "user" else "untrusted" if outside.tainted else "agent"
    return Turn(message.role, message.text, line, message.time, trust), outside


def turns_of_messages(messages: Iterable[Mapping[str, object]]) -> list[Turn]:
    """What was said in messages that a host hands over, in any form that a transcript may have."""
    turns, outside = list[Turn](), Outside()
    for number, message in enumerate(messages, 1):
        turn, outside = turn_of(read_record(message), number, outside)
        turns += [turn] if turn else []
    return turns


def turns_of(file: BinaryIO) -> Iterator[Turn | None]:
    """One item a line, from the start: what was said there, or None."""
    outside, number = Outside(), 0
    while line := file.readline(MAX_LINE):
        number += 1
        if len(line) == MAX_LINE and not line.endswith(b"\n"):
            while (rest := file.readline(MAX_LINE)) and not rest.endswith(b"\n"):
                pass
            line = b""
        turn, outside = turn_of(parsed(line), number, outside)
        yield turn


def parsed(line: bytes) -> Message:
    """What the line says; nothing when it is damaged."""
    try:
        return parse(line)
    except Damaged:
        return NOTHING
