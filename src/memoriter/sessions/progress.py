"""How far each session was heard, and in which project it was: one small file a session, without a word of it."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from memoriter.files import durable
from memoriter.sessions.messages import read_record
from memoriter.sessions.tail import Record, RecordFilter, TailPosition
from memoriter.sessions.untrusted_tools import OutsideText

MAX_SESSIONS = 2_000  #: sessions that are remembered; the oldest go first
MAX_LOOKUPS = 200  #: newest sessions that are asked for their project


@dataclass(frozen=True, slots=True)
class SessionState:
    """What is known of one session."""

    id: str
    project: str = ""  #: the folder that the agent worked in
    transcript: str = ""
    at: float = 0.0
    mark: TailPosition = field(default_factory=TailPosition)
    forked_at: float = 0.0  #: when it parted from another session, with a copy of what was said there

    def own(self, records: Iterable[Record]) -> tuple[Record, ...]:
        """The records without those that it brought along: they are heard in the session that they come from."""
        if not self.forked_at:
            return tuple(records)
        telling = RecordFilter(OutsideText())
        return tuple(
            one
            for one, said in ((one, read_record(one)) for one in records)
            if telling.takes_up(said, others=(said.time or self.forked_at) < self.forked_at)
        )


class SessionProgress:
    """The marks of one agent's sessions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._reached: dict[str, SessionState] = {}

    def get(self, session: str) -> SessionState:
        """What is known of a session; nothing when it was never heard, or its mark cannot be read."""
        return self._reached.get(session) or _read(self._path(session)) or SessionState(session)

    def reach(self, session: SessionState) -> None:
        """Go on from here while this process lives; the next one begins where the last `put` was."""
        stored = _read(self._path(session.id)) or SessionState(session.id)
        self.put(replace(session, mark=stored.mark))
        self._reached[session.id] = session

    def put(self, session: SessionState) -> None:
        """Note how far a session was heard."""
        self._reached.pop(session.id, None)
        durable.write(self._path(session.id), json.dumps(asdict(session)).encode())

    def sessions_of(self, project: str) -> list[str]:
        """The newest sessions of a project, newest first."""
        known = map(_read, durable.newest_state_files(self.folder)[:MAX_LOOKUPS])
        return [session.id for session in known if session and session.project == project]

    def prune(self) -> None:
        """Drop the oldest where there are too many; what was learned there is not touched."""
        for path in durable.newest_state_files(self.folder)[MAX_SESSIONS:]:
            with contextlib.suppress(OSError):
                path.unlink()

    def _path(self, session: str) -> Path:
        name = hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:24]
        return self.folder / f"{name}.json"


def _read(path: Path) -> SessionState | None:
    try:
        values = json.loads(path.read_bytes())
        mark = TailPosition(**{**values["mark"], "calls": tuple(values["mark"].get("calls", ()))})
        session = SessionState(**{**values, "mark": mark})
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return session if _is_usable(session) else None


def _is_usable(session: SessionState) -> bool:
    """Whether everything is of its kind: a file may hold anything, however it came to that."""
    mark = session.mark
    texts = (session.id, session.project, session.transcript, mark.head, *mark.calls)
    places = (mark.inode, mark.offset)
    return (
        all(isinstance(text, str) for text in texts)
        and all(type(place) is int and place >= 0 for place in places)
        and all(isinstance(moment, int | float) for moment in (session.at, session.forked_at))
        and isinstance(mark.tainted, bool)
    )
