"""Write the summary of a finished session to `memory/YYYY-MM-DD-subject.md`, with the date of the session.

A session has one note. If it is summarised again, only what was said since then is added. Untrusted text is left out,
because a note would give it more trust. `flush` writes what a session said before its host compacts it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from memoriter.errors import EditConflict, WriteError
from memoriter.files import edits
from memoriter.files.locks import state_lock
from memoriter.files.state import SessionStates, as_record
from memoriter.llm import Chat
from memoriter.notes.extractive import is_chinese, make_points, render
from memoriter.notes.notebook import LOCK_WAIT_S, Notebook, block, front_matter
from memoriter.records import Saved, Turn
from memoriter.text.encoding import encodable, slug
from memoriter.text.redaction import clean_name, stored_names
from memoriter.text.tokens import estimate_tokens

_FIELD = re.compile(r"^(\w+): (.*)$", re.MULTILINE)
_FRONT = re.compile(r"\A---\r?\n(.*?)\r?\n---\r?\n", re.DOTALL)


class Summaries:
    """Writes summaries of sessions into one notebook."""

    def __init__(self, notebook: Notebook, chat: Chat, state: Path) -> None:
        self.notebook = notebook
        self.chat = chat
        self._lock = state / "summaries.lock"

    def write(self, turns: Sequence[Turn], session: str) -> Saved | None:
        """Summarise a session. Return None if no person spoke."""
        turns = [turn for turn in turns if turn.trust != "untrusted"]
        if not any(turn.role == "user" for turn in turns):
            return None
        self.notebook.check_writable()
        session = encodable(session)  # it may come from a file name with arbitrary bytes
        with state_lock(self._lock, LOCK_WAIT_S):  # two callers must not write two notes
            day = f"{self._start(turns):%Y-%m-%d}"
            known = self._find(session, day)
            return self._continue(known, turns) if known else self._begin(turns, session, day)

    def _start(self, turns: Sequence[Turn]) -> datetime:
        return next((self._moment(turn.time) for turn in turns if turn.time), None) or self.notebook.now()

    def _end(self, turns: Sequence[Turn]) -> datetime:
        return self._start(turns[::-1])

    def _moment(self, seconds: float) -> datetime:
        return datetime.fromtimestamp(seconds, self.notebook.now().tzinfo)

    def _find(self, session: str, day: str) -> str | None:
        """Find the note of a session by its front matter. People may have renamed the file."""
        for file in sorted(self.notebook.folder.glob(f"{day}*.md")):
            path = self.notebook.path_of(file.name)
            try:
                if _fields(edits.read(self.notebook.inside(path)) or "").get("session") in stored_names(
                    session
                ):
                    return path
            except WriteError:
                continue
        return None

    # ---- first summary -----------------------------------------------------------------------------------------

    def _begin(self, turns: Sequence[Turn], session: str, day: str) -> Saved:
        made = make_points(turns, self.chat, task="session_summary", date=day)
        text = front_matter(
            title=made.points.title,
            date=day,
            session=clean_name(session),
            started=self._start(turns).isoformat(timespec="seconds"),
            ended=self._end(turns).isoformat(timespec="seconds"),
            messages=len(turns),
            made_by=made.by,
            trust="agent",
            approval=self.notebook.approval_of("agent"),
        ) + block(f"\n# {made.points.title}", render(made.points))
        name = f"{day}-{slug(made.points.title)}"
        for number in range(1, 100):
            path = self.notebook.path_of(f"{name}{f'-{number}' if number > 1 else ''}.md")
            try:
                edits.write(self.notebook.inside(path), text, expected=None)
            except EditConflict:
                continue  # another session of the day has the same subject
            self.notebook.changed()
            return Saved(path, 1, text.count("\n"), note=made.note)
        raise WriteError(f"There are too many notes named {self.notebook.path_of(name)}-….md.")

    # ---- later summaries --------------------------------------------------------------------------------------

    def _continue(self, path: str, turns: Sequence[Turn]) -> Saved:
        text = edits.read(self.notebook.inside(path)) or ""
        since = int(_fields(text).get("messages") or 0)
        new = turns[since:]
        if not any(turn.role == "user" for turn in new):
            return Saved(path, 1, text.count("\n"), already=True)
        ended = self._end(turns)
        made = make_points(new, self.chat, task="session_summary", date=f"{ended:%Y-%m-%d}")
        heading = "后续" if is_chinese(made.points.title) else "Later"
        section = block(f"## {heading} ({ended:%H:%M}): {made.points.title}", render(made.points, level=3))
        fields = {"ended": ended.isoformat(timespec="seconds"), "messages": len(turns)}
        written = ""

        def change(old: str | None) -> str:
            nonlocal written
            written = _with_fields(old or "", fields).rstrip("\n") + f"\n\n{section}"
            return written

        edits.update(self.notebook.inside(path), change)
        self.notebook.changed()
        end = written.count("\n")
        return Saved(path, end - section.count("\n") + 1, end, note=made.note)


def _fields(text: str) -> dict[str, str]:
    """Return the fields of the front matter as text."""
    front = _FRONT.match(text)
    if not front:
        return {}
    return {name: _value(value) for name, value in _FIELD.findall(front[1].replace("\r\n", "\n"))}


def _value(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return text.strip()


def _with_fields(text: str, fields: dict[str, object]) -> str:
    """Replace values in the front matter. Fields that a person removed are not added again."""
    front = _FRONT.match(text)
    if not front:
        return text
    head = front[0]
    for name, value in fields.items():
        head = re.sub(rf"(?m)^{name}: .*$", f"{name}: {json.dumps(value)}", head)
    return head + text[front.end() :]


#: Sessions whose state is kept.
MAX_SESSIONS = 500


#: Distance to the end of the context window: a host's usual reserve for its answer (20,000) plus 4,000.
MARGIN_TOKENS = 24_000


def threshold(window: int, margin: int = MARGIN_TOKENS) -> int:
    """Return the length in tokens at which a host with this context window will soon shorten a conversation."""
    # A small window has no room for this distance. Half of the window is early enough.
    return max(window - margin, window // 2)


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

    def __init__(
        self, notebook: Notebook, chat: Chat, folder: Path, margin_tokens: int = MARGIN_TOKENS
    ) -> None:
        self.notebook = notebook
        self.chat = chat
        self._margin_tokens = margin_tokens
        self._states = SessionStates(folder / "flushes", MAX_SESSIONS)

    def write_if_due(
        self, turns: Sequence[Turn], session: str, *, window: int | None, tokens: int | None = None
    ) -> Saved | None:
        """Write the new turns if the conversation exceeds the threshold and they have not been written yet.

        ``tokens`` is the count of the host. Without it, the length is estimated. Without a ``window``, the host is
        about to shorten the conversation. Each such call is a new overflow, and only new turns are written.
        """
        with self._states.locked(session, LOCK_WAIT_S):
            state = as_record(FlushState, self._states.get(session)) or FlushState()
            if window is None:
                state = replace(state, phase="ready") if state.phase == "written" else state
                return self._write(turns, session, state)
            length = count_tokens(turns) if tokens is None else tokens
            if length < threshold(window, self._margin_tokens):
                if state.phase != "ready":
                    self._states.put(session, asdict(replace(state, phase="ready")))
                return None
            return None if state.phase == "written" else self._write(turns, session, state)

    def prune(self, older_than: float) -> None:
        """Remove the states of sessions older than this time, and all but the newest `MAX_SESSIONS`.

        The notes stay. If such a session continues, it is written from its beginning.
        """
        self._states.prune(older_than)

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
