"""The changes of entries by time, and the weekly letter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memoriter import Memory
from memoriter.extensions.letter.writing import as_markdown, list_changes, write_letter
from memoriter.tools.table import call


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    (tmp_path / "workspace").mkdir()
    overrides = {"embedding.provider": "none"}
    with Memory.open(tmp_path / "workspace", home=tmp_path / "home", overrides=overrides) as opened:
        yield opened


def test_an_empty_memory_has_a_letter_and_no_changes(memory: Memory) -> None:
    assert list_changes(memory) == []
    assert "## Learned (0)\n\nNothing." in as_markdown(write_letter(memory))


def test_changes_are_listed_newest_first_with_before_and_after_and_who(memory: Memory) -> None:
    tea = memory.remember("Tea at four").entry
    assert tea
    memory.entries.update(tea.id, text="Tea at five")
    memory.remember("The office has a green door", trust="agent")
    listed = call(memory, "changes.list", {})["changes"]
    assert [
        [(event["kind"], event["by"], event.get("before"), event.get("after")) for event in one["events"]]
        for one in listed
    ] == [
        [("add", "agent", None, "The office has a green door")],
        [("update", "owner", "Tea at four", "Tea at five")],
        [("add", "owner", None, "Tea at four")],
    ]
    assert [one["newest"] for one in listed] == [True, True, False]
    assert [
        len(call(memory, "changes.list", {name: value})["changes"])
        for name, value in (("by", "agent"), ("kind", "update"), ("until", 1), ("limit", 2))
    ] == [1, 1, 0, 2]
    following = call(memory, "changes.list", {"limit": 2})["next"]
    assert len(call(memory, "changes.list", {"limit": 2, "before": following})["changes"]) == 1


def test_the_letter_tells_what_was_learned_changed_and_retired(memory: Memory) -> None:
    tea = memory.remember("Tea at four").entry
    gone = memory.remember("The gate squeaks").entry
    assert tea
    assert gone
    memory.forget(gone.id)
    letter = write_letter(memory)
    assert [entry.text for entry in letter.learned] == ["Tea at four"]
    assert [entry.text for entry in letter.retired] == ["The gate squeaks"]
    written = as_markdown(letter)
    assert "## Learned (1)\n\n- Tea at four\n" in written
    assert "## Retired (1)\n\n- The gate squeaks\n" in written
