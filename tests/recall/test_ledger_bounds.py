"""The ledger is bounded by a number of recalls and by their age."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from opened_entries import open_entries

from memoriter import Memory
from memoriter.entries import Entries, EntryOptions
from memoriter.entries.context import CleanupOptions
from memoriter.entries.forgetting import cleanup_if_due
from memoriter.recall.inject import Injector
from memoriter.store.connection import value
from memoriter.testing import HashEmbedder, sample_workspace

DAY = 86_400.0


class Clock:
    def __init__(self) -> None:
        self.at = 1_000_000.0

    def __call__(self) -> float:
        self.at += 1
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_(tmp_path: Path, clock: Clock) -> Iterator[Callable[[CleanupOptions], Entries]]:
    collections: list[Entries] = []

    def opened(upkeep: CleanupOptions) -> Entries:
        entries = open_entries(
            tmp_path / "agent", HashEmbedder(), options=EntryOptions(cleanup=upkeep), clock=clock
        )
        collections.append(entries)
        return entries

    yield opened
    for entries in collections:
        entries.close()


def considered(entries: Entries) -> set[str]:
    """Return the recalls that have lines in the ledger."""
    with entries._context.store.database.read() as connection:
        return {str(row[0]) for row in connection.execute("select distinct recall_id from recalled")}


def test_a_full_ledger_drops_its_oldest_recalls_completely(
    open_: Callable[[CleanupOptions], Entries], clock: Clock
) -> None:
    entries = open_(CleanupOptions(ledger_recalls=32))
    entries.add("I drink green tea every morning", "user_preference")
    injector = Injector(entries, clock=clock)
    recall_ids = [injector.recall("which tea do I drink?").id for _ in range(33)]
    kept = [head.id for head in entries.recalls(limit=100).recalls]
    assert (
        kept == recall_ids[:-31:-1]
    )  # two more than necessary were deleted, so that not every write has to make room
    assert considered(entries) == set(kept)
    for _ in range(40):
        injector.recall("which tea do I drink?")
        assert entries.recalls(limit=100).total <= 32


def pass_days(days: int, entries: Entries, clock: Clock) -> None:
    """Advance the clock day by day. A clock that jumps is reported and deletes nothing."""
    for _ in range(days):
        clock.at += DAY
        cleanup_if_due(entries._context)


def test_recalls_are_deleted_after_their_retention_time(
    open_: Callable[[CleanupOptions], Entries], clock: Clock
) -> None:
    entries = open_(CleanupOptions(ledger_days=90))
    entries.add("I drink green tea every morning", "user_preference", importance=5)
    injector = Injector(entries, clock=clock)
    injector.recall("which tea do I drink?")
    pass_days(60, entries, clock)
    younger = injector.recall("which tea do I drink?").id
    pass_days(31, entries, clock)
    assert [head.id for head in entries.recalls(limit=100).recalls] == [younger]
    assert considered(entries) == {younger}


def test_maintenance_deletes_recalls_that_are_older_than_the_settings_allow(tmp_path: Path) -> None:
    workspace = sample_workspace(tmp_path / "notes")
    settings = {"cleanup.ledger_days": 30}
    home = tmp_path / "home"
    with Memory.open(workspace, home=home, overrides=settings, embedder=HashEmbedder()) as memory:
        memory.entries.add("I drink green tea every morning", "user_preference")
        recall_ids = [memory.recall("which tea do I drink?").id for _ in range(3)]
        assert [head.id for head in memory.entries.recalls(limit=100).recalls] == recall_ids[::-1]
        with memory.entries._context.store.database.write() as connection:
            connection.execute("update recalls set at = at - 31 * 86400 where id = ?", (recall_ids[1],))
            connection.execute("delete from meta where key = 'seen'")
        memory.maintain()
        assert [head.id for head in memory.entries.recalls(limit=100).recalls] == [
            recall_ids[2],
            recall_ids[0],
        ]
        with memory.entries._context.store.database.read() as connection:
            assert value(connection, "select count(*) from recalls") == 2
