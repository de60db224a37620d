"""Before a host shortens a conversation: what it would lose is written into agents' log of the day, once an overflow.

A mark per session, kept on disk, says whether the overflow that is on now has been written. It is set before the log is
touched and names the day, and the entry in the log carries its number, so neither a second call nor a crash in
between writes it twice. When the conversation is short again, the mark is ready for the next overflow.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from memoriter.errors import LockTimeout
from memoriter.files import edits
from memoriter.files.locks import file_lock
from memoriter.llm import Chat
from memoriter.notes.extractive import make_points, render
from memoriter.notes.notebook import LOCK_WAIT_S, Notebook, block
from memoriter.records import Saved, Turn
from memoriter.text.measure import estimate_tokens

MAX_SESSIONS = 500  #: sessions of which it is known what was written


@dataclass(frozen=True, slots=True)
class Threshold:
    """When a conversation is so long that its host will soon shorten it."""

    #: Distance to the end of the context window: a host's usual reserve for its answer (20,000) plus 4,000.
    margin_tokens: int = 24_000

    def tokens(self, window: int) -> int:
        """The length at which it is time, for a model with this context window."""
        # A small window would have no room for the distance: half of it is early enough.
        return max(window - self.margin_tokens, window // 2)


@dataclass(frozen=True, slots=True)
class FlushState:
    """What is known of a session's overflows."""

    overflow: int = 0  #: how many there were
    phase: Literal["ready", "writing", "written"] = "ready"
    day: str = ""  #: to whose log this overflow goes
    last: str = ""  #: digest of the last turn that was written


class Flush:
    """Writes what a compaction would lose."""

    def __init__(self, notebook: Notebook, chat: Chat, state: Path, threshold: Threshold) -> None:
        self.notebook = notebook
        self.chat = chat
        self.threshold = threshold
        self._folder = state / "flushes"

    def maybe(
        self, turns: Sequence[Turn], session: str, *, window: int | None, tokens: int | None = None
    ) -> Saved | None:
        """Write the new turns down if the conversation passes the threshold and this was not done yet.

        ``tokens`` is what the host counted; without it the turns are estimated. Without a ``window`` the host says
        that it is about to shorten: each time is an overflow of its own, in which only what is new is written.
        """
        file = self._folder / f"{_digest(session)}.json"
        with file_lock(file.with_suffix(".lock"), LOCK_WAIT_S):
            mark = _load(file)
            if window is None:
                mark = replace(mark, phase="ready") if mark.phase == "written" else mark
                return self._write(turns, session, file, mark)
            length = count_tokens(turns) if tokens is None else tokens
            if length < self.threshold.tokens(window):
                if mark.phase != "ready":
                    _store(file, replace(mark, phase="ready"))
                return None
            return None if mark.phase == "written" else self._write(turns, session, file, mark)

    def _write(self, turns: Sequence[Turn], session: str, file: Path, mark: FlushState) -> Saved | None:
        new = [turn for turn in _since(turns, mark.last) if turn.trust != "untrusted"]
        if not new:
            return None
        self.notebook.ready()
        now = self.notebook.now()
        if mark.phase == "ready":
            mark = replace(mark, overflow=mark.overflow + 1, phase="writing", day=f"{now:%Y-%m-%d}")
            _store(file, mark)
        needle = f"<!-- memoriter: flush {mark.overflow} of {_digest(session)} -->"
        made = make_points(new, self.chat, task="flush", date=f"{now:%Y-%m-%d}")
        entry = block(f"## {now:%H:%M} {made.points.title}", render(made.points, level=3), needle)
        # What a conversation came to is an agent's word, though the owner's are in it.
        saved = self.notebook.add_to_log(mark.day, entry, needle=needle, trust="agent")
        _store(file, replace(mark, phase="written", last=_turn_digest(turns[-1])))
        return replace(saved, note=made.note)


def prune_flush_states(state: Path, older_than: float) -> None:
    """Drop the marks of sessions that were not written before this time, and of all but the newest `MAX_SESSIONS`.

    What was written of them stays. One that goes on after all is written down from its beginning.
    """
    found = list[tuple[float, Path]]()
    for file in (state / "flushes").glob("*.json"):
        with contextlib.suppress(OSError):
            found.append((file.stat().st_mtime, file))
    for number, (written, file) in enumerate(sorted(found, reverse=True)):
        if number < MAX_SESSIONS and written >= older_than:
            continue
        lock = file.with_suffix(".lock")
        with contextlib.suppress(OSError, LockTimeout), file_lock(lock, 0.0):
            file.unlink(missing_ok=True)
            lock.unlink(missing_ok=True)


def count_tokens(turns: Sequence[Turn]) -> int:
    """About how many tokens a conversation takes in a model's window, whatever its language."""
    return sum(estimate_tokens(turn.text) + 4 for turn in turns)


def _since(turns: Sequence[Turn], last: str) -> Sequence[Turn]:
    """The turns after the one that was written last; all of them when the host has dropped that one."""
    for place in range(len(turns) - 1, -1, -1):
        if last and _turn_digest(turns[place]) == last:
            return turns[place + 1 :]
    return turns


def _turn_digest(turn: Turn) -> str:
    """A turn, known by its time too where it has one: agents say "Done." more than once."""
    return _digest(f"{turn.role} {turn.time or ''} {turn.text}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _load(file: Path) -> FlushState:
    try:
        return FlushState(**json.loads(edits.read(file) or ""))
    except (ValueError, TypeError):
        return FlushState()


def _store(file: Path, mark: FlushState) -> None:
    text = json.dumps(asdict(mark), ensure_ascii=False) + "\n"
    edits.update(file, lambda _: text)
