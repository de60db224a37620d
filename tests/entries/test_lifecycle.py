from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opened_entries import open_entries

from memoriter.agent.service import MemoryService
from memoriter.entries import Draft, Entries, EntryOptions
from memoriter.entries.context import CleanupOptions
from memoriter.entries.forgetting import cleanup_if_due
from memoriter.errors import NotFound
from memoriter.memory import parts_of
from memoriter.records import CleanedUp, Entry
from memoriter.store.entry_rows import EntryFilter

DAY = 86_400.0


def remember(entries: Entries, text: str, **more: Any) -> Entry:
    entry = entries.add_draft(Draft(text, **more)).entry
    assert entry is not None
    return entry


def weekly_cleanup(entries: Entries, clock: Any) -> CleanedUp:
    clock.at += 7 * DAY
    return entries.cleanup()


@pytest.mark.requirement("D4")
def test_expired_entries_are_hidden_then_marked_then_purged(entries: Entries, clock: Any) -> None:
    note = remember(entries, "The printer is in room four", type="workflow", on_purpose=False)
    forever = remember(entries, "I am called Mira", type="other")
    clock.at += 91 * DAY
    assert [e.id for e in entries.list()] == [forever.id]
    assert [h.entry.id for h in entries.search("printer room four", threshold=0).hits] == [forever.id]
    assert entries.get(note.id).state == "active"
    assert (entries.cleanup().expired, entries.cleanup().expired) == (1, 0)
    assert entries.get(note.id).state == "expired"
    assert [purged for _ in range(5) if (purged := weekly_cleanup(entries, clock).purged)] == [1]
    with pytest.raises(NotFound):
        entries.get(note.id)
    assert remember(entries, "The printer is in room four").state == "active"


@pytest.mark.parametrize(
    ("draft", "days"),
    [
        (Draft("I am allergic to penicillin"), None),
        (Draft("I am allergic to penicillin", type="fact", importance=1), None),
        (Draft("I am allergic to penicillin", on_purpose=False, requested=True), None),
        (Draft("I am allergic to penicillin", expires_at=1_000_000 + 7 * DAY), 7),
        (Draft("I am allergic to penicillin", type="fact", on_purpose=False), 365),
        (Draft("I am allergic to penicillin", type="fact", trust="agent"), 365),
        (Draft("I am allergic to penicillin", trust="agent", importance=2), 90),
        (Draft("I am allergic to penicillin", trust="agent", on_purpose=False, requested=True), 180),
    ],
)
def test_what_the_owner_adds_by_hand_never_expires(
    entries: Entries, draft: Draft, days: float | None
) -> None:
    entry = entries.add_draft(draft).entry
    assert entry is not None
    spared = None if entry.expires_at is None else round((entry.expires_at - 1_000_000) / DAY)
    assert spared == days


def test_a_repetition_never_shortens_the_life_of_an_entry(entries: Entries) -> None:
    captured = Draft("I drink green tea", type="fact", on_purpose=False)
    assert remember(entries, captured.text, type="fact", on_purpose=False).expires_at is not None
    assert remember(entries, captured.text, type="fact").expires_at is None
    assert entries.add_draft(captured).entry == entries.list()[0]
    assert entries.list()[0].expires_at is None


def test_cleanup_runs_automatically_once_per_interval(open_: Any, clock: Any) -> None:
    entries = open_(options=EntryOptions(cleanup=CleanupOptions(interval_hours=24)))
    remember(entries, "The printer is in room four", type="workflow", on_purpose=False)
    clock.at += 91 * DAY
    remember(entries, "Something else", type="fact")
    assert len(entries._context.store.find(EntryFilter(states=("expired",)))) == 1
    remember(entries, "A workflow of ours", type="workflow")
    clock.at += 3600
    assert cleanup_if_due(entries._context) is None
    off = EntryOptions(cleanup=CleanupOptions(automatic=False))
    clock.at += 1000 * DAY
    assert cleanup_if_due(open_(options=off)._context) is None


def test_a_running_service_cleans_up_and_an_entry_is_read_by_its_path(open_memory: Any) -> None:
    memory = open_memory()
    entry = memory.entries.add("The printer is in room four", "other").entry
    [hit] = memory.search("printer", source="entries").hits
    assert memory.read(hit.path).text == "The printer is in room four"
    memory.entries.update(entry.id, expires_at=1.0)
    parts = parts_of(memory)
    parts.entry_context = replace(parts.entry_context, clock=lambda: time.time() + DAY)
    with MemoryService(memory):
        pass
    assert memory.entries.get(entry.id).state == "expired"


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("I am allergic to penicillin", "fact"),
        ("I prefer tabs over spaces", "user_preference"),
        ("We decided to use PostgreSQL", "technical_decision"),
        ("我喜欢用深色主题写代码", "user_preference"),
        ("zebra stripes", "other"),
    ],
)
def test_a_statement_that_is_added_gets_the_type_that_capture_gives_it(
    open_memory: Any, text: str, type_: str
) -> None:
    entry = open_memory().remember(text).entry
    assert entry is not None
    assert (entry.type, entry.expires_at) == (type_, None)


def test_imported_statements_of_a_person_never_expire(entries: Entries) -> None:
    exported = (
        '{"results": [{"id": "m1", "memory": "I am allergic to penicillin", "created_at": "2026-01-02"}]}'
    )
    entries.import_(exported)
    [mine] = entries.list()
    assert (mine.type, mine.expires_at) == ("fact", None)
    entries.import_(
        exported.replace("m1", "m2").replace("penicillin", "bee stings"), trust="agent", actor="agent"
    )
    [theirs] = [entry for entry in entries.list() if entry.trust == "agent"]
    assert theirs.expires_at is not None


# ---- wrong clocks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ahead", [125, 365, 395, 3 * 365, 40_000])
def test_one_command_under_a_wrong_clock_erases_nothing(entries: Entries, clock: Any, ahead: int) -> None:
    for number in range(4):
        remember(entries, f"The printer{number} is in room {number}", type="workflow", on_purpose=False)
    entries.cleanup()
    before, right = entries.list(), clock.at
    clock.at += ahead * DAY
    wrong = entries.cleanup()
    assert (wrong.expired, wrong.purged, entries.list()) == (4, 0, [])
    assert wrong.clock is not None
    assert wrong.clock.startswith(f"The clock is {float(ahead)} days ahead")
    clock.at = right
    repaired = cleanup_if_due(entries._context)
    assert repaired is not None
    assert (repaired.restored, repaired.purged) == (4, 0)
    assert repaired.clock is not None
    assert "was set back" in repaired.clock
    assert [replace(entry, seq=0) for entry in entries.list()] == [replace(entry, seq=0) for entry in before]
    assert len(entries.search("printer2").hits) > 0


def test_a_machine_that_slept_for_months_keeps_expired_entries_for_the_retention_time(
    entries: Entries, clock: Any
) -> None:
    note = remember(entries, "The printer is in room four", type="workflow", on_purpose=False)
    clock.at += 130 * DAY
    assert (entries.cleanup().expired, entries.cleanup().purged) == (1, 0)
    purged = [weekly_cleanup(entries, clock).purged for _ in range(6)]
    assert purged == [0, 0, 0, 0, 1, 0]
    with pytest.raises(NotFound):
        entries.get(note.id)


def test_a_wrong_clock_does_not_empty_the_recall_ledger(open_memory: Any) -> None:
    memory = open_memory()
    memory.remember("The printer is in room four")
    memory.recall("where is the printer?")
    memory.entries.cleanup()
    memory.entries._context = replace(memory.entries._context, clock=lambda: time.time() + 200 * DAY)
    memory.entries.cleanup()
    memory.entries.cleanup()
    assert memory.entries.recalls().total == 1


@given(st.lists(st.integers(-4000, 4000), max_size=12))
@settings(max_examples=25)
def test_jumps_of_the_clock_erase_nothing_before_the_retention_time(jumps: list[int]) -> None:
    """Every jump counts as a week at most, so thirty days need more than four of them."""
    with TemporaryDirectory() as folder:
        now = [1e9]
        entries = open_entries(Path(folder), clock=lambda: now[0])
        entries.add_draft(Draft("The printer is in room four", type="workflow", on_purpose=False))
        for days in jumps[:4]:
            now[0] += days * DAY
            assert entries.cleanup().purged == 0
        entries.close()
