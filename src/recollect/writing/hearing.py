"""What of a session was heard already: hosts hand over the whole conversation each time, and what was said once must
not count again.

Of each turn a keyed digest is kept and how often it came, never a word of it. A conversation that its host has
shortened is known by what is left of it. What is learned from a turn is not decided here.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from recollect.writing import files
from recollect.writing.folders import locked

MOST = 4_000  #: turns of a session that are known; the oldest are dropped
LENGTH = 16  #: characters of a digest that are kept: 64 bits, for some thousand turns


class Said(Protocol):
    """What is looked at of a turn."""

    @property
    def role(self) -> str: ...
    @property
    def text(self) -> str: ...


S = TypeVar("S", bound=Said)
Digest = Callable[[str], str]


class Heard:
    """The turns of one session that were heard."""

    def __init__(self, known: Sequence[str], digest: Digest) -> None:
        self._known = list(known)
        self._digest = digest
        self.changed = False

    def new(self, turns: Sequence[S], also: Sequence[Said] = ()) -> list[S]:
        """The turns that were not heard yet; ``also``: others that count as heard.

        What is said a second time in a conversation is new when the conversation holds it twice.
        """
        left = Counter([*self._known, *map(self._of, also)])
        found = []
        for turn in turns:
            key = self._of(turn)
            if left[key]:
                left[key] -= 1
            else:
                found.append(turn)
        return found

    def add(self, turns: Sequence[Said]) -> None:
        """Say that these were heard."""
        self.changed = self.changed or bool(turns)
        self._known += map(self._of, turns)

    def kept(self) -> list[str]:
        """What is written down of it."""
        return self._known[-MOST:]

    def _of(self, turn: Said) -> str:
        return self._digest(f"{turn.role} {turn.text}")[:LENGTH]


class Hearing:
    """What was heard of every session of one agent."""

    def __init__(self, state: Path, digest: Digest) -> None:
        self._folder = state / "heard"
        self._digest = digest

    @contextlib.contextmanager
    def of(self, session: str) -> Iterator[Heard]:
        """What was heard of a session; what is added is on the disk afterwards, and nobody else listens meanwhile."""
        file = (
            self._folder / f"{hashlib.sha256(session.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}.json"
        )
        with locked(file.with_suffix(".lock")):
            heard = Heard(_load(file), self._digest)
            yield heard
            if heard.changed:
                text = json.dumps(heard.kept()) + "\n"
                files.update(file, lambda _: text)


def _load(file: Path) -> list[str]:
    try:
        known = json.loads(files.read(file) or "")
    except ValueError:
        return []  # nothing yet, or not ours: what is heard twice is counted twice, and nothing is lost
    return [str(one) for one in known] if isinstance(known, list) else []
