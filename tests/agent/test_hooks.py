"""The hook bus: whatever a handler does, the host gets an effect in time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from memoriter.agent import EVENTS, Effect, Event, HookBus, Moment
from memoriter.errors import StoreLocked

SOON = 0.05


@pytest.fixture
def bus() -> Iterator[HookBus]:
    made = HookBus()
    yield made
    made.close(0.0)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Blocks slow handlers; opened at the end, so that no thread outlives its test."""
    event = threading.Event()
    yield event
    event.set()


def until(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    pause = threading.Event()
    end = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < end:
        pause.wait(0.005)
    return holds


def hook_threads(name: str) -> int:
    return sum(thread.name.startswith(f"memoriter-hook-{name}") for thread in threading.enumerate())


def raising(error: BaseException) -> Callable[[Moment], Effect]:
    def handler(_: Moment) -> Effect:
        raise error

    return handler


def test_effects_are_joined_in_the_order_of_the_handlers(bus: HookBus) -> None:
    bus.on(
        "before_agent_start",
        lambda _: Effect("first", "r1", tools=("a", "b"), warnings=("w",)),
        name="one",
    )
    bus.on("before_agent_start", lambda _: None, name="two")
    bus.on(
        "before_agent_start",
        lambda moment: Effect(moment.prompt, "r2", tools=("b", "c"), warnings=("w", "x")),
        name="three",
    )
    effect = bus.emit(Moment("before_agent_start", prompt="third"))
    assert effect == Effect("first\n\nthird", "r1", ("a", "b", "c"), warnings=("w", "x"))
    assert effect.as_host() == {
        "prependContext": "first\n\nthird",
        "recallId": "r1",
        "tools": ["a", "b", "c"],
        "warnings": ["w", "x"],
    }


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_without_handlers_has_an_empty_effect(bus: HookBus, event: Event) -> None:
    effect = bus.emit(Moment(event))
    assert effect == Effect()
    assert effect.as_host() == {}


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (StoreLocked("the index is locked"), "two (agent_end) failed: the index is locked"),
        (
            OSError(28, "No space left on device"),
            "two (agent_end) failed: No space left on device",
        ),
        (
            PermissionError(13, "Permission denied", r"C:\notes\a.md"),
            r"two (agent_end) failed: Permission denied (C:\notes\a.md)",
        ),
        (
            OSError(18, "Invalid cross-device link", r"C:\it's.md", None, r"D:\b.md"),
            r"two (agent_end) failed: Invalid cross-device link (C:\it's.md, D:\b.md)",
        ),
        (
            ZeroDivisionError("division by zero"),
            "two (agent_end) failed: ZeroDivisionError: division by zero",
        ),
        (SystemExit(3), "two (agent_end) failed: RuntimeError: it raised SystemExit"),
        (KeyboardInterrupt(), "two (agent_end) failed: RuntimeError: it raised KeyboardInterrupt"),
    ],
)
def test_a_handler_that_raises_gives_a_warning_and_a_log_line_and_the_others_run(
    bus: HookBus, error: BaseException, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    for name, handler in (
        ("one", lambda _: Effect(tools=("a",))),
        ("two", raising(error)),
        ("three", lambda _: Effect(tools=("c",))),
    ):
        bus.on("agent_end", handler, name=name)
    for _ in range(2):  # and it can be asked again
        with caplog.at_level(logging.WARNING, "memoriter.agent"):
            assert bus.emit(Moment("agent_end")) == Effect(tools=("a", "c"), warnings=(sentence,))
        assert "two (agent_end) failed" in caplog.text


def test_a_result_that_is_not_an_effect_gives_a_warning(bus: HookBus) -> None:
    bus.on("agent_end", lambda _: "text", name="odd")  # type: ignore[arg-type, return-value]
    assert bus.emit(Moment("agent_end")).warnings == ("odd (agent_end) gave a str instead of an Effect.",)


def test_an_unknown_event_gives_a_one_line_error(bus: HookBus) -> None:
    known = f"Unknown event 'agent_begin'. Known events: {', '.join(EVENTS)}."
    with pytest.raises(ValueError, match=r"Unknown event 'agent_begin'"):
        bus.on("agent_begin", lambda _: None, name="odd")  # type: ignore[arg-type]
    assert bus.emit(Moment("agent_begin")) == Effect(warnings=(known,))  # type: ignore[arg-type]


def test_a_late_result_is_dropped_and_the_others_are_used(bus: HookBus, gate: threading.Event) -> None:
    def slow(_: Moment) -> Effect:
        gate.wait(30)
        return Effect("too late")

    bus.on("before_agent_start", slow, name="slow", deadline_s=SOON)
    bus.on("before_agent_start", lambda _: Effect("in time"), name="quick")
    assert bus.emit(Moment("before_agent_start")) == Effect(
        "in time",
        warnings=("slow (before_agent_start) took longer than 0.05 s, and its result was dropped.",),
    )


def test_a_hanging_handler_uses_few_threads_and_is_then_skipped(bus: HookBus, gate: threading.Event) -> None:
    def hangs(_: Moment) -> None:
        gate.wait(30)

    bus.on("before_agent_start", hangs, name="hangs", deadline_s=SOON)
    warnings = [bus.emit(Moment("before_agent_start")).warnings[0] for _ in range(12)]
    late = "hangs (before_agent_start) took longer than 0.05 s, and its result was dropped."
    stuck = "hangs (before_agent_start) is still busy with earlier moments and was skipped."
    waited = warnings.count(late)
    assert 4 <= waited < 12  # four, and one more for each that the machine was too busy to begin in time
    assert warnings == [late] * waited + [stuck] * (12 - waited)
    assert hook_threads("hangs") == 4
    gate.set()
    assert until(lambda: bus.emit(Moment("before_agent_start")) == Effect())


def test_late_writes_are_finished_in_order(bus: HookBus, gate: threading.Event) -> None:
    kept: list[str] = []

    def keeps(moment: Moment) -> Effect:
        gate.wait(30)
        kept.append(f"{moment.event} {moment.session}")
        return Effect(tools=("late",))

    bus.on("agent_end", keeps, name="keeps", deadline_s=SOON)
    bus.on("session_end", keeps, name="keeps", deadline_s=SOON)
    warnings = [bus.emit(Moment("agent_end", session=str(number))).warnings for number in range(20)]
    warnings += [bus.emit(Moment("session_end", session="last")).warnings]
    late = ("keeps (agent_end) took longer than 0.05 s, and continues in the background.",)
    queued = "is still busy with earlier moments and will process this one after them."
    waited = warnings.count(late)
    assert warnings == [
        *[late] * waited,
        *[(f"keeps (agent_end) {queued}",)] * (20 - waited),
        (f"keeps (session_end) {queued}",),
    ]
    assert waited
    assert hook_threads("keeps") == 1
    gate.set()
    assert bus.close() == 0
    assert kept == [*(f"agent_end {number}" for number in range(20)), "session_end last"]


def test_the_queue_is_bounded(bus: HookBus, gate: threading.Event) -> None:
    bus.on("agent_end", lambda _: gate.wait(30) and None, name="slow", deadline_s=SOON)
    warnings = [bus.emit(Moment("agent_end")).warnings[0] for _ in range(300)]
    assert warnings[-1] == "slow (agent_end) has a full queue or is closed, and was skipped."
    assert sum("was skipped" in sentence for sentence in warnings) == 300 - 1 - 256


def test_closing_reports_unfinished_moments(
    bus: HookBus, gate: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    bus.on("agent_end", lambda _: gate.wait(30) and None, name="slow", deadline_s=SOON)
    bus.emit(Moment("agent_end"))
    bus.emit(Moment("agent_end"))
    assert bus.close(SOON) == 2
    assert "slow had not finished 2 moments when the agent was closed" in caplog.text
    assert bus.emit(Moment("agent_end")).warnings


def test_sessions_are_served_in_parallel(bus: HookBus) -> None:
    together = threading.Barrier(4, timeout=120)

    def handler(moment: Moment) -> Effect:
        together.wait()
        return Effect(moment.session)

    bus.on("before_agent_start", handler, name="side by side")
    answers: dict[str, str] = {}

    def ask(session: str) -> None:
        answers[session] = bus.emit(Moment("before_agent_start", session=session)).prepend_context

    threads = [threading.Thread(target=ask, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {str(number): str(number) for number in range(4)}


def test_handlers_run_in_the_context_of_the_caller(bus: HookBus) -> None:
    from contextvars import ContextVar

    trace: ContextVar[str] = ContextVar("trace", default="")
    bus.on("before_agent_start", lambda _: Effect(trace.get()), name="traced")
    trace.set("t-1")
    assert bus.emit(Moment("before_agent_start")).prepend_context == "t-1"
