"""What the owner changes by hand: every change is an event, can be taken back, and loses nobody else's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from byte_scan import holders

from memoriter.entries import Draft, Entries
from memoriter.errors import EditConflict, NotFound, WriteError
from memoriter.records import Entry

DAY = 86_400.0


def remember(keeper: Entries, text: str, **more: Any) -> Entry:
    entry = keeper.add_draft(Draft(text, **({"type": "fact"} | more))).entry
    assert entry is not None
    return entry


def test_an_edit_changes_what_is_found_and_is_taken_back_by_undo(keeper: Entries) -> None:
    entry = remember(keeper, "I drink green tea", tags=("茶",))
    made = keeper.update(entry.id[:8], text="I drink black coffee 咖啡", tags=("cafe",))
    assert (made.id, made.text, made.tags) == (entry.id, "I drink black coffee 咖啡", ("cafe",))
    assert [hit.entry.id for hit in keeper.search("black coffee").hits] == [entry.id]
    assert keeper.search("green tea", mode="keyword").hits == ()
    assert [event.kind for event in keeper.history(entry.id)] == ["add", "update"]
    keeper.undo(entry.id, if_seq=made.seq)
    assert keeper.get(entry.id).text == "I drink green tea"


def test_how_long_it_lasts_follows_importance_and_type_unless_it_is_said(keeper: Entries) -> None:
    entry = remember(keeper, "I drink green tea")
    never = keeper.update(entry.id, importance=5)
    assert never.expires_at is None
    other = keeper.update(entry.id, importance=2, type="workflow")
    assert other.expires_at == other.updated_at + 90 * DAY
    said = keeper.update(entry.id, importance=4, expires_at=9e9)
    assert said.expires_at == 9e9
    assert keeper.update(entry.id, text="I drink much tea").expires_at == 9e9


def test_a_change_that_somebody_made_meanwhile_is_a_conflict_and_not_lost(keeper: Entries) -> None:
    entry = remember(keeper, "I drink green tea")
    other = remember(keeper, "The heron nests in the marsh")
    keeper.update(entry.id, importance=4, if_seq=entry.seq)
    for act in (
        lambda: keeper.update(entry.id, importance=1, if_seq=entry.seq),
        lambda: keeper.supersede(entry.id, "I drink coffee", if_seq=entry.seq),
        lambda: keeper.merge([entry.id, other.id], if_seqs=[entry.seq, other.seq]),
        lambda: keeper.undo(entry.id, if_seq=entry.seq),
        lambda: keeper.undo(if_seq=entry.seq),
    ):
        with pytest.raises(EditConflict, match="changed in the meantime"):
            act()
    assert keeper.get(entry.id).importance == 4
    assert len(keeper.list()) == 2


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"trust": "owner"}, "trust cannot be changed"),
        ({"text": "…"}, "contains no word"),
        ({"text": "x " * 2_000}, "at most 2000 characters"),
        ({"type": "mood"}, "no type 'mood'"),
        ({"importance": float("nan")}, "must be numbers"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    keeper: Entries, changes: dict[str, Any], sentence: str
) -> None:
    entry = remember(keeper, "I drink green tea")
    with pytest.raises(WriteError, match=sentence):
        keeper.update(entry.id, **changes)
    assert keeper.get(entry.id) == entry


def test_an_edit_never_makes_two_entries_say_the_same(keeper: Entries) -> None:
    tea = remember(keeper, "I drink green tea")
    heron = remember(keeper, "The heron nests in the marsh")
    with pytest.raises(EditConflict, match=f"{tea.id} says exactly this"):
        keeper.update(heron.id, text="i drink green tea!")
    with pytest.raises(EditConflict, match="Merge"):
        keeper.supersede(heron.id, "I drink green tea")
    with pytest.raises(WriteError, match="already says"):
        keeper.supersede(tea.id, "i drink green tea.")


def test_several_become_one_that_knows_all_of_them(keeper: Entries, tmp_path: Path) -> None:
    one = remember(keeper, "I drink tea quokka42", importance=2, tags=("a",))
    two = remember(
        keeper, "In the morning only, and never with milk", importance=4, tags=("b",), trust="agent"
    )
    made = keeper.merge([one.id, two.id], "I drink tea quokka42 in the morning, without milk")
    assert (made.importance, made.tags, made.trust, made.repetitions) == (4, ("a", "b"), "agent", 2)
    assert made.related == (one.id, two.id)
    assert [entry.id for entry in keeper.list()] == [made.id]
    assert {keeper.get(id_).superseded_by for id_ in (one.id, two.id)} == {made.id}
    keeper.undo(made.id)
    assert {entry.id for entry in keeper.list()} == {one.id, two.id}
    again = keeper.merge([one.id, two.id])
    assert again.text == two.text
    assert set(keeper.forget(again.id).forgotten) == {one.id, two.id, made.id, again.id}
    assert holders(tmp_path / "agent", "quokka42") == []  # nor what the merge said that was undone
    with pytest.raises(NotFound):
        keeper.get(one.id)


def test_only_entries_in_force_are_merged_and_at_least_two(keeper: Entries) -> None:
    one, two = remember(keeper, "I drink green tea"), remember(keeper, "The heron nests in the marsh")
    for ids in ([], [one.id], [one.id, one.id]):
        with pytest.raises(WriteError, match="between 2 and 50"):
            keeper.merge(ids)
    keeper.supersede(one.id, "I drink coffee")
    with pytest.raises(WriteError, match="superseded"):
        keeper.merge([one.id, two.id])
    with pytest.raises(WriteError, match="superseded"):
        keeper.supersede(one.id, "I drink water")


def test_a_new_statement_in_an_old_ones_place(keeper: Entries) -> None:
    old = remember(keeper, "I drink green tea", importance=4, tags=("茶",), trust="agent")
    done = keeper.supersede(old.id, "I drink black coffee")
    assert done.entry is not None
    assert (done.action, done.replaced, done.entry.tags, done.entry.importance) == (
        "superseded",
        old.id,
        ("茶",),
        4,
    )
    assert done.entry.trust == "owner"
    assert [entry.id for entry in keeper.list()] == [done.entry.id]
    keeper.undo(done.entry.id)
    assert [entry.id for entry in keeper.list()] == [old.id]
