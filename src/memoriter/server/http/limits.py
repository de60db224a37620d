"""How much a caller may ask: a bucket of requests that time fills, bodies of bounded size, bounded work at once."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from memoriter.async_memory import in_thread
from memoriter.server.http.responses import Message, Receive, Refused

T = TypeVar("T")

MOST_CALLERS = 4096  #: buckets that are remembered; the least lately used is forgotten first
LAST_S = 2.0  #: for a body that is on its way when the gateway ends, or that is not wanted
PASSING_BYTES = 256 * 1024 * 1024  #: of a body that is not wanted, that are waited for
DEEPEST = 64  #: brackets within brackets in a body
TOO_DEEP = f"The body is nested deeper than {DEEPEST} levels."


class Rate:
    """A bucket a caller: each request takes one out, time puts them back."""

    def __init__(self, per_second: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> float:
        """Take one; 0, or the seconds after which there will be one again."""
        now = self._clock()
        left, at = self._buckets.get(caller, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_second)
        enough = left >= 1
        self._buckets[caller] = (left - 1 if enough else left, now)
        self._buckets.move_to_end(caller)
        if len(self._buckets) > MOST_CALLERS:
            self._buckets.popitem(last=False)
        return 0.0 if enough else (1 - left) / self._per_second


class Bodies:
    """Bodies that are on their way: of bounded size, and not for ever."""

    def __init__(self, most: int, time_s: float) -> None:
        self._most = most
        self._time_s = time_s
        self._end = math.inf  #: when the gateway waits for no body any more
        self._waiting: set[asyncio.Timeout] = set()

    def counted(self, receive: Receive) -> Receive:
        """The same body, refused where it becomes too large, whatever its head said, and where it does not come."""
        seen, whole = 0, False
        until = asyncio.get_running_loop().time() + self._time_s

        async def receive_counted() -> Message:
            nonlocal seen, whole
            if whole:
                return await receive()
            message = await self._within(until, receive)
            if message["type"] == "http.disconnect":
                raise Refused(499, "The caller went away.")
            seen += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if seen > self._most:
                if not whole:
                    await self.let_pass(receive)
                raise too_large(self._most)
            return message

        return receive_counted

    async def let_pass(self, receive: Receive) -> None:
        """Let more come for a moment, and drop it: a connection that is closed on it takes our answer with it."""
        left = PASSING_BYTES
        with suppress(Refused):
            until = asyncio.get_running_loop().time() + LAST_S
            while left > 0:
                message = await self._within(until, receive)
                left -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    return

    def hurry(self) -> None:
        """The gateway ends: what has not come by now has a moment left."""
        self._end = asyncio.get_running_loop().time() + LAST_S
        for waiting in self._waiting:
            waiting.reschedule(min(waiting.when() or math.inf, self._end))

    async def _within(self, until: float, receive: Receive) -> Message:
        try:
            async with asyncio.timeout_at(min(until, self._end)) as waiting:
                self._waiting.add(waiting)
                try:
                    return await receive()
                finally:
                    self._waiting.discard(waiting)
        except TimeoutError:
            raise Refused(504, "The body did not come in time.", [(b"connection", b"close")]) from None


def too_large(most: int) -> Refused:
    """A body that is not read further."""
    return Refused(413, f"The body is larger than {most} bytes.", [(b"connection", b"close")])


def arguments(body: bytes) -> dict[str, Any]:
    """The object that a body says; nothing is an empty one."""
    if not body.strip():
        return {}
    try:
        data = json.loads(body.decode("utf-8"), parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        raise Refused(400, TOO_DEEP) from None
    except ValueError:  # also bytes that are no UTF-8, and numbers of too many digits
        raise Refused(400, "The body is not JSON.") from None
    if not isinstance(data, dict):
        raise Refused(422, "The body must be a JSON object of arguments.")
    if _depth_exceeds(data, DEEPEST):
        raise Refused(400, TOO_DEEP)
    return data


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0:
        raise ValueError("a number that no float can hold")
    return number


def _depth_exceeds(data: object, most: int) -> bool:
    """Level by level, so that the depth of the data is never that of our stack."""
    level: list[Any] = [data]
    for _ in range(most):
        inner = [
            item
            for holder in level
            for item in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(item, dict | list)
        ]
        if not inner:
            return False
        level = inner
    return True


class Workers:
    """Threads that do the work; whoever comes when three times as many wait is told to come again."""

    def __init__(self, at_once: int) -> None:
        self._most = 4 * at_once
        self._lock = threading.Lock()
        self.taken = 0

    async def run(self, call: Callable[[], T]) -> T:
        """Call it in a thread. A caller that is cancelled waits no longer, and what was not begun is not begun."""
        job = _Job(call, self._release)
        with self._lock:
            if self.taken >= self._most:
                raise Refused(503, "The gateway is busy; try again.", [(b"retry-after", b"1")])
            self.taken += 1
        try:
            return await in_thread(job)
        finally:
            job.leave()

    def _release(self) -> None:
        with self._lock:
            self.taken -= 1


class _Job:
    """One call, whose place is given back once: when it has run, or when it will not."""

    def __init__(self, call: Callable[[], T], release: Callable[[], None]) -> None:
        self._call: Callable[[], Any] = call
        self._release = release
        self._lock = threading.Lock()
        self._state = "waiting"

    def __call__(self) -> Any:
        with self._lock:
            if self._state == "left":
                return None
            self._state = "running"
        try:
            return self._call()
        finally:
            self._release()

    def leave(self) -> None:
        """Nobody waits for it any more."""
        with self._lock:
            if self._state != "waiting":
                return
            self._state = "left"
        self._release()
