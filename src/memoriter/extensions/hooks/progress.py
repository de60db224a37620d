"""Progress and project of each session, in one small file for each session, without its text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from memoriter.extensions.projects.repository import locate
from memoriter.files.state import SessionStates, as_record
from memoriter.sessions.messages import read_record
from memoriter.sessions.outside_text import OutsideText, TrustRules
from memoriter.sessions.tail import Record, RecordFilter, TailPosition
from memoriter.text.redaction import clean_name

#: Sessions whose progress is stored. The oldest are removed first.
MAX_SESSIONS = 2_000
#: Newest sessions that `SessionProgress.sessions_of` looks at.
MAX_LOOKUPS = 200


@dataclass(frozen=True, slots=True)
class SessionState:
    """The stored state of one session."""

    id: str
    #: The repository, or the folder, in which the agent worked.
    project: str = ""
    transcript: str = ""
    at: float = 0.0
    position: TailPosition = field(default_factory=TailPosition)
    #: When the session was forked from another one, with a copy of its conversation.
    forked_at: float = 0.0

    def own_records(self, records: Iterable[Record], rules: TrustRules | None = None) -> tuple[Record, ...]:
        """Return the records without those copied from the session that this one was forked from."""
        if not self.forked_at:
            return tuple(records)
        records_filter = RecordFilter(OutsideText(rules=rules or TrustRules()))
        return tuple(
            record
            for record, message in ((record, read_record(record)) for record in records)
            if records_filter.accepts(message, copied=(message.time or self.forked_at) < self.forked_at)
        )


class SessionProgress:
    """The progress of one agent's sessions."""

    def __init__(self, folder: Path) -> None:
        self._states = SessionStates(folder, MAX_SESSIONS)
        self._in_memory: dict[str, SessionState] = {}

    def get(self, session: str) -> SessionState:
        """Return what is known about a session. A new or unreadable session has an empty state."""
        session = clean_name(session)
        return self._in_memory.get(session) or self._stored(session)

    def _stored(self, session: str) -> SessionState:
        return as_record(SessionState, self._states.get(session)) or SessionState(session)

    def put_in_memory(self, session: SessionState) -> None:
        """Continue from this position in this process only. The next process starts at the last `put`."""
        session = replace(session, id=clean_name(session.id))
        self.put(replace(session, position=self._stored(session.id).position))
        self._in_memory[session.id] = session

    def put(self, session: SessionState) -> None:
        """Store how far a session has been processed."""
        session = replace(session, id=clean_name(session.id))
        self._in_memory.pop(session.id, None)
        self._states.put(session.id, asdict(session))

    def sessions_of(self, project: str) -> list[str]:
        """Return the latest sessions of a project, newest first."""
        states = (as_record(SessionState, values) for values in self._states.newest(MAX_LOOKUPS))
        known = [found for found in states if found]
        # States of earlier versions name the working tree.
        names = {name: locate(name).project for name in {session.project for session in known}}
        return [session.id for session in known if project in (session.project, names[session.project])]

    def prune(self) -> None:
        """Remove the oldest states beyond `MAX_SESSIONS`. What was learned from those sessions stays."""
        self._states.prune()
