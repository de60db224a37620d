"""Live events: what happened to the memory of an agent, streamed to the clients that listen.

The hub keeps recent events, so that a client that reconnects continues after its last event. A listener that does not
read its events in time is disconnected: one slow client must not cost memory or delay the others.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse, SendTimeoutError
from starlette.datastructures import Headers, QueryParams
from starlette.types import Receive, Scope, Send

from memoriter import logs
from memoriter.async_memory import in_thread
from memoriter.errors import MemoriterError
from memoriter.files import shared
from memoriter.memory import parts_of
from memoriter.server.http.responses import Refused, encode_json

if TYPE_CHECKING:
    from memoriter.agent import Agent
    from memoriter.server.http.auth import Caller
    from memoriter.server.http.gateway import Agents
    from memoriter.server.http.guard import RequestRecord

log = logs.get("http.events")

EventKind = Literal["hello", "sync", "progress", "capture", "recall", "entries", "notes"]

#: Events of an agent that a client can catch up with.
MAX_KEPT_EVENTS = 256
#: Events that may wait for a listener.
MAX_PENDING_EVENTS = 128
HEARTBEAT_S = 15.0
#: A listener that reads nothing for this long is disconnected.
SEND_TIMEOUT_S = 10.0
RETRY_MS = 2000
#: How often the gateway looks for changes by other processes.
POLL_INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """Something that happened to an agent's memory."""

    run: str
    number: int
    kind: EventKind
    data: Mapping[str, object]

    def encode(self) -> ServerSentEvent:
        """Return the event as the stream sends it."""
        return _server_sent(self.kind, self.data, event_id=f"{self.run}-{self.number}")


def _server_sent(
    kind: EventKind, data: Mapping[str, object], *, event_id: str | None = None, retry: int | None = None
) -> ServerSentEvent:
    return ServerSentEvent(encode_json(data).decode(), event=kind, id=event_id, retry=retry, sep="\n")


class EventHistory:
    """The recent events of one agent. Each agent counts its own, so that ids do not reveal how busy others are."""

    def __init__(self) -> None:
        #: Ids of another run or another agent are not valid here.
        self._run = secrets.token_hex(4)
        self._events: deque[ServerEvent] = deque(maxlen=MAX_KEPT_EVENTS)
        self._number = 0

    def add(self, kind: EventKind, data: Mapping[str, object]) -> ServerEvent:
        """Add an event."""
        self._number += 1
        event = ServerEvent(self._run, self._number, kind, data)
        self._events.append(event)
        return event

    @property
    def last_id(self) -> str:
        """Return the id of the newest event. Before the first one, it is an id that `since` knows."""
        return f"{self._run}-{self._number}"

    def since(self, last_id: str) -> tuple[list[ServerEvent], bool]:
        """Return the events after the event with this id, and whether none of them is missing."""
        run, _, number = last_id.partition("-")
        if run != self._run or not number.isascii() or not number.isdigit():
            return [], False
        seen = int(number[:18])
        missed = [event for event in self._events if event.number > seen]
        return missed, len(self._events) < MAX_KEPT_EVENTS or self._events[0].number <= seen + 1


class Listener:
    """One client that listens to one agent."""

    def __init__(self, agent: str, caller_id: str, loop: asyncio.AbstractEventLoop) -> None:
        self.agent = agent
        self.caller_id = caller_id
        self._loop = loop
        self._queue: asyncio.Queue[ServerEvent | None] = asyncio.Queue()

    def offer(self, event: ServerEvent | None) -> None:
        """Queue an event, from any thread. None ends the stream."""
        with suppress(RuntimeError):  # the event loop is closed, and the stream with it
            self._loop.call_soon_threadsafe(self._put, event)

    async def next(self, timeout_s: float) -> ServerEvent | None:
        """Return the next event, or None at the end. Raise `TimeoutError` when there is none in time."""
        async with asyncio.timeout(timeout_s):
            return await self._queue.get()

    def _put(self, event: ServerEvent | None) -> None:
        if self._queue.qsize() >= MAX_PENDING_EVENTS:
            event = None
            while not self._queue.empty():
                self._queue.get_nowait()
        self._queue.put_nowait(event)


class Hub:
    """Distributes events to listeners. Any thread may publish."""

    def __init__(self, max_listeners: int) -> None:
        self._max_listeners = max_listeners
        #: No caller can occupy all streams.
        self._max_per_caller = max(1, max_listeners // 2)
        self._lock = threading.Lock()
        self._histories: defaultdict[str, EventHistory] = defaultdict(EventHistory)
        self._listeners: set[Listener] = set()
        self._closed = False

    @property
    def listeners(self) -> int:
        """Return the number of listeners."""
        return len(self._listeners)

    def publish(self, agent: str, kind: EventKind, **data: object) -> None:
        """Publish an event of an agent."""
        with self._lock:
            event = self._histories[agent].add(kind, {"agent": agent, "at": time.time(), **data})
            for listener in self._listeners:  # inside the lock, so that all see the same order
                if listener.agent == agent:
                    listener.offer(event)

    def last_id(self, agent: str) -> str:
        """Return the id of an agent's newest event."""
        with self._lock:
            return self._histories[agent].last_id

    def join(
        self, agent: str, last_id: str = "", caller_id: str = ""
    ) -> tuple[Listener, list[ServerEvent], bool]:
        """Start to listen. Return the listener, the events since its last one, and whether none is missing."""
        listener = Listener(agent, caller_id, asyncio.get_running_loop())
        retry = {"retry-after": "5"}
        with self._lock:
            if self._closed or len(self._listeners) >= self._max_listeners:
                message = "Too many event streams are open. Try again later."
                raise Refused(503, "too_many_streams", message, retry)
            if sum(other.caller_id == caller_id for other in self._listeners) >= self._max_per_caller:
                message = "This caller has too many event streams open."
                raise Refused(429, "too_many_streams", message, retry)
            missed, complete = self._histories[agent].since(last_id)
            self._listeners.add(listener)
        return listener, missed, complete

    def leave(self, listener: Listener) -> None:
        """Stop listening."""
        with self._lock:
            self._listeners.discard(listener)

    def close(self) -> None:
        """End every stream and accept no new ones."""
        with self._lock:
            self._closed = True
            for listener in self._listeners:
                listener.offer(None)


class EventStream:
    """The ASGI application that streams events until the client or the gateway closes the connection."""

    def __init__(self, hub: Hub, is_valid: Callable[[Caller], bool], wake: Callable[[str], None]) -> None:
        self._hub = hub
        #: Called for each event, because a token can be revoked while its stream is open.
        self._is_valid = is_valid
        #: Opens the agent's memory. A memory that is not open does not notice changes.
        self._wake = wake

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream events."""
        record: RequestRecord = scope["state"]["record"]
        assert record.agent is not None
        assert record.caller is not None
        # A browser cannot send headers with its first connection, and repeats its first address when it reconnects.
        named = QueryParams(scope.get("query_string", b"")).get("after", "")
        last_id = Headers(scope=scope).get("last-event-id", named)
        listener, missed, complete = self._hub.join(record.agent, last_id, record.caller.id)
        self._wake(record.agent)
        response = EventSourceResponse(
            self._events(listener, missed, complete, record.caller),
            ping=HEARTBEAT_S,
            ping_message_factory=lambda: ServerSentEvent(comment="ping", sep="\n"),
            send_timeout=SEND_TIMEOUT_S,
            sep="\n",
        )
        try:
            await response(scope, receive, send)
        except SendTimeoutError:
            log.info("a client did not read its events in time and was disconnected")
        finally:
            self._hub.leave(listener)

    async def _events(
        self, listener: Listener, missed: list[ServerEvent], complete: bool, caller: Caller
    ) -> AsyncIterator[ServerSentEvent]:
        hello = {"agent": listener.agent, "at": time.time(), "resumed": complete}
        yield _server_sent("hello", hello, retry=RETRY_MS)
        for event in missed:
            yield event.encode()
        while True:
            try:
                next_event = await listener.next(HEARTBEAT_S)
            except TimeoutError:  # nothing happened, but the token may have been revoked
                if self._is_valid(caller):
                    continue
                return
            if next_event is None or not self._is_valid(caller):
                return
            yield next_event.encode()


# ---- changes by other processes ---------------------------------------------------------------------------------

#: Modification times and sizes of the database files. They differ after a change.
FileState = tuple[int, ...]
#: Which memory is open, and its count of changes by other processes.
Version = tuple[int, int]


async def watch_other_processes(hub: Hub, agents: Agents) -> None:
    """Publish the changes that other processes make to entries, until cancelled."""
    known: dict[str, tuple[FileState, Version | None]] = {}
    while True:
        await asyncio.sleep(POLL_INTERVAL_S)
        for name, reloading in agents.items():
            agent = reloading.current
            if agent is None:
                continue
            state = tuple(_file_state(agent.memory.settings.entries_database))
            if name in known and known[name][0] == state:
                continue
            try:
                version = await in_thread(_version, agent)
            except (MemoriterError, OSError) as error:
                log.warning("agent %s: cannot read the changes of other processes: %s", name, error)
                continue
            _, before = known.get(name, (state, None))
            # An agent that was just opened may have changed since its first reader.
            if version not in (None, before):
                hub.publish(name, "entries", operation=None)
            known[name] = state, version


def _version(agent: Agent) -> Version | None:
    """Return None while the agent has no entries."""
    settings = agent.memory.settings
    if not settings.store.is_shared and not settings.entries_database.exists():
        return None
    return id(agent), parts_of(agent.memory).entry_context.store.external_changes()


def _file_state(database: Path) -> Iterator[int]:
    yield shared.announcements(database)
    for file in (database, database.with_name(f"{database.name}-wal")):
        try:
            stat = file.stat()
            yield from (stat.st_mtime_ns, stat.st_size)
        except OSError:
            yield 0
