"""Edits of the owner: every change is an event, can be undone, and never loses a concurrent change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.soak.bytescan import holders
from memoriter.entries import Draft, Entries
from memoriter.errors import EditConflict, NotFound, WriteError
from memoriter.records import Entry

DAY = 86_400.0


def remember(entries: Entries, text: str, **more: Any) -> Entry:
    entry = entries.add_draft(Draft(text, **({"type": "fact"} | more))).entry
    assert entry is not None
    return entry


@pytest.mark.requirement("D5")
def test_an_edit_changes_the_search_results_and_can_be_undone(entries: Entries) -> None:
    entry = remember(entries, "I drink green tea", tags=("茶",))
    made = entries.update(entry.id[:8], text="I drink black coffee 咖啡", tags=("cafe",))
    assert (made.id, made.text, made.tags) == (entry.id, "I drink black coffee 咖啡", ("cafe",))
    assert [hit.entry.id for hit in entries.search("black coffee").hits] == [entry.id]
    assert entries.search("green tea", mode="keyword").hits == ()
    assert [event.kind for event in entries.history(entry.id)] == ["add", "update"]
    entries.undo(entry.id, if_seq=made.seq)
    assert entries.get(entry.id).text == "I drink green tea"


def test_expiry_follows_importance_and_type_unless_it_is_given(entries: Entries) -> None:
    entry = remember(entries, "I drink green tea", trust="agent")
    never = entries.update(entry.id, importance=5)
    assert never.expires_at is None
    other = entries.update(entry.id, importance=2, type="workflow")
    assert other.expires_at == other.updated_at + 90 * DAY
    said = entries.update(entry.id, importance=4, expires_at=9e9)
    assert said.expires_at == 9e9
    assert entries.update(entry.id, text="I drink much tea").expires_at == 9e9
    by_hand = remember(entries, "The heron nests in the marsh")
    assert entries.update(by_hand.id, importance=1, type="workflow").expires_at is None


def test_a_concurrent_change_is_a_conflict_and_not_lost(entries: Entries) -> None:
    entry = remember(entries, "I drink green tea")
    other = remember(entries, "The heron nests in the marsh")
    entries.update(entry.id, importance=4, if_seq=entry.seq)
    for act in (
        lambda: entries.update(entry.id, importance=1, if_seq=entry.seq),
        lambda: entries.supersede(entry.id, "I drink coffee", if_seq=entry.seq),
        lambda: entries.merge([entry.id, other.id], if_seqs=[entry.seq, other.seq]),
        lambda: entries.undo(entry.id, if_seq=entry.seq),
        lambda: entries.undo(if_seq=entry.seq),
    ):
        with pytest.raises(EditConflict, match="changed in the meantime"):
            act()
    assert entries.get(entry.id).importance == 4
    assert len(entries.list()) == 2


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"trust": "owner"}, "trust cannot be changed"),
        ({"text": "…"}, "contains no word"),
        ({"text": "x " * 2_000}, "at most 2000 characters"),
    ],
)
def test_invalid_changes_are_refused_with_a_message(
    entries: Entries, changes: dict[str, Any], sentence: str
) -> None:
    entry = remember(entries, "I drink green tea")
    with pytest.raises(WriteError, match=sentence):
        entries.update(entry.id, **changes)
    assert entries.get(entry.id) == entry


def test_an_edit_never_makes_two_entries_say_the_same(entries: Entries) -> None:
    tea = remember(entries, "I drink green tea")
    heron = remember(entries, "The heron nests in the marsh")
    with pytest.raises(EditConflict, match=f"{tea.id} says exactly this"):
        entries.update(heron.id, text="i drink green tea!")
    with pytest.raises(EditConflict, match="Merge"):
        entries.supersede(heron.id, "I drink green tea")
    with pytest.raises(WriteError, match="already says"):
        entries.supersede(tea.id, "i drink green tea.")


def test_merging_combines_several_entries(entries: Entries, tmp_path: Path) -> None:
    one = remember(entries, "I drink tea quokka42", importance=2, tags=("a",))
    two = remember(
        entries, "In the morning only, and never with milk", importance=4, tags=("b",), trust="agent"
    )
    made = entries.merge([one.id, two.id], "I drink tea quokka42 in the morning, without milk")
    assert (made.importance, made.tags, made.trust, made.repetitions) == (4, ("a", "b"), "agent", 2)
    assert made.related == (one.id, two.id)
    assert [entry.id for entry in entries.list()] == [made.id]
    assert {entries.get(id_).superseded_by for id_ in (one.id, two.id)} == {made.id}
    entries.undo(made.id)
    assert {entry.id for entry in entries.list()} == {one.id, two.id}
    again = entries.merge([one.id, two.id])
    assert again.text == two.text
    assert set(entries.erase(again.id).forgotten) == {one.id, two.id, made.id, again.id}
    assert holders(tmp_path / "agent", "quokka42") == []  # nor the text of the merge that was undone
    with pytest.raises(NotFound):
        entries.get(one.id)


def test_only_active_entries_are_merged_and_at_least_two(entries: Entries) -> None:
    one, two = remember(entries, "I drink green tea"), remember(entries, "The heron nests in the marsh")
    for ids in ([], [one.id], [one.id, one.id]):
        with pytest.raises(WriteError, match="between 2 and 50"):
            entries.merge(ids)
    entries.supersede(one.id, "I drink coffee")
    with pytest.raises(WriteError, match="superseded"):
        entries.merge([one.id, two.id])
    with pytest.raises(WriteError, match="superseded"):
        entries.supersede(one.id, "I drink water")


def test_a_new_statement_supersedes_an_entry(entries: Entries) -> None:
    old = remember(entries, "I drink green tea", importance=4, tags=("茶",), trust="agent")
    done = entries.supersede(old.id, "I drink black coffee")
    assert done.entry is not None
    assert (done.action, done.replaced, done.entry.tags, done.entry.importance) == (
        "superseded",
        old.id,
        ("茶",),
        4,
    )
    assert done.entry.trust == "owner"
    assert [entry.id for entry in entries.list()] == [done.entry.id]
    entries.undo(done.entry.id)
    assert [entry.id for entry in entries.list()] == [old.id]
