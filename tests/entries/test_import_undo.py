"""An import is previewed without a change, and undone without a trace of it in lists and without tombstones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memoriter import Memory
from memoriter.tools.table import OPERATIONS
from memoriter.tools.toolbox import Toolbox

DATA = json.dumps(
    [{"text": "The kiln fires on Mondays"}, {"text": "Tea at four"}, {"text": "The gate is green"}]
)


@pytest.fixture
def memory(open_memory) -> Memory:
    opened: Memory = open_memory(embedding__provider="none")
    return opened


def call(memory: Memory, name: str, **arguments: object) -> dict[str, Any]:
    result = Toolbox(memory, tools=OPERATIONS, access="admin").call(name, arguments)
    assert "error" not in result, result
    return dict(result)


def texts(memory: Memory) -> list[str]:
    return sorted(entry.text for entry in memory.entries.list())


def test_a_preview_counts_like_the_import_and_changes_nothing(memory: Memory) -> None:
    memory.entries.add("Tea at four")
    memory.erase(memory.entries.add("The gate is green").entry.id)  # type: ignore[union-attr]
    would = call(memory, "entries.import", data=DATA, dryRun=True)
    assert texts(memory) == ["Tea at four"]
    made = call(memory, "entries.import", data=DATA)
    counts = ("added", "already", "refused", "preview")
    assert [would[name] for name in counts] == [made[name] for name in counts]
    assert [made[name] for name in counts] == [1, 1, 1, ["The kiln fires on Mondays"]]
    assert (would["entries"], would["dryRun"], len(made["entries"])) == ([], True, 1)


def test_an_import_is_undone_except_for_what_has_changed_since(memory: Memory) -> None:
    made = call(memory, "entries.import", data=DATA)
    changed = made["entries"][0]["id"]
    memory.entries.update(changed, importance=5)
    undone = call(memory, "entries.undo_import", entries=made["entries"])
    assert (undone["removed"], undone["changed"]) == (2, 1)
    assert texts(memory) == [memory.entries.get(changed).text]
    again = call(memory, "entries.import", data=DATA)
    assert (again["added"], again["already"], again["refused"]) == (2, 1, 0)


def test_an_export_holds_only_the_given_entries(memory: Memory) -> None:
    made = call(memory, "entries.import", data=DATA)
    wanted = [one["id"] for one in made["entries"][:2]]
    exported = call(memory, "entries.export", ids=wanted)
    found = [json.loads(line)["entry"]["id"] for line in exported["data"].splitlines()[1:]]
    assert (sorted(found), exported["total"]) == (sorted(wanted), 2)
