from __future__ import annotations

import contextlib
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opened_entries import open_entries

from memoriter.entries import Draft, Entries
from memoriter.entries.drafts import TYPES, Category, expiry, type_of
from memoriter.entries.exchange import export_lines, import_lines, parse_lines
from memoriter.errors import BadArgument, EditConflict, NotFound, WriteError
from memoriter.records import Entry, from_share
from memoriter.text.words import normal_form

DAY = 86_400.0


def remember(entries: Entries, text: str, **more: object) -> Entry:
    entry = entries.add_draft(Draft(text, **more)).entry  # type: ignore[arg-type]
    assert entry is not None
    return entry


# ---- scales and types ----------------------------------------------------------------------------------------


@pytest.mark.requirement("B10")
def test_an_importance_from_0_to_1_becomes_one_from_1_to_5() -> None:
    assert [from_share(share) for share in (0, 0.5, 0.7, 1)] == [1, 3, 3.8, 5]


@pytest.mark.requirement("B10")
def test_the_five_categories_are_names_of_types() -> None:
    assert {category: type_of(category) for category in get_args(Category)} == {
        "preference": "user_preference",
        "decision": "technical_decision",
        "entity": "relationship",
        "fact": "fact",
        "other": "other",
    }
    with pytest.raises(BadArgument, match="no type 'mood'"):
        type_of("mood")


@pytest.mark.requirement("D4", "D13")
def test_each_type_has_its_lifetime_and_the_most_important_never_expires() -> None:
    days = {type_: (expiry(type_, 4, 0.0) or 0) / DAY for type_ in TYPES}
    assert days == {
        "user_preference": 3650,
        "project_context": 365,
        "technical_decision": 365,
        "workflow": 90,
        "fact": 365,
        "skill": 1825,
        "relationship": 730,
        "other": 365,
    }
    assert [(expiry("other", importance, 0.0) or 0) / DAY for importance in (1, 2, 3, 3.4, 3.8, 4.9)] == [
        30,
        90,
        180,
        180,
        365,
        365,
    ]
    assert expiry("other", 5, 0.0) is expiry("fact", 5, 0.0) is None


# ---- remembering ---------------------------------------------------------------------------------------------


def test_entries_are_there_after_reopening(tmp_path: Path, clock: Any) -> None:
    with_all = Draft(
        "We deploy on Tuesdays",
        "workflow",
        "release",
        importance=4,
        confidence=0.8,
        trust="agent",
        session="s1",
        source="cli",
        tags=("Ops", "ops", "deploy"),
    )
    entries = open_entries(tmp_path / "agent", clock=clock)
    entry = entries.add_draft(with_all).entry
    entries.close()
    again = open_entries(tmp_path / "agent", clock=clock)
    assert entry is not None
    assert again.get(entry.id[:8]) == entry
    assert (entry.tags, entry.expires_at) == (("ops", "deploy"), entry.created_at + 90 * DAY)
    again.close()


def test_the_same_words_are_one_entry_and_counted(entries: Entries) -> None:
    first = remember(entries, "I prefer tabs.")
    again = entries.add_draft(Draft("  i  PREFER tabs", importance=4))
    assert (again.action, again.entry and again.entry.id) == ("repeated", first.id)
    assert again.entry is not None
    assert (again.entry.repetitions, again.entry.importance) == (2, 4)
    assert remember(entries, "I prefer C").id != remember(entries, "I prefer C++").id
    assert normal_form("我用 Python，很好。") == normal_form("我用Python很好")


@pytest.mark.parametrize("text", ["", "   ", "…!?", "<private>all of it</private>", "x" * 2001])
def test_a_text_without_words_is_refused(entries: Entries, text: str) -> None:
    with pytest.raises(WriteError):
        entries.add_draft(Draft(text))
    assert entries.list() == []


def test_secrets_are_not_kept(entries: Entries, tmp_path: Path) -> None:
    entry = remember(entries, "My token is ghp_0123456789abcdefghijABCDEFGHIJ012345, remember it")
    assert "ghp_" not in entry.text


@pytest.mark.requirement("D5")
def test_entries_are_listed_by_filter_and_expired_ones_are_hidden(entries: Entries, clock: Any) -> None:
    tea = remember(entries, "I like tea", type="user_preference", tags=("drink",), importance=4)
    remember(entries, "Standup is at nine", type="workflow", trust="agent", session="s2")
    assert [e.id for e in entries.list(types=("user_preference",))] == [tea.id]
    assert [e.id for e in entries.list(tags=("drink",))] == [tea.id]
    assert [e.id for e in entries.list(min_importance=3.5)] == [tea.id]
    assert [e.text for e in entries.list(trust=("agent",))] == ["Standup is at nine"]
    assert [e.text for e in entries.list(session="s2")] == ["Standup is at nine"]
    clock.at += 91 * DAY
    assert [e.id for e in entries.list()] == [tea.id]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("importance", 9, "`importance` must be from 1 to 5, not 9."),
        ("importance", 0.5, "`importance` must be from 1 to 5, not 0.5."),
        ("importance", float("nan"), "`importance` must be from 1 to 5, not nan."),
        ("confidence", -1, "`confidence` must be from 0 to 1, not -1."),
    ],
)
def test_a_number_outside_its_scale_is_refused(
    entries: Entries, field: str, value: float, message: str
) -> None:
    entry = remember(entries, "The port is 8080")
    with pytest.raises(BadArgument) as added:
        entries.add("I prefer tea", **{field: value})  # type: ignore[misc]
    with pytest.raises(BadArgument) as updated:
        entries.update(entry.id, **{field: value})  # type: ignore[misc]
    assert [(str(one.value), one.value.details) for one in (added, updated)] == [
        (message, {"arguments": [field]})
    ] * 2
    assert entries.list() == [entry]


def test_an_unknown_type_is_a_wrong_argument(entries: Entries) -> None:
    with pytest.raises(BadArgument, match="There is no type 'mood'"):
        entries.list("mood")
    with pytest.raises(BadArgument, match="There is no type 'mood'"):
        entries.add("I prefer tea", "mood")


# ---- history and undo ----------------------------------------------------------------------------------------


def test_every_change_is_an_event_with_before_and_after(entries: Entries) -> None:
    entry = remember(entries, "The port is 8080", type="fact")
    changed = entries.update(entry.id, text="The port is 9090", importance=5)
    assert (changed.text, changed.importance) == ("The port is 9090", 5)
    events = entries.history(entry.id)
    assert [(e.kind, e.before and e.before.text, e.after and e.after.text) for e in events] == [
        ("add", None, "The port is 8080"),
        ("update", "The port is 8080", "The port is 9090"),
    ]


@pytest.mark.requirement("X7")
def test_repeated_undos_step_back_and_redos_step_forward_again(entries: Entries) -> None:
    entry = remember(entries, "The port is 1")
    for number in range(2, 5):
        entries.update(entry.id, text=f"The port is {number}")
    seen = []
    for step in (*[entries.undo] * 3, *[entries.redo] * 2, entries.undo, *[entries.redo] * 2):
        (now,) = step()[1]
        seen.append(int(now.text[-1]))
    assert seen == [3, 2, 1, 2, 3, 2, 3, 4]
    with pytest.raises(NotFound, match="nothing to redo"):
        entries.redo()
    for _ in range(4):
        entries.undo(entry.id)
    assert entries.list() == []
    with pytest.raises(NotFound, match="nothing to undo"):
        entries.undo()
    with pytest.raises(NotFound, match="nothing to undo"):
        entries.undo(entry.id)


def test_undos_of_one_entry_leave_the_changes_of_others_to_undo(entries: Entries) -> None:
    port, host = remember(entries, "The port is 8080"), remember(entries, "The host is fern")
    entries.update(port.id, text="The port is 9090")
    entries.update(host.id, text="The host is moss")
    entries.undo(port.id)
    entries.undo()
    assert [one.text for one in entries.list()] == ["The host is fern", "The port is 8080"]
    entries.undo()
    assert [one.text for one in entries.list()] == ["The port is 8080"]
    entries.redo(port.id)
    assert [one.text for one in entries.list()] == ["The port is 9090"]


def test_a_change_after_an_undo_leaves_nothing_to_redo(entries: Entries) -> None:
    entry = remember(entries, "The port is 8080")
    entries.update(entry.id, text="The port is 9090")
    entries.undo()
    other = remember(entries, "The host is fern")
    with pytest.raises(NotFound, match="nothing to redo"):
        entries.redo()
    entries.redo(entry.id)
    assert entries.get(entry.id).text == "The port is 9090"
    entries.undo()
    entries.update(entry.id, text="The port is 7070")
    with pytest.raises(NotFound, match="nothing to redo"):
        entries.redo(entry.id)
    entries.undo()
    entries.undo()
    assert [one.id for one in entries.list()] == [entry.id]
    assert other.id in {one.id for one in entries.undone()}


@settings(max_examples=15)
@given(st.lists(st.sampled_from(["add", "update", "supersede", "undo", "redo"]), max_size=12))
def test_undo_and_redo_are_a_stack_of_states(steps: list[str]) -> None:
    """Compare with the model that every editor has: a stack of states, and one of undone states."""
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(open_entries(Path(folder))) as entries:
        past: list[list[str]] = []
        future: list[list[str]] = []

        def state() -> list[str]:
            return sorted(one.text for one in entries.list())

        for number, step in enumerate(steps):
            before, text = state(), f"Fact {number} is {number * 7}"
            newest = entries.list(limit=1)
            if step == "undo":
                if past:
                    future.append(before)
                    entries.undo()
                    assert state() == past.pop()
                continue
            if step == "redo":
                if future:
                    past.append(before)
                    entries.redo()
                    assert state() == future.pop()
                continue
            if step == "add" or not newest:
                entries.add(text, "fact")
            elif step == "update":
                entries.update(newest[0].id, text=text)
            else:
                entries.supersede(newest[0].id, text)
            past, future = [*past, before], []


def test_a_stale_edit_is_a_conflict(entries: Entries) -> None:
    from memoriter.store.entry_store import Edit

    entry = remember(entries, "The port is 8080")
    entries.update(entry.id, importance=4)
    with pytest.raises(EditConflict):
        entries._context.store.apply([Edit("update", replace(entry, text="lost"), entry)], at=1.0, by="late")


# ---- export and import ---------------------------------------------------------------------------------------


@pytest.mark.requirement("D1", "D5")
def test_export_and_import_preserve_everything(entries: Entries, tmp_path: Path, clock: Any) -> None:
    entry = remember(entries, "我喜欢喝茶 ☕", type="user_preference", tags=("饮料",), importance=4.5)
    entries.update(entry.id, text="我喜欢喝绿茶 ☕")
    remember(entries, 'quotes " and \\ and\nlines')
    lines = list(export_lines(entries._context.store))
    other = open_entries(tmp_path / "other", clock=clock)
    done = import_lines(other._context.store, parse_lines(lines), at=5.0, actor="import")
    assert (done.added, done.already) == (2, 0)
    seqless = [replace(e, seq=0) for e in entries.list()]
    assert [replace(e, seq=0) for e in other.list()] == seqless
    assert [e.kind for e in other.history(entry.id)] == ["add", "update"]
    again = import_lines(other._context.store, parse_lines(lines), at=6.0, actor="import")
    assert (again.added, again.already) == (0, 2)
    other.undo(entry.id)
    assert other.get(entry.id).text == "我喜欢喝茶 ☕"
    other.close()


@pytest.mark.requirement("D5")
def test_an_invalid_line_is_refused_with_its_number_and_nothing_is_imported(entries: Entries) -> None:
    good = Entry("00000000-0000-4000-8000-000000000001", "fine")
    head, line = (
        next(export_lines(entries._context.store)),
        json.dumps({"entry": {"id": good.id, "text": "fine"}}),
    )
    for nonsense, words in [
        ("{", "not valid JSON"),
        ("[" * 100_000, ""),
        ("7", "no entry"),
        (json.dumps({"entry": {"text": "x"}}), ""),
        (json.dumps({"entry": {"id": "../x", "text": "x"}}), ""),
        (json.dumps({"entry": {"id": good.id, "text": "x", "importance": 7}}), "importance"),
        (json.dumps({"entry": {"id": good.id, "text": "x", "type": "mood"}}), "type"),
        (json.dumps({"entry": {"id": good.id, "text": "x", "vibe": 1}}), "vibe"),
        (json.dumps({"entry": {"id": good.id, "text": "x", "tags": "a"}}), "tags"),
    ]:
        with pytest.raises(WriteError, match=f"Line 3: .*{words}"):
            import_lines(entries._context.store, parse_lines([head, line, nonsense]), at=1.0, actor="import")
        assert entries.list() == []
