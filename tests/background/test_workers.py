"""Background workers: bounded threads, deadlines, order, delays, cancellation and closing."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoriter.background import Rejected, Workers, cancellable, check_cancelled, is_cancelled
from memoriter.errors import Cancelled

NAME = "memoriter-test-workers"


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Blocks slow calls; opened at the end, so that no thread outlives its test."""
    event = threading.Event()
    yield event
    event.set()


def threads_of(name: str) -> int:
    return sum(thread.name == name for thread in threading.enumerate())


def until(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    pause = threading.Event()
    end = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < end:
        pause.wait(0.005)
    return holds


def test_a_task_returns_what_the_call_returned() -> None:
    workers = Workers(NAME)
    task = workers.submit(lambda: 6 * 7)
    assert task.wait(120)
    assert task.result() == 42
    assert workers.close(120) == 0


def test_a_task_raises_what_the_call_raised() -> None:
    workers = Workers(NAME)
    task = workers.submit(lambda: 1 // 0)
    assert task.wait(120)
    with pytest.raises(ZeroDivisionError):
        task.result()


def test_a_call_that_exits_does_not_end_the_thread_of_its_caller() -> None:
    def exits() -> None:
        raise SystemExit(3)

    workers = Workers(NAME)
    task = workers.submit(exits)
    assert task.wait(120)
    with pytest.raises(RuntimeError, match="it raised SystemExit"):
        task.result()


def test_threads_end_when_there_is_no_work() -> None:
    workers = Workers(NAME, threads=3)
    tasks = [workers.submit(lambda: None) for _ in range(9)]
    assert all(task.wait(120) for task in tasks)
    assert until(lambda: threads_of(NAME) == 0)
    assert workers.submit(lambda: "again").result(10) == "again"


def test_there_are_never_more_threads_than_allowed(gate: threading.Event) -> None:
    workers = Workers(NAME, threads=2)
    for _ in range(6):
        workers.submit(lambda: gate.wait(30))
    assert threads_of(NAME) == 2
    gate.set()
    assert workers.close(120) == 0


def test_a_full_queue_rejects_calls(gate: threading.Event) -> None:
    workers = Workers(NAME, queue=2)
    running = threading.Event()
    workers.submit(lambda: (running.set(), gate.wait(30)))
    assert running.wait(120)
    waiting = [workers.submit(lambda: None) for _ in range(2)]
    with pytest.raises(Rejected):
        workers.submit(lambda: None)
    waiting[0].cancel()
    workers.submit(lambda: None)  # a cancelled call makes room


def test_closed_workers_reject_calls() -> None:
    workers = Workers(NAME)
    assert workers.close(1) == 0
    with pytest.raises(Rejected):
        workers.submit(lambda: None)


def test_an_abandoned_call_that_has_not_started_never_runs(gate: threading.Event) -> None:
    calls: list[str] = []
    workers = Workers(NAME)
    workers.submit(lambda: gate.wait(30))
    late = workers.submit(lambda: calls.append("late"))
    assert not late.wait(0)
    gate.set()
    assert workers.close(120) == 0
    assert calls == []


def test_a_running_call_can_ask_whether_it_was_abandoned(gate: threading.Event) -> None:
    states: list[bool] = []

    def call() -> None:
        states.append(is_cancelled())
        gate.wait(30)
        states.append(is_cancelled())
        check_cancelled()

    workers = Workers(NAME)
    task = workers.submit(call)
    assert until(lambda: bool(states))
    assert not task.wait(0)
    assert workers.stuck
    gate.set()
    with pytest.raises(Cancelled):
        task.result(10)
    assert states == [False, True]
    assert until(lambda: not workers.stuck)


def test_workers_that_keep_their_work_finish_abandoned_calls_in_order(gate: threading.Event) -> None:
    finished: list[tuple[int, bool]] = []

    def call(number: int) -> None:
        gate.wait(30)
        finished.append((number, is_cancelled()))

    workers = Workers(NAME, keep=True)
    for number in range(5):
        task = workers.submit(lambda number=number: call(number))  # type: ignore[misc]
        assert not task.wait(0)
    gate.set()
    assert workers.close(120) == 0
    assert finished == [(number, False) for number in range(5)]


def test_closing_reports_what_is_unfinished(gate: threading.Event) -> None:
    workers = Workers(NAME, keep=True)
    for _ in range(3):
        workers.submit(lambda: gate.wait(30))
    assert workers.close(0.01) == 3


def test_closing_with_cancel_drops_the_queue_and_tells_running_calls(gate: threading.Event) -> None:
    states: list[bool] = []
    running = threading.Event()

    def call() -> None:
        running.set()
        while not is_cancelled() and not gate.wait(0.01):
            pass
        states.append(is_cancelled())

    workers = Workers(NAME, keep=True)
    workers.submit(call)
    workers.submit(call)
    assert running.wait(120)
    assert workers.close(10, cancel=True) == 0
    assert states == [True]


def test_a_call_may_close_its_own_workers() -> None:
    workers = Workers(NAME)
    task = workers.submit(lambda: workers.close(120))
    assert task.result(5) == 1


def test_delayed_calls_run_when_they_are_due() -> None:
    order: list[str] = []
    now = [0.0]
    workers = Workers(NAME, clock=lambda: now[0])
    delayed = workers.submit(lambda: order.append("delayed"), delay_s=10)
    assert workers.submit(lambda: order.append("immediate")).wait(120)
    assert order == ["immediate"]
    now[0] = 10.0
    workers.submit(lambda: order.append("later"))
    assert delayed.wait(120)
    assert workers.close(120) == 0
    assert order == ["immediate", "delayed", "later"]


def test_closing_cancels_delayed_calls() -> None:
    workers = Workers(NAME)
    task = workers.submit(lambda: None, delay_s=3600)
    assert not workers.busy
    assert workers.close(120) == 0
    assert task.cancelled()
    assert threads_of(NAME) == 0


def test_a_call_can_repeat_itself() -> None:
    ticks = threading.Semaphore(0)
    workers = Workers(NAME)

    def tick() -> None:
        ticks.release()
        workers.submit(tick, delay_s=0.001)

    workers.submit(tick)
    for _ in range(3):
        assert ticks.acquire(timeout=120)
    assert workers.close(120) == 0


def test_the_context_of_the_caller_goes_with_the_call() -> None:
    trace: ContextVar[str] = ContextVar("trace", default="")
    trace.set("t-1")
    assert Workers(NAME).submit(trace.get).result(10) == "t-1"


def test_only_work_that_is_not_kept_is_cancelled_with_its_caller(gate: threading.Event) -> None:
    def call() -> bool:
        gate.wait(30)
        return is_cancelled()

    cancelled = threading.Event()
    with cancellable(cancelled):
        read = Workers(NAME).submit(call)
        kept = Workers(NAME, keep=True).submit(call)
    cancelled.set()
    gate.set()
    assert read.result(10) is True
    assert kept.result(10) is False


@pytest.mark.posix("fork")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_workers_can_be_used_after_a_fork(gate: threading.Event) -> None:
    workers = Workers(NAME)
    workers.submit(lambda: gate.wait(30))
    child = os.fork()
    if child == 0:
        try:
            os._exit(workers.submit(lambda: 7).result(10))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@settings(max_examples=40, deadline=None)
@given(
    calls=st.lists(st.booleans(), max_size=30),
    threads=st.integers(1, 4),
)
def test_every_call_that_is_not_cancelled_runs_exactly_once(calls: list[bool], threads: int) -> None:
    """Each boolean says whether the call is cancelled right after it was submitted."""
    ran: list[int] = []
    cancelled: list[int] = []
    workers = Workers(NAME, threads=threads)
    for number, cancel in enumerate(calls):
        task = workers.submit(lambda number=number: ran.append(number))  # type: ignore[misc]
        if cancel and task.cancel():
            cancelled.append(number)
    assert workers.close(120) == 0
    assert sorted([*ran, *cancelled]) == list(range(len(calls)))
