"""When qmd updates its index. The clock moves only when a test moves it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stubs import Clock

from memoriter.background import check_cancelled
from memoriter.errors import EngineBusy, EngineError
from memoriter.extensions.qmd.command import UpdateCounts
from memoriter.extensions.qmd.updater import Updater, UpdateSchedule

WAIT = 20.0  # long enough for any machine; no test waits that long


class Work:
    """The work of an updater: counted, and failing or blocked on demand."""

    def __init__(self) -> None:
        self.updates = 0
        self.embeds = 0
        self.error: Exception | None = None
        self.embed_error: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Semaphore(0)

    def update(self, timeout_s: float) -> UpdateCounts:
        self.updates += 1
        self.entered.release()
        while not self.gate.wait(0.02):
            check_cancelled()
        if self.error:
            raise self.error
        return UpdateCounts(new=1)

    def embed(self, timeout_s: float) -> None:
        self.embeds += 1
        if self.embed_error:
            raise self.embed_error


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def clock() -> Clock:
    return Clock()


Make = Callable[..., Updater]


@pytest.fixture
def make(tmp_path: Path, work: Work, clock: Clock) -> Iterator[Make]:
    updaters: list[Updater] = []

    def make_(embeds: bool = False, **schedule: float) -> Updater:
        times = UpdateSchedule(**{"debounce_s": 0.0, **schedule})
        updaters.append(Updater(tmp_path, work.update, work.embed if embeds else None, times, clock=clock))
        return updaters[-1]

    yield make_
    for updater in updaters:
        updater.close()


def test_an_indexed_state_is_not_indexed_again_by_a_new_process(make: Make, work: Work) -> None:
    first = make()
    assert first.catch_up("a", wait_s=WAIT) is None
    assert first.catch_up("a", wait_s=WAIT) is None
    assert make().catch_up("a", wait_s=WAIT) is None
    assert (work.updates, first.indexed) == (1, "a")
    assert first.indexed_at is not None


def test_a_change_is_indexed_before_the_search(make: Make, work: Work) -> None:
    updater = make()
    updater.catch_up("a", wait_s=WAIT)
    assert updater.catch_up("b", wait_s=WAIT) is None
    assert (work.updates, updater.indexed) == (2, "b")


def test_a_search_waits_a_limited_time_and_says_what_is_missing(make: Make, work: Work) -> None:
    updater = make()
    updater.catch_up("a", wait_s=WAIT)
    work.gate.clear()
    assert updater.catch_up("b", wait_s=0.0) == "qmd is still indexing recent changes."
    assert updater.catch_up("b", wait_s=0.0) == "qmd is still indexing recent changes."
    work.gate.set()
    assert updater.catch_up("b", wait_s=WAIT) is None
    assert work.updates == 2


def test_there_is_nothing_to_search_before_the_first_update(make: Make, work: Work) -> None:
    updater = make()
    work.gate.clear()
    with pytest.raises(EngineBusy, match="still building its first index"):
        updater.catch_up("a", wait_s=0.0)
    work.error = EngineError("qmd update ended with status 1.")
    work.gate.set()
    with pytest.raises(EngineError, match="qmd update ended with status 1"):
        updater.catch_up("a", wait_s=WAIT)
    with pytest.raises(EngineError, match="failed and will be retried"):
        updater.catch_up("a", wait_s=WAIT)


def test_quick_changes_are_debounced_but_marked_ones_are_not(make: Make, work: Work, clock: Clock) -> None:
    updater = make(debounce_s=5.0)
    updater.catch_up("a", wait_s=WAIT)
    clock.now += 4
    assert updater.catch_up("b", wait_s=WAIT) == "The most recent changes are not indexed yet."
    assert updater.catch_up("b", wait_s=WAIT, marked=True) is None
    clock.now += 5
    assert updater.catch_up("c", wait_s=WAIT) is None
    assert work.updates == 3


def test_failures_are_retried_with_growing_pauses_and_logged_once(
    make: Make, work: Work, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    updater = make()
    updater.catch_up("a", wait_s=WAIT)
    work.error = EngineError("the disk is full.")
    tries = []
    with caplog.at_level(logging.INFO, "memoriter"):
        for minute in range(20):
            before = work.updates
            updater.catch_up("b", wait_s=WAIT, marked=True)
            if work.updates > before:
                tries.append(minute)
            clock.now += 60
    assert tries == [0, 1, 3, 7, 15]
    assert [record.getMessage() for record in caplog.records] == [
        "qmd failed and will be retried in 60 s: the disk is full."
    ]
    assert updater.error == "the disk is full."
    work.error = None
    clock.now += 3600
    assert updater.catch_up("b", wait_s=WAIT) is None
    assert updater.error is None


def test_an_old_update_is_repeated_without_a_search_waiting(make: Make, work: Work, clock: Clock) -> None:
    updater = make(interval_s=300)
    updater.catch_up("a", wait_s=WAIT)
    clock.now += 299
    updater.tick("a")
    assert work.updates == 1
    clock.now += 1
    assert updater.catch_up("a", wait_s=0.0) is None
    assert work.entered.acquire(timeout=WAIT)
    assert work.entered.acquire(timeout=WAIT)
    assert work.updates == 2


def test_a_started_updater_updates_automatically(make: Make, work: Work) -> None:
    updater = make()
    updater.start(lambda: "a")
    assert work.entered.acquire(timeout=WAIT)
    updater.close()
    assert work.updates == 1


def test_an_explicit_update_ignores_the_schedule(make: Make, work: Work) -> None:
    updater = make(debounce_s=100.0)
    assert updater.run("a").counts == UpdateCounts(new=1)
    assert updater.run("a").counts == UpdateCounts(new=1)
    work.error = EngineError("no.")
    assert str(updater.run("a").error) == "no."
    assert work.updates == 3


def test_two_processes_do_not_update_at_the_same_time(make: Make, work: Work) -> None:
    one, other = make(), make()
    work.gate.clear()
    with pytest.raises(EngineBusy):
        one.catch_up("a", wait_s=0.0)
    assert work.entered.acquire(timeout=WAIT)
    with pytest.raises(EngineBusy):
        other.catch_up("a", wait_s=0.0)
    work.gate.set()
    assert one.catch_up("a", wait_s=WAIT) is None
    assert other.catch_up("a", wait_s=WAIT) is None
    assert work.updates == 1


def test_vectors_are_computed_after_an_update_and_failures_back_off(
    make: Make, work: Work, clock: Clock
) -> None:
    updater = make(embeds=True)
    updater.run("a")
    updater.wait_for_embedding(WAIT)
    assert work.embeds == 1
    work.embed_error = EngineError("out of memory.")
    updater = make(embeds=True)
    for _ in range(3):
        updater.run("a")
        updater.wait_for_embedding(WAIT)
        clock.now += 30
    assert work.embeds == 3
    assert updater.error == "out of memory."


def test_an_unexpected_exception_is_reported_as_an_error(make: Make, work: Work) -> None:
    updater = make()
    updater.catch_up("a", wait_s=WAIT)
    work.error = ValueError("surprise")
    assert updater.catch_up("b", wait_s=WAIT) == ("qmd could not index recent changes: ValueError: surprise")


def test_an_update_of_an_earlier_state_is_not_enough(make: Make, work: Work) -> None:
    updater = make()
    updater.catch_up("a", wait_s=WAIT)
    work.gate.clear()
    updater.catch_up("b", wait_s=0.0)
    work.gate.set()
    assert updater.catch_up("c", wait_s=WAIT) is None
    assert updater.indexed == "c"


def test_close_stops_a_running_update(make: Make, work: Work) -> None:
    updater = make()
    work.gate.clear()
    with pytest.raises(EngineBusy):
        updater.catch_up("a", wait_s=0.0)
    updater.close()
    assert [thread for thread in threading.enumerate() if thread.name == "memoriter-qmd"] == []
    assert updater.indexed is None


@pytest.mark.parametrize("content", ["", "[]", "{", '{"signature": 7}', "\xff"])
def test_a_damaged_state_file_leads_to_an_update(
    make: Make, work: Work, tmp_path: Path, content: str
) -> None:
    (tmp_path / "state.json").write_bytes(content.encode("latin-1"))
    updater = make()
    assert updater.catch_up("a", wait_s=WAIT) is None
    assert work.updates == 1
