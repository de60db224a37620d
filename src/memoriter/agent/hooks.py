"""Who acts when something happens in a host. No handler can break the host, or hold it up beyond its deadline.

A handler that raises or is late is a warning and a line in the log. What is only read is worth nothing late, and is
dropped. What is to be kept is finished in the background, in order, and the host is told that it goes on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from memoriter import logs
from memoriter.agent.moments import EVENTS, WRITING, Effect, Event, Moment
from memoriter.background import Rejected, Task, Workers
from memoriter.errors import MemoriterError
from memoriter.text.encoding import encodable

log = logs.get("agent")

Handler = Callable[[Moment], Effect | None]

DEADLINES: Mapping[Event, float] = {
    "session_start": 5.0,
    "before_agent_start": 5.0,
    "agent_end": 10.0,
    "before_compaction": 60.0,
    "command_new": 60.0,
    "transcript_update": 2.0,
    "session_end": 60.0,
}
"""Seconds, where a handler names none: a person waits for the first ones, a language model may be asked in others."""

#: Sessions of one host that a handler may serve at the same time.
MAX_READERS = 4
#: Calls that may wait for a handler.
QUEUE_LENGTH = 256


@dataclass(frozen=True, slots=True)
class _Registered:
    name: str
    event: Event
    handler: Handler
    deadline_s: float
    workers: Workers


class HookBus:
    """Handlers by the event that they act on."""

    def __init__(self) -> None:
        self._handlers: dict[Event, list[_Registered]] = {event: [] for event in EVENTS}
        self._workers: dict[tuple[str, str], Workers] = {}
        self._lock = threading.Lock()

    def on(self, event: Event, handler: Handler, *, name: str, deadline_s: float | None = None) -> None:
        """Let the handler act on this event. ``name`` is what warnings call it.

        Handlers of one name that keep something share a thread, so that they act in the order of the moments.
        """
        if event not in self._handlers:
            raise ValueError(f"There is no event {event!r}; there are {', '.join(EVENTS)}.")
        key = (name, "keeps" if event in WRITING else event)
        with self._lock:
            workers = self._workers.setdefault(key, _workers(name, event))
            wait_s = DEADLINES[event] if deadline_s is None else deadline_s
            self._handlers[event].append(_Registered(name, event, handler, wait_s, workers))

    def emit(self, moment: Moment, *, wait_s: float | None = None) -> Effect:
        """Let everybody act who wants to, and join what comes of it; never raises.

        ``wait_s``: how long each is waited for instead of its deadline, and whatever it is still busy with.
        """
        if moment.event not in self._handlers:
            return Effect(warnings=(f"There is no event {moment.event!r}; there are {', '.join(EVENTS)}.",))
        moment = _encodable(moment)
        started = [_start(handler, moment, wait_s) for handler in tuple(self._handlers[moment.event])]
        return Effect.joined(handler.effect() for handler in started)

    def close(self, wait_s: float = 10.0) -> int:
        """End, and wait for what is being kept; how many moments were not dealt with by then."""
        until = time.monotonic() + wait_s
        left = 0
        for (name, kind), workers in self._workers.items():
            keeps = kind == "keeps"
            undone = workers.close(until - time.monotonic() if keeps else 0.0)
            if undone and keeps:
                log.error("%s had not finished %d moments when the host ended", name, undone)
                left += undone
        return left


def _encodable(moment: Moment) -> Moment:
    """The moment with names that can be kept: a host may have cut one in the middle of a character."""
    key = moment.session_key
    return replace(
        moment,
        session=encodable(str(moment.session)),
        session_key=None if key is None else encodable(str(key)),
    )


def _workers(name: str, event: Event) -> Workers:
    if event in WRITING:
        return Workers(f"memoriter-hook-{name}", threads=1, queue=QUEUE_LENGTH, keep=True)
    return Workers(f"memoriter-hook-{name}-{event}", threads=MAX_READERS, queue=QUEUE_LENGTH)


@dataclass(frozen=True, slots=True)
class _Started:
    """A handler at work on one moment."""

    handler: _Registered
    task: Task[Effect | None] | None
    #: Why nothing is waited for; empty when the task is.
    skipped: str
    until: float

    def effect(self) -> Effect:
        """Wait for the handler and return its effect, or a warning."""
        name = f"{self.handler.name} ({self.handler.event})"
        if self.skipped or self.task is None:
            return _warned(f"{name} {self.skipped}.")
        if not self.task.wait(self.until - time.monotonic()):
            keeps = self.handler.event in WRITING
            outcome = "and goes on in the background" if keeps else "and its result was dropped"
            return _warned(f"{name} took longer than {self.handler.deadline_s:g} s, {outcome}.")
        try:
            effect = self.task.result()
        except (MemoriterError, OSError) as error:
            return _warned(f"{name} failed: {error}")
        except Exception as error:  # the host goes on, whatever a handler does
            log.exception("%s failed", name)
            return Effect(warnings=(f"{name} failed: {type(error).__name__}: {error}",))
        if effect is not None and not isinstance(effect, Effect):
            return _warned(f"{name} gave a {type(effect).__name__} instead of an Effect.")
        return effect or Effect()


def _start(known: _Registered, moment: Moment, wait_s: float | None) -> _Started:
    """Submit the moment to the handler. With ``wait_s`` it also waits behind earlier moments that are late."""
    handler = known if wait_s is None else replace(known, deadline_s=wait_s)
    until = time.monotonic() + handler.deadline_s
    stuck = handler.workers.stuck and wait_s is None
    if stuck and handler.event not in WRITING:
        return _Started(handler, None, "is still busy with earlier moments, and was passed over", until)
    try:
        task = handler.workers.submit(lambda: handler.handler(moment))
    except Rejected:
        return _Started(handler, None, "has too much to do or has ended, and was passed over", until)
    if stuck:
        task.abandon()
        return _Started(
            handler, task, "is still busy with earlier moments, and will do this after them", until
        )
    return _Started(handler, task, "", until)


def _warned(sentence: str) -> Effect:
    log.warning("%s", sentence)
    return Effect(warnings=(sentence,))
