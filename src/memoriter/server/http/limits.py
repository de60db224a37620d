"""Limits of a request: the rate of each caller, the size and depth of a body, and concurrent calls."""

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

from anyio import CapacityLimiter
from starlette.types import Message, Receive

from memoriter.async_memory import in_thread
from memoriter.server.http.responses import Refused

T = TypeVar("T")

#: Number of callers with a rate bucket. The least recently used bucket is dropped first.
MAX_CALLERS = 4096
#: Time for a body that is still arriving when the gateway shuts down, or that is too large.
LAST_BODY_S = 2.0
#: Bytes of a body that is too large that are read and discarded.
MAX_DISCARDED_BYTES = 256 * 1024 * 1024
#: Nesting of brackets in a JSON body.
MAX_DEPTH = 64
#: Calls that may wait for a thread, for each call that may run.
QUEUED_PER_RUNNING = 7


class RateLimiter:
    """A token bucket for each caller. A request takes one token, time adds them back."""

    def __init__(self, per_second: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> float:
        """Take a token. Return 0, or the seconds until the bucket has a token again."""
        now = self._clock()
        tokens, updated_at = self._buckets.get(caller, (self._burst, now))
        tokens = min(self._burst, tokens + (now - updated_at) * self._per_second)
        allowed = tokens >= 1
        self._buckets[caller] = (tokens - 1 if allowed else tokens, now)
        self._buckets.move_to_end(caller)
        if len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - tokens) / self._per_second


# ---- bodies ---------------------------------------------------------------------------------------------------------


class BodyLimit:
    """Limits the size of request bodies, and the time in which they must arrive."""

    def __init__(self, max_bytes: int, timeout_s: float) -> None:
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        #: When the gateway stops waiting for any body.
        self._deadline = math.inf
        self._waiting: set[asyncio.Timeout] = set()

    @property
    def waiting(self) -> int:
        """Return the number of bodies that are being received."""
        return len(self._waiting)

    def limit(self, receive: Receive) -> Receive:
        """Wrap `receive`. It raises `Refused` when a body becomes too large or does not arrive in time."""
        received, complete = 0, False
        until = asyncio.get_running_loop().time() + self._timeout_s

        async def receive_limited() -> Message:
            nonlocal received, complete
            if complete:
                return await receive()
            message = await self._receive_until(until, receive)
            if message["type"] == "http.disconnect":
                raise client_closed()
            received += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if received > self._max_bytes:
                if not complete:
                    await self.discard(receive)
                raise too_large(self._max_bytes)
            return message

        return receive_limited

    async def discard(self, receive: Receive) -> None:
        """Read and drop the body for a moment. Closing the connection now could also lose the response."""
        remaining = MAX_DISCARDED_BYTES
        with suppress(Refused):
            until = asyncio.get_running_loop().time() + LAST_BODY_S
            while remaining > 0:
                message = await self._receive_until(until, receive)
                remaining -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    return

    def shut_down(self) -> None:
        """Give the bodies that are still arriving a short time, because the gateway shuts down."""
        self._deadline = asyncio.get_running_loop().time() + LAST_BODY_S
        for timeout in self._waiting:
            timeout.reschedule(min(timeout.when() or math.inf, self._deadline))

    async def _receive_until(self, until: float, receive: Receive) -> Message:
        try:
            async with asyncio.timeout_at(min(until, self._deadline)) as timeout:
                self._waiting.add(timeout)
                try:
                    return await receive()
                finally:
                    self._waiting.discard(timeout)
        except TimeoutError:
            message = "The request body did not arrive in time."
            raise Refused(504, "timeout", message, {"connection": "close"}) from None


def too_large(max_bytes: int) -> Refused:
    """Return the response to a body that is too large."""
    message = f"The request body is larger than {max_bytes} bytes."
    return Refused(413, "too_large", message, {"connection": "close"}, {"maxBytes": max_bytes})


def client_closed() -> Refused:
    """Return the status for the log when the client closes the connection early."""
    return Refused(499, "client_closed", "The client closed the connection.")


def parse_arguments(body: bytes) -> dict[str, Any]:
    """Parse a JSON body. An empty body is an empty object."""
    if not body.strip():
        return {}
    try:
        data = json.loads(body.decode("utf-8"), parse_constant=_finite, parse_float=_finite)
    except RecursionError:
        raise _too_deep() from None
    except ValueError:  # also invalid UTF-8, and numbers with too many digits
        raise Refused(400, "invalid_json", "The request body is not valid JSON.") from None
    if not isinstance(data, dict):
        raise Refused(422, "not_an_object", "The request body must be a JSON object with the arguments.")
    if _depth_exceeds(data, MAX_DEPTH):
        raise _too_deep()
    return data


def _too_deep() -> Refused:
    message = f"The request body is nested deeper than {MAX_DEPTH} levels."
    return Refused(400, "too_deep", message, details={"maxDepth": MAX_DEPTH})


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("the number does not fit into a float")
    return number


def _depth_exceeds(data: object, limit: int) -> bool:
    """Check the depth level by level, so that deep data cannot exhaust the stack."""
    level: list[Any] = [data]
    for _ in range(limit):
        inner = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, dict | list)
        ]
        if not inner:
            return False
        level = inner
    return True


# ---- threads --------------------------------------------------------------------------------------------------------


class WorkerLimit:
    """Limits how many calls run in threads concurrently, and how many wait for a thread."""

    def __init__(self, concurrency: int) -> None:
        self._limiter = CapacityLimiter(concurrency)
        self._max_queued = QUEUED_PER_RUNNING * concurrency

    @property
    def in_use(self) -> int:
        """Return the number of calls that run or wait."""
        statistics = self._limiter.statistics()
        return statistics.borrowed_tokens + statistics.tasks_waiting

    async def run(self, call: Callable[[], T]) -> T:
        """Run a call in a thread. A cancelled caller stops waiting, and a call that has not started never starts.

        A running thread cannot be stopped. Its place stays taken until it ends, also when the caller was cancelled,
        which `anyio.to_thread` alone would not do.
        """
        if self._limiter.statistics().tasks_waiting >= self._max_queued:
            raise Refused(503, "busy", "The gateway is busy. Try again.", {"retry-after": "1"})
        started = threading.Lock()  # taken once: by the thread, or by the caller that stops waiting for it
        await self._limiter.acquire_on_behalf_of(started)
        loop = asyncio.get_running_loop()

        def release() -> None:
            self._limiter.release_on_behalf_of(started)

        def work() -> T:
            if not started.acquire(blocking=False):
                raise asyncio.CancelledError
            try:
                return call()
            finally:
                with suppress(RuntimeError):  # the event loop is closed, and the limit with it
                    loop.call_soon_threadsafe(release)

        try:
            return await in_thread(work)
        finally:
            if started.acquire(blocking=False):
                release()
