"""Live events: what happened to which agent, told to whoever listens.

An event is kept for a while, so that a listener who lost the connection goes on where it was. Who does not take its
events in time is let go: one slow listener must cost neither memory nor the others' time.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from memoriter import logs
from memoriter.async_memory import in_thread
from memoriter.errors import MemoriterError
from memoriter.server.http.responses import Receive, Refused, Scope, Send, encoded

if TYPE_CHECKING:
    from memoriter.server.http.agents import Agents, Opened
    from memoriter.server.http.auth import Caller
    from memoriter.server.http.guard import Visit


log = logs.get("http.elsewhere")

EVERY_S = 1.0

Sign = tuple[int, ...]  #: by what one sees that the database has changed
Version = tuple[int, int]  #: which memory is open, and its database's count of others' changes


async def look_elsewhere(hub: Hub, agents: Agents) -> None:
    """Look until cancelled; also while nobody listens, for those who will come back."""
    known: dict[str, tuple[Sign, Version | None]] = {}
    while True:
        await asyncio.sleep(EVERY_S)
        for name, live in agents.items():
            opened = live.opened
            if opened is None:
                continue
            sign = tuple(_signs(opened.settings.agent_folder / "memory.db"))
            if name in known and known[name][0] == sign:
                continue
            try:
                version = await in_thread(_version, opened)
            except (MemoriterError, OSError) as error:
                log.warning("the agent %s: what others changed cannot be seen: %s", name, error)
                continue
            if name in known and known[name][1] != version:
                hub.publish(name, "entries", operation=None)
            known[name] = sign, version


def _version(opened: Opened) -> Version | None:
    """None while nothing was learned yet."""
    if not (opened.settings.agent_folder / "memory.db").exists():
        return None
    return id(opened), opened.service.memory.entries.external_changes()


def _signs(database: Path) -> Iterator[int]:
    for file in (database, database.with_name(f"{database.name}-wal")):
        try:
            stat = file.stat()
            yield from (stat.st_mtime_ns, stat.st_size)
        except OSError:
            yield 0


Kind = Literal["hello", "sync", "progress", "capture", "recall", "entries", "notes"]

KEPT = 256  #: events of an agent that a listener can catch up with
WAITING = 128  #: events that a listener may be behind
HEARTBEAT_S = 15.0
SEND_S = 10.0  #: a listener that takes nothing for so long is gone
RETRY_MS = 2000


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    run: str
    number: int
    kind: Kind
    data: Mapping[str, object]

    def written(self) -> bytes:
        """The event as the stream says it."""
        head = f"id: {self.run}-{self.number}\nevent: {self.kind}\ndata: "
        return head.encode() + encoded(self.data) + b"\n\n"


class Past:
    """What happened to one agent lately, counted for itself: a number must not tell how busy another one is."""

    def __init__(self) -> None:
        self._run = secrets.token_hex(4)  #: numbers of another run, or of another agent, mean nothing here
        self._kept: deque[Event] = deque(maxlen=KEPT)
        self._number = 0

    def add(self, kind: Kind, data: Mapping[str, object]) -> Event:
        """One more."""
        self._number += 1
        event = Event(self._run, self._number, kind, data)
        self._kept.append(event)
        return event

    def since(self, last_id: str) -> tuple[list[Event], bool]:
        """What came after the event of this id, and whether that is all of it."""
        run, _, number = last_id.partition("-")
        if run != self._run or not number.isascii() or not number.isdigit():
            return [], False
        seen = int(number[:18])
        missed = [event for event in self._kept if event.number > seen]
        return missed, len(self._kept) < KEPT or self._kept[0].number <= seen + 1


class Listener:
    """One who listens to one agent."""

    def __init__(self, agent: str, whom: str, loop: asyncio.AbstractEventLoop) -> None:
        self.agent = agent
        self.whom = whom  #: the caller's id
        self._loop = loop
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()

    def offer(self, event: Event | None) -> None:
        """Hand it an event from any thread; None ends it."""
        with suppress(RuntimeError):  # its loop has ended, and with it the listener
            self._loop.call_soon_threadsafe(self._take, event)

    async def next(self, wait_s: float) -> Event | None:
        """The next event; None at the end; raises `TimeoutError` when nothing happens for so long."""
        async with asyncio.timeout(wait_s):
            return await self._queue.get()

    def _take(self, event: Event | None) -> None:
        if self._queue.qsize() >= WAITING:
            event = None
            while not self._queue.empty():
                self._queue.get_nowait()
        self._queue.put_nowait(event)


class Hub:
    """Where events come together; anybody may publish, from any thread."""

    def __init__(self, most: int, *, clock: Callable[[], float] = time.time) -> None:
        self._most = most
        self._share = max(1, most // 2)  #: of one caller, so that nobody keeps all others out
        self._clock = clock
        self._lock = threading.Lock()
        self._pasts: defaultdict[str, Past] = defaultdict(Past)
        self._listeners: set[Listener] = set()
        self._ended = False

    @property
    def listeners(self) -> int:
        """How many listen now."""
        return len(self._listeners)

    def publish(self, agent: str, kind: Kind, **data: object) -> None:
        """Say that something happened to an agent."""
        with self._lock:
            event = self._pasts[agent].add(kind, {"agent": agent, "at": self._clock(), **data})
            listening = [listener for listener in self._listeners if listener.agent == agent]
            for listener in listening:  # within the lock, so that all see one order
                listener.offer(event)

    def join(self, agent: str, last_id: str = "", whom: str = "") -> tuple[Listener, list[Event], bool]:
        """Begin to listen: the listener, what it missed since its last event, and whether that is all of it."""
        listener = Listener(agent, whom, asyncio.get_running_loop())
        with self._lock:
            if self._ended or len(self._listeners) >= self._most:
                raise Refused(503, "Too many listen already; try again.", [(b"retry-after", b"5")])
            if sum(other.whom == whom for other in self._listeners) >= self._share:
                raise Refused(429, "This caller listens too often already.", [(b"retry-after", b"5")])
            missed, whole = self._pasts[agent].since(last_id)
            self._listeners.add(listener)
        return listener, missed, whole

    def leave(self, listener: Listener) -> None:
        """Listen no more."""
        with self._lock:
            self._listeners.discard(listener)

    def end(self) -> None:
        """End every stream, for good."""
        with self._lock:
            self._ended = True
            for listener in self._listeners:
                listener.offer(None)


class EventsDoor:
    """The answer that lasts: an ASGI application which tells events until one of the two sides goes."""

    def __init__(self, hub: Hub, still: Callable[[Caller], bool], wake: Callable[[str], None]) -> None:
        self._hub = hub
        self._wake = wake  #: only a memory that is open notices anything
        self._still = still  #: asked before each event: a caller may be revoked meanwhile

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell events."""
        visit: Visit = scope["state"]["visit"]
        assert visit.agent is not None
        assert visit.caller is not None
        last_id = dict(scope["headers"]).get(b"last-event-id", b"").decode("latin-1")
        listener, missed, whole = self._hub.join(visit.agent, last_id, visit.caller.id)
        self._wake(visit.agent)
        gone = asyncio.ensure_future(_gone(receive))
        gone.add_done_callback(lambda _: listener.offer(None))
        try:
            kind = (b"content-type", b"text/event-stream; charset=utf-8")
            headers = [kind, (b"x-accel-buffering", b"no")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            hello = encoded({"agent": visit.agent, "at": time.time(), "resumed": whole})
            await _say(send, f"retry: {RETRY_MS}\nevent: hello\ndata: ".encode() + hello + b"\n\n")
            for event in missed:
                await _say(send, event.written())
            if scope["method"] == "GET":
                await self._tell(listener, visit.caller, send)
            await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            return  # it takes nothing: there is nobody to say goodbye to
        finally:
            gone.cancel()
            self._hub.leave(listener)

    async def _tell(self, listener: Listener, caller: Caller, send: Send) -> None:
        while True:
            try:
                event = await listener.next(HEARTBEAT_S)
                said = event.written() if event else b""
            except TimeoutError:
                said = b": here\n\n"
            if not said or not self._still(caller):
                return
            await _say(send, said)


async def _say(send: Send, said: bytes) -> None:
    async with asyncio.timeout(SEND_S):
        await send({"type": "http.response.body", "body": said, "more_body": True})


async def _gone(receive: Receive) -> None:
    with suppress(Refused):  # it went before we looked
        while (await receive())["type"] != "http.disconnect":
            pass
