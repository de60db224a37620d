"""What of a session was heard already: hosts hand over the whole conversation each time, and what was said once must
not count again.

Of each turn a keyed digest is kept, with its time where the host gives one, never a word of it. A conversation that its
host has shortened is known by what is left of it, so no place in a transcript, as `marks` has it, would do. Hosts that
call every conversation by the same name are noticed: one that begins otherwise, after the last was over or long silent,
is a new one, and all of it is news. What is learned from a turn is not decided here.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from memoriter.errors import LockTimeout
from memoriter.files import durable
from memoriter.files.locks import file_lock

MAX_SESSIONS = 2_000  #: sessions of which it is known what was heard; the oldest go first
LOCK_WAIT_S = 300.0  #: for another process that listens to the same session
MAX_OLD_TURNS = 4_000  #: turns that are known of a session beside those of the conversation as it is now
DIGEST_CHARS = 16  #: characters of a digest that are kept: 64 bits, for some thousand turns
SILENCE_S = 6 * 3600.0  #: after which what begins otherwise is another conversation


class TurnLike(Protocol):
    """What is looked at of a turn; its ``time`` too, where it has one."""

    @property
    def role(self) -> str: ...
    @property
    def text(self) -> str: ...


S = TypeVar("S", bound=TurnLike)
Digest = Callable[[str], str]


class SeenSession:
    """The turns of one session that were heard."""

    def __init__(self, state: dict[str, object], digest: Digest, now: float) -> None:
        known = state.get("known")
        self._known = [str(one) for one in known] if isinstance(known, list) else []
        self._first = str(state.get("first") or "")
        last = state.get("at")
        self._over = state.get("over") is True or not isinstance(last, float) or now - last > SILENCE_S
        self._now = now
        self._digest = digest
        self._present = set[str]()
        self.changed = False

    def new(self, turns: Sequence[S], also: Sequence[TurnLike] = ()) -> list[S]:
        """The turns that were not heard yet; ``also``: others that count as heard.

        What is said a second time in a conversation is new when the conversation holds it twice.
        """
        keys = [self._key(turn) for turn in turns]
        if keys and self._over and keys[0] != self._first and not _Left(self._known).take(keys[0]):
            self._known = [key for key in self._known if "@" in key]  # a time is never another's
        left = _Left([*self._known, *map(self._key, also)])
        self._first = keys[0] if keys else self._first
        self._present.update(keys)
        return [turn for turn, key in zip(turns, keys, strict=True) if not left.take(key)]

    def add(self, turns: Sequence[TurnLike]) -> None:
        """Say that these were heard."""
        self.changed = self.changed or bool(turns)
        self._known += map(self._key, turns)
        self._over = False

    def over(self) -> None:
        """Say that the conversation is over, or that another may begin under its name."""
        self.changed = self.changed or bool(self._known)
        self._over = True

    def state(self) -> dict[str, object]:
        """What is written down of it."""
        others = [key for key in self._known if key not in self._present]
        present = [key for key in self._known if key in self._present]
        return {
            "known": [*others[-MAX_OLD_TURNS:], *present],
            "first": self._first,
            "over": self._over,
            "at": self._now,
        }

    def _key(self, turn: TurnLike) -> str:
        digest = self._digest(f"{turn.role} {turn.text}")[:DIGEST_CHARS]
        said_at = getattr(turn, "time", None)
        return digest if said_at is None else f"{digest}@{said_at:.3f}"


class _Left:
    """Turns that are taken away one by one, by their words and their time."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._times: dict[str, Counter[str]] = {}
        for key in keys:
            digest, _, said_at = key.partition("@")
            self._times.setdefault(digest, Counter())[said_at] += 1

    def take(self, key: str) -> bool:
        """Whether it is among them. Where one of the two has no time, their words are enough."""
        digest, _, said_at = key.partition("@")
        times = self._times.get(digest, Counter[str]())
        for known in (said_at, "") if said_at else ("", *times):
            if times[known] > 0:
                times[known] -= 1
                return True
        return False


class SeenTurns:
    """What was heard of every session of one agent."""

    def __init__(self, state: Path, digest: Digest, *, clock: Callable[[], float] = time.time) -> None:
        self._folder = state / "heard"
        self._digest = digest
        self._clock = clock

    @contextlib.contextmanager
    def of(self, session: str) -> Iterator[SeenSession]:
        """What was heard of a session; what is added is on the disk afterwards, and nobody else listens meanwhile."""
        name = hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:24]
        file = self._folder / f"{name}.json"
        with file_lock(file.with_suffix(".lock"), LOCK_WAIT_S):
            heard = SeenSession(_load(file), self._digest, self._clock())
            yield heard
            if heard.changed:
                is_new = not file.exists()
                durable.write(file, json.dumps(heard.state()).encode())
                if is_new:
                    self._prune()

    def _prune(self) -> None:
        """Drop the oldest where there are too many; what was learned there is not touched."""
        for file in durable.newest_state_files(self._folder)[MAX_SESSIONS:]:
            lock = file.with_suffix(".lock")
            with contextlib.suppress(OSError, LockTimeout), file_lock(lock, 0.0):
                file.unlink()
                lock.unlink(missing_ok=True)


def _load(file: Path) -> dict[str, object]:
    try:
        state = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}  # nothing yet, or not ours: what is heard twice is counted twice, and nothing is lost
    return state if isinstance(state, dict) else {}
