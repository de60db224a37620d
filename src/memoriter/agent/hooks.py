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
from memoriter.background import Call, Lane
from memoriter.errors import MemoriterError
from memoriter.text.encodable import encodable

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

READERS = 4  #: sessions of one host that a handler may serve at once
ROOM = 256  #: calls that may wait for a handler


@dataclass(frozen=True, slots=True)
class _Registered:
    name: str
    event: Event
    handler: Handler
    deadline_s: float
    lane: Lane


class HookBus:
    """Handlers by the event that they act on."""

    def __init__(self) -> None:
        self._handlers: dict[Event, list[_Registered]] = {event: [] for event in EVENTS}
        self._lanes: dict[tuple[str, str], Lane] = {}
        self._lock = threading.Lock()

    def on(self, event: Event, handler: Handler, *, name: str, deadline_s: float | None = None) -> None:
        """Let the handler act on this event. ``name`` is what warnings call it.

        Handlers of one name that keep something share a thread, so that they act in the order of the moments.
        """
        if event not in self._handlers:
            raise ValueError(f"There is no event {event!r}; there are {', '.join(EVENTS)}.")
        key = (name, "keeps" if event in WRITING else event)
        with self._lock:
            lane = self._lanes.get(key) or _lane(name, event)
            self._lanes[key] = lane
            wait_s = DEADLINES[event] if deadline_s is None else deadline_s
            self._handlers[event].append(_Registered(name, event, handler, wait_s, lane))

    def emit(self, moment: Moment, *, wait_s: float | None = None) -> Effect:
        """Let everybody act who wants to, and join what comes of it; never raises.

        ``wait_s``: how long each is waited for instead of its deadline, and whatever it is still busy with.
        """
        if moment.event not in self._handlers:
            return Effect(warnings=(f"There is no event {moment.event!r}; there are {', '.join(EVENTS)}.",))
        moment = _encodable(moment)
        now = time.monotonic()
        begun = []
        for known in tuple(self._handlers[moment.event]):
            one = known if wait_s is None else replace(known, deadline_s=wait_s)
            begun.append((one, *_begin(one, moment, patient=wait_s is not None), now + one.deadline_s))
        return Effect.joined(_ended(one, call, refused, until) for one, call, refused, until in begun)

    def close(self, wait_s: float = 10.0) -> int:
        """End, and wait for what is being kept; how many moments were not dealt with by then."""
        until = time.monotonic() + wait_s
        left = 0
        for (name, kind), lane in self._lanes.items():
            keeps = kind == "keeps"
            undone = lane.close(until if keeps else time.monotonic())
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


def _lane(name: str, event: Event) -> Lane:
    if event in WRITING:
        return Lane(f"memoriter-hook-{name}", threads=1, room=ROOM, keep=True)
    return Lane(f"memoriter-hook-{name}-{event}", threads=READERS, room=ROOM, keep=False)


def _begin(one: _Registered, moment: Moment, *, patient: bool) -> tuple[Call[Effect | None], str]:
    """The call on its way, and why nobody should wait for it, if so."""
    call: Call[Effect | None] = Call(lambda: one.handler(moment))
    stuck, keeps = one.lane.stuck and not patient, one.event in WRITING
    call.given_up = stuck
    if stuck and not keeps:
        return call, "is still busy with earlier moments, and was passed over"
    if not one.lane.put(call):
        return call, "has too much to do or has ended, and was passed over"
    return call, "is still busy with earlier moments, and will do this after them" if stuck else ""


def _ended(one: _Registered, call: Call[Effect | None], refused: str, until: float) -> Effect:
    who = f"{one.name} ({one.event})"
    if refused:
        return _warned(f"{who} {refused}.")
    try:
        effect = call.result(until)
    except TimeoutError:
        after = "and goes on in the background" if one.event in WRITING else "and its result was dropped"
        return _warned(f"{who} took longer than {one.deadline_s:g} s, {after}.")
    except (MemoriterError, OSError) as error:
        return _warned(f"{who} failed: {error}")
    except Exception as error:  # the host goes on, whatever a handler does
        log.exception("%s failed", who)
        return Effect(warnings=(f"{who} failed: {type(error).__name__}: {error}",))
    if effect is not None and not isinstance(effect, Effect):
        return _warned(f"{who} gave a {type(effect).__name__} instead of an Effect.")
    return effect or Effect()


def _warned(sentence: str) -> Effect:
    log.warning("%s", sentence)
    return Effect(warnings=(sentence,))
