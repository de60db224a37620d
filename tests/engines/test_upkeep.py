"""When qmd takes in what changed; the clock stands still unless a test moves it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stubs import Clock

from memoriter.background import check_cancelled
from memoriter.engines.qmd.command import Counts
from memoriter.engines.qmd.upkeep import Schedule, Upkeep
from memoriter.errors import EngineBusy, EngineError

WAIT = 20.0  # long enough for any machine; no test waits it out


class Work:
    """What an upkeep does: counted, failing or held back on demand."""

    def __init__(self) -> None:
        self.updates = 0
        self.embeds = 0
        self.error: Exception | None = None
        self.embed_error: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Semaphore(0)

    def update(self, timeout_s: float) -> Counts:
        self.updates += 1
        self.entered.release()
        while not self.gate.wait(0.02):
            check_cancelled()
        if self.error:
            raise self.error
        return Counts(new=1)

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


Make = Callable[..., Upkeep]


@pytest.fixture
def make(tmp_path: Path, work: Work, clock: Clock) -> Iterator[Make]:
    made: list[Upkeep] = []

    def make_(embeds: bool = False, **schedule: float) -> Upkeep:
        times = Schedule(**{"debounce_s": 0.0, **schedule})
        made.append(Upkeep(tmp_path, work.update, work.embed if embeds else None, times, clock=clock))
        return made[-1]

    yield make_
    for upkeep in made:
        upkeep.close()


def test_what_was_taken_in_is_not_taken_in_again_not_even_by_a_new_process(make: Make, work: Work) -> None:
    first = make()
    assert first.catch_up("a", wait_s=WAIT) is None
    assert first.catch_up("a", wait_s=WAIT) is None
    assert make().catch_up("a", wait_s=WAIT) is None
    assert (work.updates, first.taken) == (1, "a")
    assert first.taken_at is not None


def test_a_change_is_taken_in_before_the_search_goes_on(make: Make, work: Work) -> None:
    upkeep = make()
    upkeep.catch_up("a", wait_s=WAIT)
    assert upkeep.catch_up("b", wait_s=WAIT) is None
    assert (work.updates, upkeep.taken) == (2, "b")


def test_a_search_waits_a_bounded_time_and_says_what_is_missing(make: Make, work: Work) -> None:
    upkeep = make()
    upkeep.catch_up("a", wait_s=WAIT)
    work.gate.clear()
    assert upkeep.catch_up("b", wait_s=0.0) == "qmd is still taking in what changed on disk."
    assert upkeep.catch_up("b", wait_s=0.0) == "qmd is still taking in what changed on disk."
    work.gate.set()
    assert upkeep.catch_up("b", wait_s=WAIT) is None
    assert work.updates == 2


def test_before_the_first_update_there_is_nothing_to_search_in(make: Make, work: Work) -> None:
    upkeep = make()
    work.gate.clear()
    with pytest.raises(EngineBusy, match="still building its first index"):
        upkeep.catch_up("a", wait_s=0.0)
    work.error = EngineError("qmd update ended with status 1.")
    work.gate.set()
    with pytest.raises(EngineError, match="qmd update ended with status 1"):
        upkeep.catch_up("a", wait_s=WAIT)
    with pytest.raises(EngineError, match="failed and is tried again later"):
        upkeep.catch_up("a", wait_s=WAIT)


def test_changes_in_quick_succession_are_debounced_but_announced_ones_are_not(
    make: Make, work: Work, clock: Clock
) -> None:
    upkeep = make(debounce_s=5.0)
    upkeep.catch_up("a", wait_s=WAIT)
    clock.now += 4
    assert upkeep.catch_up("b", wait_s=WAIT) == "What changed within the last moment is not taken in yet."
    assert upkeep.catch_up("b", wait_s=WAIT, announced=True) is None
    clock.now += 5
    assert upkeep.catch_up("c", wait_s=WAIT) is None
    assert work.updates == 3


def test_failures_are_tried_again_later_and_later_and_logged_once(
    make: Make, work: Work, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    upkeep = make()
    upkeep.catch_up("a", wait_s=WAIT)
    work.error = EngineError("the disk is full.")
    tries = []
    with caplog.at_level(logging.INFO, "memoriter"):
        for minute in range(20):
            before = work.updates
            upkeep.catch_up("b", wait_s=WAIT, announced=True)
            if work.updates > before:
                tries.append(minute)
            clock.now += 60
    assert tries == [0, 1, 3, 7, 15]
    assert [record.getMessage() for record in caplog.records] == [
        "qmd's upkeep failed and is tried again in 60 s: the disk is full."
    ]
    assert upkeep.error == "the disk is full."
    work.error = None
    clock.now += 3600
    assert upkeep.catch_up("b", wait_s=WAIT) is None
    assert upkeep.error is None


def test_an_old_update_is_renewed_without_anybody_waiting(make: Make, work: Work, clock: Clock) -> None:
    upkeep = make(interval_s=300)
    upkeep.catch_up("a", wait_s=WAIT)
    clock.now += 299
    upkeep.tick("a")
    assert work.updates == 1
    clock.now += 1
    assert upkeep.catch_up("a", wait_s=0.0) is None
    assert work.entered.acquire(timeout=WAIT)
    assert work.entered.acquire(timeout=WAIT)
    assert work.updates == 2


def test_started_it_updates_by_itself(make: Make, work: Work) -> None:
    upkeep = make()
    upkeep.start(lambda: "a")
    assert work.entered.acquire(timeout=WAIT)
    upkeep.close()
    assert work.updates == 1


def test_by_hand_it_updates_whatever_the_schedule_says(make: Make, work: Work) -> None:
    upkeep = make(debounce_s=100.0)
    assert upkeep.run("a").counts == Counts(new=1)
    assert upkeep.run("a").counts == Counts(new=1)
    work.error = EngineError("no.")
    assert str(upkeep.run("a").error) == "no."
    assert work.updates == 3


def test_two_processes_do_not_update_at_once(make: Make, work: Work) -> None:
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
    upkeep = make(embeds=True)
    upkeep.run("a")
    upkeep.close()
    assert work.embeds == 1
    work.embed_error = EngineError("out of memory.")
    upkeep = make(embeds=True)
    for _ in range(3):
        upkeep.run("a")
        _settled(upkeep)
        clock.now += 30
    assert work.embeds == 3
    assert upkeep.error == "out of memory."


def _settled(upkeep: Upkeep) -> None:
    for thread in list(upkeep._threads):
        thread.join(WAIT)


def test_a_mistake_of_our_own_is_an_error_like_any_other(make: Make, work: Work) -> None:
    upkeep = make()
    upkeep.catch_up("a", wait_s=WAIT)
    work.error = ValueError("surprise")
    assert upkeep.catch_up("b", wait_s=WAIT) == (
        "qmd could not take in what changed on disk: ValueError: surprise"
    )


def test_an_update_for_an_earlier_state_is_not_mistaken_for_ours(make: Make, work: Work) -> None:
    upkeep = make()
    upkeep.catch_up("a", wait_s=WAIT)
    work.gate.clear()
    upkeep.catch_up("b", wait_s=0.0)
    work.gate.set()
    assert upkeep.catch_up("c", wait_s=WAIT) is None
    assert upkeep.taken == "c"


def test_closing_stops_what_runs(make: Make, work: Work) -> None:
    upkeep = make()
    work.gate.clear()
    with pytest.raises(EngineBusy):
        upkeep.catch_up("a", wait_s=0.0)
    upkeep.close()
    assert [thread for thread in upkeep._threads if thread.is_alive()] == []
    assert upkeep.taken is None


@pytest.mark.parametrize("content", ["", "[]", "{", '{"signature": 7}', "\xff"])
def test_a_damaged_note_of_what_was_taken_in_means_taking_in_again(
    make: Make, work: Work, tmp_path: Path, content: str
) -> None:
    (tmp_path / "state.json").write_bytes(content.encode("latin-1"))
    upkeep = make()
    assert upkeep.catch_up("a", wait_s=WAIT) is None
    assert work.updates == 1
