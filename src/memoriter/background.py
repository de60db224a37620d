"""Threads on which one handler's calls run, each awaited for so long and no longer.

A call cannot be stopped, so one that is late goes on, and its result is nobody's. A lane has few threads and a bounded
queue: however often somebody is late, there are never more threads and more calls waiting than that. While every
thread is held by a call that is late, the lane is stuck, and nobody needs to wait to learn so.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_current: contextvars.ContextVar[Call[object] | None] = contextvars.ContextVar("memoriter_call", default=None)


def nobody_waits() -> bool:
    """Whether the one who made the call that runs here has given up waiting for it."""
    call = _current.get()
    return call is not None and call.given_up


class Call(Generic[T]):
    """One call on its way."""

    def __init__(self, run: Callable[[], T]) -> None:
        self._run = run
        self._context = contextvars.copy_context()  # traces and the like go with the call into the thread
        self._done = threading.Event()
        self._result: T | None = None
        self._error: BaseException | None = None
        self.given_up = False  #: nobody waits for its result any more

    def run(self) -> None:
        """Do it, in the lane's thread."""
        try:
            self._result = self._context.run(self._marked)
        except BaseException as error:  # noqa: BLE001  raised again by whoever waits; `sys.exit` ends no lane
            self._error = error
        self._done.set()

    def _marked(self) -> T:
        _current.set(self)  # type: ignore[arg-type]
        return self._run()

    def result(self, until: float) -> T:
        """What came of it; raises what it raised, or `TimeoutError` at this time of the monotonic clock."""
        if not self._done.wait(max(0.0, until - time.monotonic())):
            self.given_up = True
            raise TimeoutError
        if isinstance(self._error, Exception):
            raise self._error
        if self._error is not None:
            raise RuntimeError(f"it raised {type(self._error).__name__}")
        return self._result  # type: ignore[return-value]


class Lane:
    """Runs calls in their order. ``keep``: also those that nobody waits for when their turn comes."""

    def __init__(self, name: str, *, threads: int, room: int, keep: bool) -> None:
        self._name = name
        self._most, self._room, self._keep = threads, room, keep
        self._waiting = deque[Call[object]]()
        self._running = list[Call[object]]()
        self._threads = list[threading.Thread]()
        self._changed = threading.Condition()
        self._closed = False

    @property
    def stuck(self) -> bool:
        """Whether every thread is held by a call that is late."""
        with self._changed:
            return len([call for call in self._running if call.given_up]) >= self._most

    def put(self, call: Call[T]) -> bool:
        """Let the call run when its turn comes; False when there is no room for it."""
        with self._changed:
            if self._closed or len(self._waiting) >= self._room:
                return False
            self._waiting.append(call)  # type: ignore[arg-type]
            if len(self._threads) < min(self._most, len(self._running) + len(self._waiting)):
                thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._threads.append(thread)
                thread.start()
            self._changed.notify()
        return True

    def close(self, until: float) -> int:
        """Take no more calls and wait for those that are there; how many are not done by this time."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        with self._changed:
            return len(self._waiting) + len(self._running)

    def _work(self) -> None:
        while (call := self._next()) is not None:
            if self._keep or not call.given_up:
                call.run()
            with self._changed:
                self._running.remove(call)

    def _next(self) -> Call[object] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if not self._waiting:
                return None
            call = self._waiting.popleft()
            self._running.append(call)
            return call
