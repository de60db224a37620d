"""Sessions that ask to be heard: noted in the spool at once, heard when the store has time for it.

Every request goes through the spool, so a hook that is killed, or comes while the store is busy, loses nothing: the
next one does what it left. Heard is what is new in the transcript; what is learned from it is the plugin's duty.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.agent import Agent, Event, Moment
from memoriter.errors import SourceError
from memoriter.sessions.progress import SessionProgress, SessionState
from memoriter.sessions.queue import SessionQueue, SessionRequest
from memoriter.sessions.tail import TailPosition, read_new_turns

if TYPE_CHECKING:
    from memoriter.agent.service import MemoryService
    from memoriter.config import Settings

log = logs.get("hooks")

Records = tuple[Mapping[str, object], ...]

WAIT_S = 30.0  #: for another process that listens to the same agent's sessions
PATIENCE_S = (
    3600.0  #: for a piece of a session: nobody waits for it, and on a slow machine it is kept all the same
)


def spool_of(settings: Settings) -> SessionQueue:
    """Where the agent's sessions wait to be heard."""
    return SessionQueue(settings.agent_folder / "spool")


def marks_of(settings: Settings) -> SessionProgress:
    """How far the agent's sessions were heard."""
    return SessionProgress(settings.agent_folder / "hooks")


def drain(host: Agent, *, wait_s: float = WAIT_S, until: float | None = None, own: Path | None = None) -> int:
    """Hear every session that waits; how many requests were done. A host without memory hears nothing.

    ``until``: somebody waits for us, so long; then only what was said is heard, and summaries are left for later.
    ``own``: the request of whoever calls, as `SessionQueue.drain` takes it.
    """
    if host.error:
        return 0
    settings = host.memory.settings
    spool, marks = spool_of(settings), marks_of(settings)
    done = spool.drain(
        lambda request: _hear(host, marks, request, until), wait_s=wait_s, until=until, own=own
    )
    if done:
        marks.prune()
    return done


def hear_waiting(service: MemoryService) -> int:
    """The same over a memory that is open already; it stays its owner's."""
    host = Agent.open(service.memory.settings, service=service, slot="memory-full")
    try:
        return drain(host)
    finally:
        host.close()


def _hear(
    host: Agent, marks: SessionProgress, request: SessionRequest, until: float | None = None
) -> bool | None:
    """Hear the next piece of a session, up to where it was; as `Handle` says what came of it."""
    path = Path(request.transcript)
    known = marks.get(request.session)
    try:
        new = read_new_turns(path, known.mark, request.size)
        if not _kept(host, _said(request, known, new.records), until):
            return False
        heard = _heard(request, known, new.mark)
        waits = _model_waits(host, request.session)
        # Turns that the model has not seen are in this process alone: the next one must find them again.
        (marks.reach if waits else marks.put)(heard)
        if new.more:
            return None
        if request.event != "Stop":
            if until is not None:
                return False
            if not _kept(host, _over(request, known, read_new_turns(path, None, request.size).records)):
                return False
            if waits and not _model_waits(host, request.session):
                marks.put(heard)
    except SourceError as error:
        log.warning("a session cannot be heard any more: %s", error)
    return True


def _said(request: SessionRequest, known: SessionState, new: Records) -> Moment | None:
    """What is new in the session, in the words of plugins; None when nobody said anything."""
    said = known.own(new)
    path = Path(request.transcript)
    return Moment("agent_end", request.session, messages=said, transcript=path) if said else None


def _over(request: SessionRequest, known: SessionState, whole: Records) -> Moment:
    """What happens to the session, all of which was heard."""
    event: Event = "session_end" if request.event == "SessionEnd" else "before_compaction"
    said = known.own(whole)
    # Where there are no messages a plugin reads the transcript: that of a fork begins with another session's words.
    transcript = Path(request.transcript) if said or not known.forked_at else None
    return Moment(event, request.session, messages=said, transcript=transcript, heard=True)


def _kept(host: Agent, moment: Moment | None, until: float | None = None) -> bool:
    """Whether everything was kept; what was not is told by the plugin's bus."""
    if moment is None:
        return True
    wait_s = PATIENCE_S if until is None else max(0.0, until - time.monotonic())
    return not host.emit(moment, wait_s=wait_s).warnings


def _heard(request: SessionRequest, known: SessionState, mark: TailPosition) -> SessionState:
    project = request.project or known.project
    return replace(known, project=project, transcript=request.transcript, at=time.time(), mark=mark)


def _model_waits(host: Agent, session: str) -> bool:
    """Whether a language model is to be asked once there is more: the next hook must find these turns again."""
    return host.memory.count_waiting_turns(session) > 0
