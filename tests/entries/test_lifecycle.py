from __future__ import annotations

import time
from typing import Any

import pytest

from memoriter.agent.service import MemoryService
from memoriter.entries import Draft, Entries, EntryOptions
from memoriter.entries.lifecycle import CleanupOptions
from memoriter.errors import NotFound
from memoriter.records import Entry
from memoriter.store.entry_rows import EntryFilter

DAY = 86_400.0


def remember(entries: Entries, text: str, **more: Any) -> Entry:
    entry = entries.add_draft(Draft(text, **more)).entry
    assert entry is not None
    return entry


def test_expired_entries_are_hidden_then_marked_then_purged(entries: Entries, clock: Any) -> None:
    note = remember(entries, "The printer is in room four", type="workflow", on_purpose=False)
    forever = remember(entries, "I am called Mira", type="other")
    clock.at += 91 * DAY
    assert [e.id for e in entries.list()] == [forever.id]
    assert [h.entry.id for h in entries.search("printer room four", threshold=0).hits] == [forever.id]
    assert entries.get(note.id).state == "active"
    assert (entries.cleanup().expired, entries.cleanup().expired) == (1, 0)
    assert entries.get(note.id).state == "expired"
    clock.at += 31 * DAY
    assert entries.cleanup().purged == 1
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
    assert len(entries._store.find(EntryFilter(states=("expired",)))) == 1
    remember(entries, "A workflow of ours", type="workflow")
    clock.at += 3600
    assert entries.cleanup_if_due() is None
    off = EntryOptions(cleanup=CleanupOptions(automatic=False))
    clock.at += 1000 * DAY
    assert open_(options=off).cleanup_if_due() is None


def test_a_running_service_cleans_up_and_an_entry_is_read_by_its_path(open_memory: Any) -> None:
    memory = open_memory()
    entry = memory.entries.add("The printer is in room four", "other").entry
    [hit] = memory.search("printer", source="entries").hits
    assert memory.read(hit.path).text == "The printer is in room four"
    memory.entries.update(entry.id, expires_at=1.0)
    memory.entries._lifecycle._clock = lambda: time.time() + DAY
    with MemoryService(memory):
        pass
    assert [e.id for e in memory.entries._store.find(EntryFilter(states=("expired",)))] == []
    with pytest.raises(NotFound):
        memory.entries.get(entry.id)


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
