"""The fallback engine: the primary answers while it works, the builtin engine otherwise, until the primary recovers."""

from __future__ import annotations

import concurrent.futures
import logging
import threading

import pytest
from stubs import Clock, Maker, StubEngine

from memoriter.errors import Cancelled, EngineBusy, EngineError
from memoriter.extensions.qmd.fallback import Cooldown, FallbackEngine
from memoriter.records import Query


class Pair:
    """A fallback engine and its parts."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.qmd, self.builtin = Maker("qmd"), Maker("local")
        self.engine = FallbackEngine(
            self.qmd,
            self.builtin,
            cooldown=Cooldown(60, 600),
            clock=self.clock,
        )
        self.engine.open_primary()

    @property
    def primary(self) -> StubEngine:
        return self.qmd.created[-1]

    def fail(self) -> None:
        self.primary.error = EngineError("qmd search ended with status 1.")
        self.engine.search(Query("x"))


@pytest.fixture
def pair() -> Pair:
    return Pair()


def test_the_primary_answers_and_the_builtin_engine_is_not_created(pair: Pair) -> None:
    answer = pair.engine.search(Query("x"))
    assert (answer.provider, answer.fallback, answer.degraded) == ("qmd", False, None)
    assert pair.builtin.created == []
    assert pair.engine.status().backend == "qmd"


@pytest.mark.requirement("A3")
def test_a_failure_closes_the_primary_and_everything_goes_to_builtin(pair: Pair) -> None:
    pair.primary.error = EngineError("qmd search ended with status 1.")
    answer = pair.engine.search(Query("x"))
    assert (answer.provider, answer.fallback) == ("local", True)
    assert answer.degraded == (
        "The builtin engine answered, because qmd could not: qmd search ended with status 1."
    )
    assert pair.engine.primary_failed
    assert pair.engine.last_error == "qmd search ended with status 1."
    assert (pair.primary.closed, pair.engine.primary_failed) == (1, True)
    assert pair.engine.read_file("a.md").text == "local"
    assert pair.engine.sync().degraded == "local"
    assert len(pair.builtin.created) == 1


def test_the_primary_is_not_tried_during_the_cooldown(pair: Pair) -> None:
    pair.fail()
    pair.clock.now += 59
    assert pair.engine.search(Query("x")).provider == "local"
    assert len(pair.qmd.created) == 1


@pytest.mark.requirement("A3", "X4")
def test_a_repaired_primary_answers_again_after_the_cooldown(pair: Pair) -> None:
    pair.fail()
    pair.clock.now += 60
    answer = pair.engine.search(Query("x"))
    assert (answer.provider, answer.fallback, answer.degraded) == ("qmd", False, None)
    assert not pair.engine.primary_failed
    assert pair.engine.search(Query("x")).provider == "qmd"
    assert len(pair.qmd.created) == 2
    assert pair.engine.status().fallback is False


def test_the_cooldown_grows_with_each_failure(pair: Pair) -> None:
    pair.fail()
    pair.qmd.error = EngineError("the program 'qmd' is not on the PATH.")
    tries = []
    for _ in range(40):
        before = pair.engine.retry_at
        pair.clock.now += 60
        assert pair.engine.search(Query("x")).fallback
        if pair.engine.retry_at != before:
            tries.append(pair.engine.retry_at - pair.clock.now)
    assert tries == [120, 240, 480, 600, 600, 600]
    assert pair.engine.last_error == "the program 'qmd' is not on the PATH."


def test_status_names_the_active_engine_the_error_and_the_next_attempt(pair: Pair) -> None:
    pair.fail()
    pair.clock.now += 10
    status = pair.engine.status()
    assert (status.backend, status.fallback) == ("local", True)
    assert status.degraded == "qmd failed, the builtin engine answers: qmd search ended with status 1."
    assert status.details == {
        "primary": "qmd",
        "last_error": "qmd search ended with status 1.",
        "retry_in_s": 50,
    }
    assert pair.engine.probe_vector() == "qmd failed: qmd search ended with status 1."


def test_one_switch_logs_one_warning(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "memoriter"):
        pair.fail()
        for _ in range(5):
            pair.engine.search(Query("x"))
    assert [record.getMessage() for record in caplog.records] == [
        "qmd failed, the builtin engine answers for at least 60 s: qmd search ended with status 1."
    ]


@pytest.mark.parametrize(
    "cancelled", [Cancelled("The caller gave up."), concurrent.futures.CancelledError(), KeyboardInterrupt()]
)
def test_a_cancelled_search_is_not_a_failure(pair: Pair, cancelled: BaseException) -> None:
    pair.primary.error = cancelled
    with pytest.raises(type(cancelled)):
        pair.engine.search(Query("x"))
    pair.primary.error = None
    assert pair.engine.search(Query("x")).provider == "qmd"
    assert (pair.engine.switches, pair.primary.closed, pair.builtin.created) == (0, 0, [])


def test_after_a_cancelled_attempt_the_next_caller_tries_the_primary(pair: Pair) -> None:
    pair.fail()
    pair.clock.now += 60
    create = pair.engine._create_primary

    def cancelled_creation() -> StubEngine:
        engine = create()
        engine.error = Cancelled("The caller stopped waiting.")
        return engine

    pair.engine._create_primary = cancelled_creation
    with pytest.raises(Cancelled):
        pair.engine.search(Query("x"))
    pair.engine._create_primary = create
    assert pair.engine.search(Query("x")).provider == "qmd"


def test_a_busy_primary_is_kept(pair: Pair) -> None:
    pair.primary.error = EngineBusy("qmd is still building its first index.")
    answer = pair.engine.search(Query("x"))
    assert (answer.provider, answer.fallback) == ("local", True)
    assert "still building its first index" in (answer.degraded or "")
    pair.primary.error = None
    assert pair.engine.search(Query("x")).provider == "qmd"
    assert pair.engine.switches == 0


def test_a_primary_that_is_too_busy_to_be_created_extends_the_cooldown(pair: Pair) -> None:
    pair.fail()
    pair.qmd.error = EngineBusy("qmd is locked by another program.")
    pair.clock.now += 60
    answer = pair.engine.search(Query("x"))
    assert (answer.provider, pair.engine.last_error) == ("local", "qmd is locked by another program.")
    assert pair.engine.retry_at == pair.clock.now + 120


def test_an_unexpected_exception_of_the_primary_is_a_failure(pair: Pair) -> None:
    pair.primary.error = KeyError("snippet")
    assert pair.engine.search(Query("x")).provider == "local"
    assert pair.engine.last_error == "'snippet'"


def test_if_both_engines_fail_the_answer_has_both_errors(pair: Pair) -> None:
    pair.primary.error = EngineError("qmd is gone.")
    pair.builtin.error = OSError("No space left on device")
    answer = pair.engine.search(Query("x"))
    assert (answer.hits, answer.provider, answer.fallback) == ((), "none", True)
    assert answer.degraded == (
        "Neither qmd nor the builtin engine can answer: qmd is gone. No space left on device"
    )
    pair.builtin.error = None
    assert pair.engine.search(Query("x")).provider == "local"


@pytest.mark.requirement("A3")
def test_close_closes_both_engines_for_good(pair: Pair) -> None:
    pair.fail()
    pair.clock.now += 60
    pair.engine.search(Query("x"))
    pair.engine.close()
    pair.engine.close()
    assert [engine.closed for engine in (*pair.qmd.created, *pair.builtin.created)] == [1, 1, 1]
    assert pair.engine.share() is None
    assert pair.engine.share() is None
    answer = pair.engine.search(Query("x"))
    assert (answer.hits, answer.degraded) == (
        (),
        "Neither qmd nor the builtin engine can answer: qmd search ended with status 1. This memory is closed.",
    )


def test_a_shared_engine_is_closed_by_its_last_holder(pair: Pair) -> None:
    assert pair.engine.share() is pair.engine
    pair.engine.close()
    assert pair.engine.search(Query("x")).provider == "qmd"
    pair.engine.close()
    assert pair.primary.closed == 1


def test_a_change_is_marked_for_both_engines(pair: Pair) -> None:
    pair.fail()
    pair.clock.now += 60
    pair.engine.search(Query("x"))
    pair.engine.mark_changed()
    assert (pair.primary.marked, pair.builtin.created[0].marked) == (1, 1)


def test_purge_reaches_the_builtin_engine_only_if_it_is_open(pair: Pair) -> None:
    pair.engine.purge()
    assert pair.builtin.created == []
    pair.fail()
    pair.engine.purge()
    assert [engine.purged for engine in (*pair.qmd.created, *pair.builtin.created)] == [0, 1]


def test_a_started_engine_is_started_again_after_recovery(pair: Pair) -> None:
    pair.engine.start()
    pair.fail()
    pair.clock.now += 60
    pair.engine.search(Query("x"))
    assert [engine.started for engine in pair.qmd.created] == [1, 1]


def test_eight_threads_that_see_the_failure_switch_once(pair: Pair) -> None:
    meeting = threading.Barrier(8, timeout=120)
    pair.primary.before_search = meeting.wait
    pair.primary.error = EngineError("qmd was killed.")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: pair.engine.search(Query("x")), range(8)))
    assert {(answer.provider, answer.fallback) for answer in answers} == {("local", True)}
    assert (pair.engine.switches, pair.primary.closed) == (1, 1)
    assert len(pair.builtin.created) == 1
    assert pair.builtin.created[0].searches == 8


def test_eight_threads_create_one_new_primary_after_the_cooldown(pair: Pair) -> None:
    pair.fail()
    pair.clock.now += 60
    create, others_answered = pair.engine._create_primary, threading.Event()

    def slow() -> StubEngine:
        others_answered.wait(20)  # until the other seven threads have answers
        return create()

    pair.engine._create_primary = slow
    answered = threading.Semaphore(0)

    def ask(_: int) -> str:
        provider = pair.engine.search(Query("x")).provider
        answered.release()
        return provider

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(ask, number) for number in range(8)]
        for _ in range(7):
            assert answered.acquire(timeout=120)
        others_answered.set()
        providers = sorted(future.result() for future in asked)
    assert providers == ["local"] * 7 + ["qmd"]
    assert len(pair.qmd.created) == 2
