"""Moments, and the hook bus that calls their handlers. No handler can break the host or delay it beyond a deadline.

A handler that raises or is late results in a warning and a log line. If it only reads, its late result is dropped. If
it writes, it is finished in the background, in order, and a warning says so.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from memoriter import logs
from memoriter.background import Rejected, Task, Workers
from memoriter.errors import MemoriterError, message_of
from memoriter.records import Remembered, Saved
from memoriter.text.encoding import encodable

Event = Literal[
    "session_start",
    "before_agent_start",
    "agent_end",
    "before_compaction",
    "command_new",
    "transcript_update",
    "session_end",
]
EVENTS: tuple[Event, ...] = get_args(Event)

#: Moments at which something is written. This work is finished even if it is late; other results are dropped.
WRITING: frozenset[Event] = frozenset({"agent_end", "before_compaction", "command_new", "session_end"})


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happens in a host."""

    event: Event
    #: The id of the session.
    session: str = "main"
    #: The session key, which names the participants, for `memory.scope`. None is the owner's terminal or program.
    session_key: str | None = None
    #: The conversation, all of it or since the last moment.
    messages: tuple[Mapping[str, object], ...] = ()
    #: What the user just said, if it is not among the messages yet.
    prompt: str = ""
    #: The file of the conversation, used if there are no messages.
    transcript: Path | None = None
    #: The model's context window in tokens.
    window: int | None = None
    #: The current length of the conversation in tokens.
    tokens: int | None = None
    #: Every turn was already in an earlier `agent_end`.
    captured: bool = False
    #: Labels recalled lines (`recall.inject.Check`).
    check: Callable[..., str] | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """The result of one moment."""

    #: Text to put before what the user said.
    prepend_context: str = ""
    #: The id of that text in the recall ledger.
    recall_id: str = ""
    #: Names of the tools that the agent has.
    tools: tuple[str, ...] = ()
    remembered: tuple[Remembered, ...] = ()
    written: tuple[Saved, ...] = ()
    #: Sentences for the owner, never for the model.
    warnings: tuple[str, ...] = ()

    @classmethod
    def join(cls, effects: Iterable[Effect]) -> Effect:
        """Join several effects into one, in their order."""
        parts = list(effects)
        return cls(
            prepend_context="\n\n".join(part.prepend_context for part in parts if part.prepend_context),
            recall_id=next((part.recall_id for part in parts if part.recall_id), ""),
            tools=tuple(dict.fromkeys(name for part in parts for name in part.tools)),
            remembered=tuple(result for part in parts for result in part.remembered),
            written=tuple(saved for part in parts for saved in part.written),
            warnings=tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
        )

    def as_host(self) -> dict[str, object]:
        """Return the effect as plain data for hosts, in camelCase and without empty fields."""
        remembered = [
            {"id": result.entry.id if result.entry else None, "action": result.action}
            for result in self.remembered
        ]
        fields: dict[str, object] = {
            "prependContext": self.prepend_context,
            "recallId": self.recall_id,
            "tools": list(self.tools),
            "remembered": remembered,
            "written": [saved.citation for saved in self.written],
            "warnings": list(self.warnings),
        }
        return {name: value for name, value in fields.items() if value}


log = logs.get("agent")

Handler = Callable[[Moment], Effect | None]

#: Seconds, for handlers that name no deadline. A person waits at the first two. Others may ask a language model.
DEADLINES: Mapping[Event, float] = {
    "session_start": 5.0,
    "before_agent_start": 5.0,
    "agent_end": 10.0,
    "before_compaction": 60.0,
    "command_new": 60.0,
    "transcript_update": 2.0,
    "session_end": 60.0,
}
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
    """The handlers of one agent, by event."""

    def __init__(self) -> None:
        self._handlers: dict[Event, list[_Registered]] = {event: [] for event in EVENTS}
        self._workers: dict[tuple[str, str], Workers] = {}
        self._lock = threading.Lock()

    def on(self, event: Event, handler: Handler, *, name: str, deadline_s: float | None = None) -> None:
        """Call the handler on this event. Warnings use ``name``.

        Handlers of one name that write share a thread, so that they act in the order of the moments.
        """
        if event not in self._handlers:
            raise ValueError(f"Unknown event {event!r}. Known events: {', '.join(EVENTS)}.")
        key = (name, "writes" if event in WRITING else event)
        with self._lock:
            workers = self._workers.setdefault(key, _workers(name, event))
            wait_s = DEADLINES[event] if deadline_s is None else deadline_s
            self._handlers[event].append(_Registered(name, event, handler, wait_s, workers))

    def emit(self, moment: Moment, *, wait_s: float | None = None) -> Effect:
        """Call every handler of the event and join the effects. Never raises.

        With ``wait_s``, each handler has this many seconds instead of its deadline, and waits behind earlier moments.
        """
        if moment.event not in self._handlers:
            return Effect(warnings=(f"Unknown event {moment.event!r}. Known events: {', '.join(EVENTS)}.",))
        moment = _encodable(moment)
        started = [_start(handler, moment, wait_s) for handler in tuple(self._handlers[moment.event])]
        return Effect.join(handler.effect() for handler in started)

    def close(self, wait_s: float = 10.0) -> int:
        """Wait for handlers that write, and close; return how many moments are unfinished after the timeout."""
        until = time.monotonic() + wait_s
        unfinished = 0
        for (name, kind), workers in self._workers.items():
            writes = kind == "writes"
            count = workers.close(until - time.monotonic() if writes else 0.0)
            if count and writes:
                log.error("%s had not finished %d moments when the agent was closed", name, count)
                unfinished += count
        return unfinished


def _encodable(moment: Moment) -> Moment:
    """Return the moment with names that can be stored: a host may have cut one in the middle of a character."""
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
    #: The reason why there is no task to wait for; empty if there is one.
    skipped: str
    until: float

    def effect(self) -> Effect:
        """Wait for the handler and return its effect, or a warning."""
        name = f"{self.handler.name} ({self.handler.event})"
        if self.skipped or self.task is None:
            return _warn(f"{name} {self.skipped}.")
        if not self.task.wait(self.until - time.monotonic()):
            writes = self.handler.event in WRITING
            outcome = "and continues in the background" if writes else "and its result was dropped"
            return _warn(f"{name} took longer than {self.handler.deadline_s:g} s, {outcome}.")
        try:
            effect = self.task.result()
        except (MemoriterError, OSError) as error:
            return _warn(f"{name} failed: {message_of(error)}")
        except Exception as error:  # the host continues, whatever a handler does
            log.exception("%s failed", name)
            return Effect(warnings=(f"{name} failed: {type(error).__name__}: {error}",))
        if effect is not None and not isinstance(effect, Effect):
            return _warn(f"{name} gave a {type(effect).__name__} instead of an Effect.")
        return effect or Effect()


def _start(known: _Registered, moment: Moment, wait_s: float | None) -> _Started:
    """Submit the moment to the handler. With ``wait_s`` it also waits behind earlier moments that are late."""
    handler = known if wait_s is None else replace(known, deadline_s=wait_s)
    until = time.monotonic() + handler.deadline_s
    stuck = handler.workers.stuck and wait_s is None
    if stuck and handler.event not in WRITING:
        return _Started(handler, None, "is still busy with earlier moments and was skipped", until)
    try:
        task = handler.workers.submit(lambda: handler.handler(moment))
    except Rejected:
        return _Started(handler, None, "has a full queue or is closed, and was skipped", until)
    if stuck:
        task.abandon()
        return _Started(
            handler, task, "is still busy with earlier moments and will process this one after them", until
        )
    return _Started(handler, task, "", until)


def _warn(sentence: str) -> Effect:
    log.warning("%s", sentence)
    return Effect(warnings=(sentence,))
