"""Another process writes the index of entries and does not end. Entries are stored and judged without it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoriter.entries import Draft, Entries, EntryOptions
from memoriter.store import Index, open_index


@pytest.fixture
def busy(tmp_path: Path) -> Any:
    """Return the index as another process opens it. Its lock belongs to the file, not to the process."""
    with open_index(tmp_path / "agent" / "entries") as index:
        yield index


def say(entries: Entries, text: str, **more: Any) -> tuple[str, str | None]:
    outcome = entries.add_draft(Draft(text, "fact", **more))
    return outcome.action, outcome.replaced


def found(entries: Entries, query: str) -> list[str]:
    return [hit.entry.text for hit in entries.search(query, mode="keyword").hits]


def test_an_add_is_judged_and_stored_while_another_process_writes_the_index(
    open_: Callable[..., Entries], busy: Index
) -> None:
    entries = open_()
    assert say(entries, "We deploy on Tuesdays") == ("added", None)
    indexed = entries.list()[0].id
    with busy.transaction():
        assert say(entries, "We deploy on Tuesdays after the stand-up") == ("merged", indexed)
        assert say(entries, "I live in Paris") == ("added", None)
        paris = entries.list()[0].id
        assert say(entries, "I moved to Berlin") == ("superseded", paris)
        assert say(entries, "I moved to Berlin") == ("repeated", None)
        assert say(entries, "I moved to Berlin!") == ("repeated", None)
    texts = ["I moved to Berlin", "We deploy on Tuesdays after the stand-up"]
    assert sorted(entry.text for entry in entries.list()) == texts
    assert found(entries, "deploy") == texts[1:]
    assert found(entries, "Berlin") == texts[:1]
    assert found(entries, "Paris") == texts[:1]  # it replaced "I live in Paris"


def test_an_add_says_how_many_entries_it_was_not_compared_with(
    open_: Callable[..., Entries], busy: Index
) -> None:
    entries = open_()
    with busy.transaction():
        entries.import_(
            json.dumps([{"text": f"Fact number {number} is {number * 7}"} for number in range(258)])
        )
        outcome = entries.add_draft(Draft("I live in Paris", "fact"))
        assert (outcome.action, outcome.note) == (
            "added",
            "Not compared with older entries that are not indexed yet: 2.",
        )
        moved = entries.add_draft(Draft("I moved to Berlin", "fact"))
        assert outcome.entry is not None
        assert (moved.action, moved.replaced) == ("superseded", outcome.entry.id)
        assert "not indexed yet: 3." in str(moved.note)
    entries.search("Berlin")
    assert entries.add_draft(Draft("I play the oboe", "fact")).note is None


def test_a_text_that_another_process_changed_is_judged_as_it_is_now(
    open_: Callable[..., Entries], busy: Index
) -> None:
    entries, other = open_(), open_()
    say(entries, "The heron nests in May")
    heron = entries.list()[0].id
    with busy.transaction():
        other.update(heron, text="Invoices are paid on Fridays")
        assert say(entries, "The heron nests in May on the island") == ("added", None)
        assert say(entries, "Invoices are paid on Fridays at noon") == ("merged", heron)


def test_approving_and_hiding_do_not_wait_for_the_index(open_: Callable[..., Entries], busy: Index) -> None:
    entries = open_(options=EntryOptions(approval="agent"))
    say(entries, "I live in Paris")
    paris = entries.list()[0].id
    say(entries, "I live in Berlin now, not in Paris", trust="agent")
    say(entries, "We deploy on Tuesdays", trust="agent")
    staged = [entry.id for entry in entries.list(states=("staged",))]
    with busy.transaction():
        assert [outcome.action for outcome in entries.approve(staged)] == ["added", "added"]
        assert entries.forget(paris).forgotten == (paris,)
    assert found(entries, "Paris") == ["I live in Berlin now, not in Paris"]
    assert found(entries, "deploy") == ["We deploy on Tuesdays"]


def test_the_vector_of_an_entry_is_computed_when_the_index_is_free(
    open_: Callable[..., Entries], busy: Index
) -> None:
    entries = open_()
    with busy.transaction():
        say(entries, "The heron nests in May")
    hits = entries.search("heron nests", mode="semantic").hits
    assert [hit.entry.text for hit in hits] == ["The heron nests in May"]
    assert entries.search("heron").degraded is None


def test_an_agents_proposal_to_forget_does_not_wait_for_the_index(
    open_: Callable[..., Entries], busy: Index
) -> None:
    entries = open_()
    say(entries, "I live in Paris")
    paris = entries.list()[0].id
    with busy.transaction():
        receipt = entries.erase(paris, actor="agent")
    assert (receipt.forgotten, entries.get(paris).state) == ((), "staged")
    assert found(entries, "Paris") == []
