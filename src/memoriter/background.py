"""Work on background threads: bounded, cancellable, and waited for no longer than the caller chooses.

    workers = Workers("memoriter-example", threads=2)
    task = workers.submit(lambda: slow_call())
    if task.wait(5.0):
        print(task.result())
    workers.close(10.0)

A `Task` is a `concurrent.futures.Future`. This module starts its own threads, because those of `ThreadPoolExecutor`
keep the interpreter from exiting until the last call returns, and a provider or a plugin may never return. A thread
starts when there is work and ends when there is none for some time, so workers that are never closed leave no threads
behind.
"""

from __future__ import annotations

import contextvars
import heapq
import itertools
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from memoriter.errors import Cancelled, MemoriterError

T = TypeVar("T")

_cancel_events: contextvars.ContextVar[tuple[threading.Event, ...]]
_cancel_events = contextvars.ContextVar("memoriter_cancel_events", default=())


@contextmanager
def cancellable(event: threading.Event) -> Iterator[None]:
    """Within this context, setting the event cancels the work.

    A thread cannot be stopped, but it can ask `is_cancelled`, and an external program it waits for can be killed. The
    event travels with the context, so no signature in between has to pass it on.
    """
    token = _cancel_events.set((*_cancel_events.get(), event))
    try:
        yield
    finally:
        _cancel_events.reset(token)


def is_cancelled() -> bool:
    """Return whether the caller of the current work has stopped waiting."""
    return any(event.is_set() for event in _cancel_events.get())


def check_cancelled() -> None:
    """Raise `Cancelled` if the caller no longer waits."""
    if is_cancelled():
        raise Cancelled("The caller stopped waiting.")


class Rejected(MemoriterError):
    """The queue is full, or the workers are closed."""


class Task(Future[T], Generic[T]):
    """One call on a background thread. `result` raises its exception, so unattended calls log their failures."""

    def __init__(self, call: Callable[[], T], *, due: float, keep: bool) -> None:
        super().__init__()
        self.due = due
        #: The caller no longer waits for the result.
        self.abandoned = False
        self._call = call
        self._keep = keep
        self._cancel = threading.Event()
        # Traces and log context go with the call. Work that outlives its caller is not cancelled with the caller.
        self._context = contextvars.copy_context()
        inherited = () if keep else _cancel_events.get()
        self._context.run(_cancel_events.set, (*inherited, self._cancel))

    def wait(self, timeout_s: float) -> bool:
        """Wait until the call has ended. Return False, and abandon the call, when the time is up."""
        try:
            self.exception(max(0.0, timeout_s))
        except TimeoutError:
            self.abandon()
            return False
        except CancelledError:
            pass
        return True

    def abandon(self) -> None:
        """Stop waiting: cancel the call, unless it belongs to workers that keep abandoned work."""
        self.abandoned = True
        if not self._keep:
            self.stop()

    def stop(self) -> None:
        """Cancel the call; if it already runs, notify it through `is_cancelled`."""
        self._cancel.set()
        self.cancel()

    def run(self) -> None:
        """Make the call in the current thread."""
        if not self.set_running_or_notify_cancel():
            return
        try:
            self.set_result(self._context.run(self._call))
        except Exception as error:  # noqa: BLE001 - raised again by `result`
            self.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - `sys.exit` in a call must not end the caller
            self.set_exception(RuntimeError(f"it raised {type(error).__name__}"))


class Workers:
    """A few daemon threads over a bounded queue.

    Tasks start in the order in which they are due. ``keep``: abandoned tasks run to their end, for work that must not
    get lost; otherwise they are cancelled. ``linger_s``: an idle thread waits this long for more work, because starting
    one takes longer than a small call.
    """

    def __init__(
        self,
        name: str,
        *,
        threads: int = 1,
        queue: int = 256,
        keep: bool = False,
        linger_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._linger_s = linger_s
        self._released = 0
        self._max_threads, self._max_queue, self._keep = threads, queue, keep
        self._clock = clock
        self._order = itertools.count()
        self._closed = False
        self._reset()
        _all_workers.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._waiting = list[tuple[float, int, Task[Any]]]()
        self._running = list[Task[Any]]()
        self._threads = set[threading.Thread]()

    @property
    def stuck(self) -> bool:
        """Whether every thread is busy with an abandoned call."""
        with self._changed:
            return sum(task.abandoned for task in self._running) >= self._max_threads

    @property
    def busy(self) -> bool:
        """Whether a call is running or due."""
        with self._changed:
            now = self._clock()
            return bool(self._running) or any(
                due <= now and not task.done() for due, _, task in self._waiting
            )

    def submit(self, call: Callable[[], T], *, delay_s: float = 0.0) -> Task[T]:
        """Queue a call, to start after the delay; raise `Rejected` when the queue is full or closed.

        A call that repeats submits itself again before it returns.
        """
        task = Task(call, due=self._clock() + delay_s, keep=self._keep)
        with self._changed:
            self._waiting = [entry for entry in self._waiting if not entry[2].cancelled()]
            heapq.heapify(self._waiting)
            if self._closed or len(self._waiting) >= self._max_queue:
                raise Rejected(f"{self._name} is closed." if self._closed else f"{self._name} is busy.")
            heapq.heappush(self._waiting, (task.due, next(self._order), task))
            if len(self._threads) < min(self._max_threads, len(self._running) + len(self._waiting)):
                thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._threads.add(thread)
                thread.start()
            self._changed.notify_all()
        return task

    def release(self, timeout_s: float) -> None:
        """End idle threads, and wait for that. Later calls start new ones."""
        until = time.monotonic() + timeout_s
        with self._changed:
            self._released += 1
            self._changed.notify_all()
            threads = self._threads - {threading.current_thread()}
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))

    def close(self, timeout_s: float, *, cancel: bool = False) -> int:
        """Accept no more calls and wait for those that are due; return how many are unfinished after the timeout.

        Delayed calls are cancelled, and with ``cancel`` all others too.
        """
        until = time.monotonic() + timeout_s
        with self._changed:
            self._closed = True
            now = self._clock()
            for task in [entry[2] for entry in self._waiting if cancel or entry[0] > now]:
                task.stop()
            for task in self._running if cancel else ():
                task.stop()
            self._changed.notify_all()
            threads = self._threads - {threading.current_thread()}
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        with self._changed:
            return len(self._running) + sum(not entry[2].done() for entry in self._waiting)

    def _work(self) -> None:
        while (task := self._next()) is not None:
            task.run()
            with self._changed:
                self._running.remove(task)

    def _next(self) -> Task[Any] | None:
        """Wait for a task that is due; None when the queue is empty for long enough."""
        with self._changed:
            while self._waiting or self._linger():
                due, _, task = self._waiting[0]
                delay_s = due - self._clock()
                if delay_s > 0 and not task.cancelled():
                    self._changed.wait(delay_s)
                    continue
                heapq.heappop(self._waiting)
                if not task.cancelled():
                    self._running.append(task)
                    return task
            self._threads.discard(threading.current_thread())
            return None

    def _linger(self) -> bool:
        """Wait for more work for some time; return whether there is any."""
        if self._linger_s and not self._closed:
            released = self._released
            self._changed.wait_for(
                lambda: self._waiting or self._closed or self._released != released, self._linger_s
            )
        return bool(self._waiting)


_all_workers: weakref.WeakSet[Workers] = weakref.WeakSet()


def _reset_after_fork() -> None:
    """Forget the parent's threads and locks: a fork has the locks, but not the threads that would release them."""
    for workers in list(_all_workers):
        workers._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
