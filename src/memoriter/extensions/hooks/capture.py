"""Process the transcripts of hosts' sessions.

Every request goes through the queue. If a hook is killed, or the store is busy, the next hook continues its work. Only
new records of a transcript are processed; the memory plugin decides what is learned from them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from memoriter import logs
from memoriter.agent import Agent, Event, Moment
from memoriter.config import Settings
from memoriter.errors import SourceError
from memoriter.extensions.hooks.progress import SessionProgress, SessionState
from memoriter.extensions.hooks.queue import SessionQueue, SessionRequest
from memoriter.extensions.projects.branches import learning
from memoriter.memory import parts_of
from memoriter.sessions.tail import read_new_turns

log = logs.get("hooks")

Records = tuple[Mapping[str, object], ...]

#: Time to wait for another process that works on the same queue.
QUEUE_WAIT_S = 30.0
#: Time for one piece of a session when no caller waits for it. A slow machine must not lose it.
PIECE_TIMEOUT_S = 3600.0


def session_queue(settings: Settings) -> SessionQueue:
    """Return the queue of sessions to process."""
    return SessionQueue(settings.agent_folder / "queue")


def session_progress(settings: Settings) -> SessionProgress:
    """Return how far each session has been processed."""
    return SessionProgress(settings.agent_folder / "hooks")


def process_queue(
    agent: Agent, *, wait_s: float = QUEUE_WAIT_S, until: float | None = None, own: Path | None = None
) -> int:
    """Process all queued sessions; return the number of finished requests, 0 if the agent has no memory.

    ``until``: a caller waits until this time, so only new turns are processed and summaries are left for later.
    ``own``: the caller's own request, as in `SessionQueue.drain`.
    """
    if agent.error:
        return 0
    settings = agent.memory.settings
    queue, progress = session_queue(settings), session_progress(settings)

    def handle(request: SessionRequest) -> bool | None:
        with learning(agent.memory, request.project, request.branch, request.session):
            return _process(agent, progress, request, until)

    finished = queue.drain(handle, wait_s=wait_s, until=until, own=own)
    if finished:
        progress.prune()
    return finished


def _process(
    agent: Agent, progress: SessionProgress, request: SessionRequest, until: float | None = None
) -> bool | None:
    """Process the next piece of a session. The result is that of `Handle` in `sessions.queue`."""
    path = Path(request.transcript)
    known, rules = progress.get(request.session), parts_of(agent.memory).trust_rules
    try:
        new = read_new_turns(path, known.position, request.size, rules=rules)
        parts_of(agent.memory).mark_relayed(new.relayed)
        turns = known.own_records(new.records, rules)
        moment = Moment("agent_end", request.session, messages=turns, transcript=path)
        if turns and not _emit(agent, moment, until):
            return False
        reached = replace(
            known,
            project=request.project or known.project,
            transcript=request.transcript,
            at=time.time(),
            position=new.position,
        )
        waits = _waits_for_model(agent, request.session)
        # Turns that the model has not seen exist only in this process, so the next one must read them again.
        (progress.put_in_memory if waits else progress.put)(reached)
        if new.more:
            return None
        if request.event != "Stop":
            if until is not None:
                return False
            ending = read_new_turns(path, None, request.size, rules=rules).records
            if not _emit(agent, _end_moment(request, known, known.own_records(ending, rules))):
                return False
            if waits and not _waits_for_model(agent, request.session):
                progress.put(reached)
    except SourceError as error:
        log.warning("cannot process a session: %s", error)
    return True


def _end_moment(request: SessionRequest, known: SessionState, messages: Records) -> Moment:
    """Return the moment for the end or the compaction of a session whose turns have all been processed."""
    event: Event = "session_end" if request.event == "SessionEnd" else "before_compaction"
    # Without messages a plugin reads the transcript. That of a fork begins with another session's turns.
    transcript = Path(request.transcript) if messages or not known.forked_at else None
    return Moment(event, request.session, messages=messages, transcript=transcript, captured=True)


def _emit(agent: Agent, moment: Moment, until: float | None = None) -> bool:
    """Emit a moment; return whether every plugin processed it. The agent logs failures."""
    wait_s = PIECE_TIMEOUT_S if until is None else max(0.0, until - time.monotonic())
    return not agent.emit(moment, wait_s=wait_s).warnings


def _waits_for_model(agent: Agent, session: str) -> bool:
    """Return whether turns are collected until there are enough for a language model."""
    return parts_of(agent.memory).count_waiting_turns(session) > 0
