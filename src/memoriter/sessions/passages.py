"""Which turns of a session stand together: as many as fit, in order, each whole.

A fold over the turns: what is still open is all that must be remembered to go on when the transcript has grown, so a
transcript read in pieces gives the same passages as one read whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from memoriter.records import Passage, Turn, least_trusted
from memoriter.text.estimate import width

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
