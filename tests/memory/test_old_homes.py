"""Homes that an earlier version wrote open without loss."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from memoriter import Memory
from memoriter.extensions.langgraph.items import items_of
from memoriter.memory import parts_of
from memoriter.store.entry_store import Edit

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """Open the home that version 0.1.0 wrote: notes, entries with their history, a session and an item."""
    with tarfile.open(SAMPLES / "home-0.1.0.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    overrides: dict[str, object] = {"embedding.provider": "none"}
    with Memory.open(tmp_path / "notes", home=tmp_path / "home", overrides=overrides) as opened:
        yield opened


def test_entries_their_history_and_hidden_ones_are_there(memory: Memory) -> None:
    assert {entry.text for entry in memory.entries.list()} == {
        "I am allergic to penicillin.",
        "We use Buildkite for CI.",
        "我住在慕尼黑。",
        "My dentist is Dr.",
    }
    [changed] = [entry for entry in memory.entries.list() if "Buildkite" in entry.text]
    assert [event.kind for event in memory.entries.history(changed.id)] == ["add", "update"]
    memory.entries.undo()  # the capture
    memory.entries.undo()  # the hidden entry
    assert "The wifi password is on the fridge." in {entry.text for entry in memory.entries.list()}


def test_notes_sessions_and_items_are_found(memory: Memory) -> None:
    assert [hit.path for hit in memory.search("heating engineer Tomasz").hits][:1] == ["MEMORY.md"]
    assert [hit.path for hit in memory.search("数据库备份").hits][:1] == ["memory/2026-02-08.md"]
    assert any("Seagull" in hit.snippet for hit in memory.search("boat Seagull", source="sessions").hits)
    item = items_of(memory).get(("users", "ana"), "city")
    assert item is not None
    assert item.value == {"text": "Lisbon"}


def test_what_was_added_by_hand_lasts_although_an_earlier_version_gave_it_90_days(memory: Memory) -> None:
    store = parts_of(memory).entry_context.store
    by_text = {entry.text: entry for entry in memory.entries.list()}
    added, captured = by_text["我住在慕尼黑。"], by_text["My dentist is Dr."]
    with store.transaction():
        for entry in (added, captured):
            expires = {"type": "workflow", "expires_at": entry.created_at + 90 * 86_400}
            store.apply([Edit("update", replace(entry, **expires), entry)], at=entry.created_at, by="owner")
    memory.entries.cleanup()
    assert memory.entries.get(added.id).expires_at is None
    assert [event.by for event in memory.entries.history(added.id)] == ["owner", "owner", "cleanup"]
    assert memory.entries.get(captured.id).expires_at == captured.created_at + 90 * 86_400
    later = memory.entries.update(added.id, expires_at=added.created_at + 90 * 86_400)
    memory.entries.cleanup()
    assert memory.entries.get(added.id).expires_at == later.expires_at
