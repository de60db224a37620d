"""Sessions that ask to be heard: noted in the spool at once, heard when the store has time for it.

Every request goes through the spool, so a hook that is killed, or comes while the store is busy, loses nothing: the
next one does what it left. Heard is what is new in the transcript; what is learned from it is the plugin's duty.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from recollect import logs
from recollect.errors import SourceError
from recollect.listening import Marks, Request, Session, Spool, listen
from recollect.plugins import Effect, Host, Moment

if TYPE_CHECKING:
    from recollect.config import Settings
    from recollect.service import MemoryService

log = logs.get("hooks")

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
    host = Host.open(service=service, slot="memory-full")
    try:
        return drain(host)
    finally:
        host.close()


def _hear(host: Host, marks: Marks, request: Request) -> bool:
    """Hear one session up to where it was; False when it has to be done again."""
    known = marks.get(request.session)
    path = Path(request.transcript)
    try:
        new = listen(path, known.mark, request.size)
        whole = () if request.event == "Stop" else listen(path, None, request.size).records
    except SourceError as error:
        log.warning("a session cannot be heard any more: %s", error)
        return True
    session = request.session
    if request.event == "SessionEnd":
        effects = [host.emit(Moment("session_end", session, messages=whole, transcript=path))]
    else:
        effects = [host.emit(Moment("agent_end", session, messages=new.records, transcript=path))]
    if request.event == "PreCompact":
        effects.append(host.emit(Moment("before_compaction", session, messages=whole, transcript=path)))
    if Effect.joined(effects).warnings:  # told by the bus already
        return False
    seen = Session(session, request.project or known.project, request.transcript, time.time(), known.mark)
    marks.put(seen if _model_waits(host, session) else replace(seen, mark=new.mark))
    return True


def _model_waits(host: Host, session: str) -> bool:
    """Whether a language model is to be asked once there is more: the next hook must find these turns again."""
    memory = host.memory
    return memory.settings.extraction.auto_extract and bool(memory.extractor.waiting(session))
