"""The processed turns of each session, for hosts that send the whole conversation each time.

For each turn a keyed digest is stored, with its time if the host sends one, but no text. A host may shorten a
conversation, so positions as in ``progress`` would not work. A host may also use the same name for every conversation.
If a conversation starts differently after the last one ended, or after a long silence, it is a new one, and all of its
turns are new.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from memoriter.files.state import SessionStates

#: Sessions whose turns are stored. The oldest are removed first.
MAX_SESSIONS = 2_000
#: How long to wait for another process that handles the same session.
LOCK_WAIT_S = 300.0
#: Turns of a session that are stored beyond those of the current conversation.
MAX_OLD_TURNS = 4_000
#: Characters of a digest that are stored: 64 bits, for a few thousand turns.
DIGEST_CHARS = 16
#: Silence after which a different start means a new conversation.
SILENCE_S = 6 * 3600.0


class ComparableTurn(Protocol):
    """A turn with a role and a text, and optionally a ``time``."""

    @property
    def role(self) -> str: ...
    @property
    def text(self) -> str: ...


T = TypeVar("T", bound=ComparableTurn)
Digest = Callable[[str], str]


class SeenSession:
    """The processed turns of one session."""

    def __init__(self, state: dict[str, object], digest: Digest, now: float) -> None:
        known = state.get("known")
        self._known = [str(key) for key in known] if isinstance(known, list) else []
        self._first = str(state.get("first") or "")
        last = state.get("at")
        self._ended = state.get("over") is True or not isinstance(last, float) or now - last > SILENCE_S
        self._now = now
        self._digest = digest
        self._present = set[str]()
        self.changed = False

    def new(self, turns: Sequence[T], also: Sequence[ComparableTurn] = ()) -> list[T]:
        """Return the turns that have not been processed. ``also``: turns that count as processed.

        A repeated text is new if the conversation contains it more often than before.
        """
        keys = [self._key(turn) for turn in turns]
        if keys and self._ended and keys[0] != self._first and not _Remaining(self._known).take(keys[0]):
            # Turns with a time cannot belong to the new conversation, so they stay known.
            self._known = [key for key in self._known if "@" in key]
        remaining = _Remaining([*self._known, *map(self._key, also)])
        self._first = keys[0] if keys else self._first
        self._present.update(keys)
        return [turn for turn, key in zip(turns, keys, strict=True) if not remaining.take(key)]

    def add(self, turns: Sequence[ComparableTurn]) -> None:
        """Record turns as processed."""
        self.changed = self.changed or bool(turns)
        self._known += map(self._key, turns)
        self._ended = False

    def mark_ended(self) -> None:
        """Record that the conversation ended. The next one under this name may be a new one."""
        self.changed = self.changed or bool(self._known)
        self._ended = True

    def state(self) -> dict[str, object]:
        """Return the state to store."""
        others = [key for key in self._known if key not in self._present]
        present = [key for key in self._known if key in self._present]
        return {
            "known": [*others[-MAX_OLD_TURNS:], *present],
            "first": self._first,
            "over": self._ended,
            "at": self._now,
        }

    def _key(self, turn: ComparableTurn) -> str:
        digest = self._digest(f"{turn.role} {turn.text}")[:DIGEST_CHARS]
        time_key = getattr(turn, "time", None)
        return digest if time_key is None else f"{digest}@{time_key:.3f}"


class _Remaining:
    """Known turns that are matched one by one, by text and time."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._times: dict[str, Counter[str]] = {}
        for key in keys:
            digest, _, time_key = key.partition("@")
            self._times.setdefault(digest, Counter())[time_key] += 1

    def take(self, key: str) -> bool:
        """Match and remove one turn. If one of the two has no time, the text is enough."""
        digest, _, time_key = key.partition("@")
        times = self._times.get(digest, Counter[str]())
        for known in (time_key, "") if time_key else ("", *times):
            if times[known] > 0:
                times[known] -= 1
                return True
        return False


class SeenTurns:
    """The processed turns of all sessions of one agent."""

    def __init__(self, state: Path, digest: Digest, *, clock: Callable[[], float] = time.time) -> None:
        self._states = SessionStates(state / "seen_turns", MAX_SESSIONS)
        self._digest = digest
        self._clock = clock

    @contextlib.contextmanager
    def of(self, session: str) -> Iterator[SeenSession]:
        """Yield the processed turns of a session under a lock. Additions are written to disk at the end."""
        with self._states.locked(session, LOCK_WAIT_S):
            # Without a state the turns are processed again, and nothing is lost.
            seen = SeenSession(self._states.get(session), self._digest, self._clock())
            yield seen
            if seen.changed:
                is_new = not self._states.has(session)
                self._states.put(session, seen.state())
                if is_new:
                    self._states.prune()
