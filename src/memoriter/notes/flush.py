"""Write what a host is about to drop from a conversation to the agents' log of the day, once for each overflow.

A state file for each session records whether the current overflow has been written. It is updated before the log is
written and contains the day, and the section in the log contains the number of the overflow. So neither a second call
nor a crash writes it twice. When the conversation is short again, the state is reset for the next overflow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from memoriter.files.state import SessionStates
from memoriter.llm import Chat
from memoriter.notes.extractive import make_points, render
from memoriter.notes.notebook import LOCK_WAIT_S, Notebook, block
from memoriter.records import Saved, Turn
from memoriter.text.measure import estimate_tokens

#: Sessions whose state is kept.
MAX_SESSIONS = 500


@dataclass(frozen=True, slots=True)
class Threshold:
    """The length at which a host will soon shorten a conversation."""

    #: Distance to the end of the context window: a host's usual reserve for its answer (20,000) plus 4,000.
    margin_tokens: int = 24_000

    def tokens(self, window: int) -> int:
        """Return the threshold in tokens for a model with this context window."""
        # A small window has no room for this distance. Half of the window is early enough.
        return max(window - self.margin_tokens, window // 2)


@dataclass(frozen=True, slots=True)
class FlushState:
    """The overflows of one session."""

    #: Number of overflows so far.
    overflow: int = 0
    phase: Literal["ready", "writing", "written"] = "ready"
    #: The day of the log for this overflow.
    day: str = ""
    #: Digest of the last turn that was written.
    last: str = ""


class Flush:
    """Writes what a compaction would drop."""

    def __init__(self, notebook: Notebook, chat: Chat, folder: Path, threshold: Threshold) -> None:
        self.notebook = notebook
        self.chat = chat
        self.threshold = threshold
        self._states = SessionStates(folder / "flushes", MAX_SESSIONS)

    def write_if_due(
        self, turns: Sequence[Turn], session: str, *, window: int | None, tokens: int | None = None
    ) -> Saved | None:
        """Write the new turns if the conversation exceeds the threshold and they have not been written yet.

        ``tokens`` is the count of the host. Without it, the length is estimated. Without a ``window``, the host is
        about to shorten the conversation. Each such call is a new overflow, and only new turns are written.
        """
        with self._states.locked(session, LOCK_WAIT_S):
            state = self._state(session)
            if window is None:
                state = replace(state, phase="ready") if state.phase == "written" else state
                return self._write(turns, session, state)
            length = count_tokens(turns) if tokens is None else tokens
            if length < self.threshold.tokens(window):
                if state.phase != "ready":
                    self._states.put(session, asdict(replace(state, phase="ready")))
                return None
            return None if state.phase == "written" else self._write(turns, session, state)

    def prune(self, older_than: float) -> None:
        """Remove the states of sessions older than this time, and all but the newest `MAX_SESSIONS`.

        The notes stay. If such a session continues, it is written from its beginning.
        """
        self._states.prune(older_than)

    def _state(self, session: str) -> FlushState:
        try:
            return FlushState(**self._states.get(session))
        except TypeError:
            return FlushState()

    def _write(self, turns: Sequence[Turn], session: str, state: FlushState) -> Saved | None:
        new = [turn for turn in _since(turns, state.last) if turn.trust != "untrusted"]
        if not new:
            return None
        self.notebook.check_writable()
        now = self.notebook.now()
        if state.phase == "ready":
            state = replace(state, overflow=state.overflow + 1, phase="writing", day=f"{now:%Y-%m-%d}")
            self._states.put(session, asdict(state))
        needle = f"<!-- memoriter: flush {state.overflow} of {_digest(session)} -->"
        result = make_points(new, self.chat, task="flush", date=f"{now:%Y-%m-%d}")
        section = block(f"## {now:%H:%M} {result.points.title}", render(result.points, level=3), needle)
        # A summary has the trust of an agent, although it contains words of the owner.
        saved = self.notebook.add_to_log(state.day, section, needle=needle, trust="agent")
        written = replace(state, phase="written", last=_turn_digest(turns[-1]))
        self._states.put(session, asdict(written))
        return replace(saved, note=result.note)


def count_tokens(turns: Sequence[Turn]) -> int:
    """Estimate the tokens of a conversation in the context window of a model, in any language."""
    return sum(estimate_tokens(turn.text) + 4 for turn in turns)


def _since(turns: Sequence[Turn], last: str) -> Sequence[Turn]:
    """Return the turns after the last written one, or all of them if the host has dropped that one."""
    for place in range(len(turns) - 1, -1, -1):
        if last and _turn_digest(turns[place]) == last:
            return turns[place + 1 :]
    return turns


def _turn_digest(turn: Turn) -> str:
    """Return a digest of a turn with its time, because agents repeat phrases such as "Done."."""
    return _digest(f"{turn.role} {turn.time or ''} {turn.text}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
