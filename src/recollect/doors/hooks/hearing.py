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

from recollect import logs
from recollect.errors import SourceError
from recollect.listening import Mark, Marks, Request, Session, Spool, listen
from recollect.plugins import Event, Host, Moment

if TYPE_CHECKING:
    from recollect.config import Settings
    from recollect.service import MemoryService

log = logs.get("hooks")

Records = tuple[Mapping[str, object], ...]

WAIT_S = 30.0  #: for another process that listens to the same agent's sessions


def spool_of(settings: Settings) -> Spool:
    """Where the agent's sessions wait to be heard."""
    return Spool(settings.agent_folder / "spool")


def marks_of(settings: Settings) -> Marks:
    """How far the agent's sessions were heard."""
    return Marks(settings.agent_folder / "hooks")


def drain(host: Host, *, wait_s: float = WAIT_S, until: float | None = None) -> int:
    """Hear every session that waits; how many requests were done. A host without memory hears nothing."""
    if host.error:
        return 0
    settings = host.memory.settings
    spool, marks = spool_of(settings), marks_of(settings)
    done = spool.drain(lambda request: _hear(host, marks, request), wait_s=wait_s, until=until)
    if done:
        marks.prune()
    return done


def hear_waiting(service: MemoryService) -> int:
    """The same over a memory that is open already; it stays its owner's."""
    host = Host.open(service.memory.settings, service=service, slot="memory-full")
    try:
        return drain(host)
    finally:
        host.close()


def _hear(host: Host, marks: Marks, request: Request) -> bool:
    """Hear one session up to where it was, a bounded piece at a time; False when it has to be done again."""
    path = Path(request.transcript)
    try:
        while True:
            known = marks.get(request.session)
            new = listen(path, known.mark, request.size)
            if not new.more:
                break
            if not _kept(host, _moment("agent_end", request, known, new.records)):
                return False
            marks.put(_heard(request, known, new.mark))
        whole = () if request.event == "Stop" else listen(path, None, request.size).records
    except SourceError as error:
        log.warning("a session cannot be heard any more: %s", error)
        return True
    if not _kept(host, *_moments(request, known, new.records, whole)):
        return False
    marks.put(_heard(request, known, known.mark if _model_waits(host, request.session) else new.mark))
    return True


def _moments(request: Request, known: Session, new: Records, whole: Records) -> list[Moment]:
    """What happens in the session, in the words of plugins."""
    if request.event == "SessionEnd":
        return [_moment("session_end", request, known, whole)]
    said = _moment("agent_end", request, known, new)
    if request.event == "PreCompact":
        return [said, _moment("before_compaction", request, known, whole)]
    return [said]


def _moment(event: Event, request: Request, known: Session, records: Records) -> Moment:
    said = known.own(records)
    # Where there are no messages a plugin reads the transcript: that of a fork begins with another session's words.
    transcript = Path(request.transcript) if said or not known.forked_at else None
    return Moment(event, request.session, messages=said, transcript=transcript)


def _kept(host: Host, *moments: Moment) -> bool:
    """Whether everything was kept; what was not is told by the plugin's bus."""
    return not any(host.emit(moment).warnings for moment in moments)


def _heard(request: Request, known: Session, mark: Mark) -> Session:
    project = request.project or known.project
    return replace(known, project=project, transcript=request.transcript, at=time.time(), mark=mark)


def _model_waits(host: Host, session: str) -> bool:
    """Whether a language model is to be asked once there is more: the next hook must find these turns again."""
    memory = host.memory
    return memory.settings.extraction.auto_extract and bool(memory.extractor.waiting(session))
