"""Automatic syncs: the schedule over events and a clock that the test moves (B8, E2)."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoriter.errors import StoreLocked
from memoriter.index.schedule import MAX_DELAYS, Delays, Growth, Refresher, Schedule


@pytest.mark.requirement("B8", "E2")
def test_notes_are_indexed_after_a_quiet_moment() -> None:
    schedule = Schedule(Delays())
    assert schedule.next() is None
    schedule.notes_changed(100.0)
    schedule.notes_changed(101.0)
    assert schedule.next() == (102.5, "notes")
    schedule.sync_started(102.5)
    assert schedule.next() is None


def test_a_folder_that_is_never_quiet_is_indexed_after_a_maximum_delay() -> None:
    schedule = Schedule(Delays(notes_s=1.5))
    for step in range(1000):
        schedule.notes_changed(100 + step * 0.1)
    assert schedule.next() == (100 + MAX_DELAYS * 1.5, "notes")


@pytest.mark.requirement("B8")
def test_a_transcript_is_indexed_after_enough_new_bytes() -> None:
    schedule = Schedule(Delays())
    schedule.session_grew("a", 99_999, 3, 10.0)
    assert schedule.next() is None
    schedule.session_grew("b", 99_999, 3, 10.0)
    assert schedule.next() is None, "two that grew a little are not one that grew much"
    schedule.session_grew("a", 1, 0, 20.0)
    assert schedule.next() == (25.0, "sessions")
    schedule.session_grew("a", 10, 1, 22.0)
    assert schedule.next() == (27.0, "sessions")
    schedule.sync_started(27.0)
    schedule.session_grew("a", 50_000, 3, 30.0)
    assert schedule.next() is None


@pytest.mark.requirement("B8")
def test_a_transcript_is_indexed_after_enough_new_messages() -> None:
    schedule = Schedule(Delays())
    for number in range(49):
        schedule.session_grew("a", 10, 1, float(number))
    assert schedule.next() is None
    schedule.session_grew("a", 10, 1, 49.0)
    assert schedule.next() == (54.0, "sessions")


@pytest.mark.requirement("B8")
def test_the_interval_counts_from_the_last_sync() -> None:
    schedule = Schedule(Delays(interval_s=300), now=1000.0)
    assert schedule.next() == (1300.0, "interval")
    schedule.notes_changed(1100.0)
    assert schedule.next() == (1101.5, "notes")
    schedule.sync_started(1101.5)
    assert schedule.next() == (1401.5, "interval")


@given(st.lists(st.tuples(st.sampled_from("nab"), st.floats(0, 3), st.integers(0, 60_000)), max_size=60))
def test_every_change_is_synced_within_a_bounded_time(
    events: list[tuple[str, float, int]],
) -> None:
    delays, now = Delays(), 0.0
    schedule = Schedule(delays)
    grown, dirty_since = {"a": 0, "b": 0}, None
    for kind, pause, size in events:
        now += pause
        planned = schedule.next()
        if planned and planned[0] <= now:
            schedule.sync_started(now)
            grown, dirty_since = {"a": 0, "b": 0}, None
        if kind == "n":
            schedule.notes_changed(now)
        else:
            schedule.session_grew(kind, size, 0, now)
            grown[kind] += size
        if kind == "n" or max(grown.values()) >= delays.delta_bytes:
            dirty_since = now if dirty_since is None else dirty_since
            planned = schedule.next()
            assert planned
            assert planned[0] <= dirty_since + MAX_DELAYS * delays.sessions_s


# ---- how much a transcript grew -------------------------------------------------------------------------------


def test_growth_is_counted_in_bytes_and_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\ntwo\n")
    growth = Growth(1000)
    growth.begin([(str(path), 4)])
    assert growth.of(str(path)) == (4, 1)
    assert growth.of(str(path)) == (0, 0)
    path.write_bytes(b"x\n")
    assert growth.of(str(path)) == (2, 1), "cut: all of it is new"
    path.write_bytes(b"x\n" * 1000)
    assert growth.of(str(path)) == (1998, 0), "enough by its bytes: its lines need not be counted"
    path.unlink()
    assert growth.of(str(path)) == (1000, 0)


# ---- the thread -----------------------------------------------------------------------------------------------

QUICK = Delays(notes_s=0.0, sessions_s=0.0, delta_bytes=1)


def test_the_refresher_syncs_with_a_reason_until_it_is_stopped() -> None:
    reasons: list[str] = []
    synced = threading.Event()

    def sync(reason: str) -> None:
        reasons.append(reason)
        synced.set()

    refresher = Refresher(Schedule(QUICK), sync)
    refresher.start()
    refresher.notes_changed()
    assert synced.wait(120)
    synced.clear()
    refresher.session_grew("a", 5, 1)
    assert synced.wait(120)
    refresher.stop()
    assert reasons == ["notes", "sessions"]
    assert not [thread for thread in threading.enumerate() if thread.name == "memoriter-refresh"]


def test_a_failed_sync_does_not_stop_the_refresher() -> None:
    calls = threading.Semaphore(0)
    failures: list[Exception] = [StoreLocked("busy"), ValueError("a surprise")]

    def sync(reason: str) -> None:
        calls.release()
        if failures:
            raise failures.pop(0)

    refresher = Refresher(Schedule(QUICK), sync)
    refresher.start()
    for _ in range(3):
        refresher.notes_changed()
        assert calls.acquire(timeout=120)
    refresher.stop()


def test_stop_waits_for_a_running_sync() -> None:
    begun, release, done = threading.Event(), threading.Event(), threading.Event()

    def sync(reason: str) -> None:
        begun.set()
        release.wait(10)
        done.set()

    refresher = Refresher(Schedule(QUICK), sync)
    refresher.start()
    refresher.notes_changed()
    assert begun.wait(120)
    release.set()
    refresher.stop()
    assert done.is_set()
