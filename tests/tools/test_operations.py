"""The manager, called by name."""

from __future__ import annotations

import json

from recollect.doors.operations import OPERATIONS, call
from recollect.doors.tools import Toolbox

GROUP = "agent:main:telegram:group:42"


def test_the_same_answers_as_the_tools(note, open_memory) -> None:
    note("MEMORY.md", "The heron nests in the marsh.\n")
    memory = open_memory()
    asked = {"query": "heron"}
    assert call(memory, "memory.search", asked) == Toolbox(memory).call("memory_search", asked)
    assert call(memory, "memory.get", {"path": "MEMORY.md"})["text"] == "The heron nests in the marsh."
    assert call(memory, "memory.stats")["file_count"] == 1


def test_sync_status_and_probe(note, open_memory) -> None:
    note("MEMORY.md", "heron\n")
    memory = open_memory()
    assert call(memory, "memory.sync", {"force": True})["files"] == 1
    status = call(memory, "memory.status", {"deep": True})
    assert (status["backend"], status["files"], status["details"]["store"]) == ("builtin", 1, "ok")
    assert call(memory, "memory.probe") == {"embedding": "ok", "vectors": "ok", "disabled": False}
    json.dumps([status, call(memory, "memory.sync")])


def test_mistakes_and_scope(open_memory) -> None:
    memory = open_memory()
    assert call(memory, "memory.drop")["error"].startswith(
        "There is no tool 'memory.drop'; there are: memory_search"
    )
    assert call(memory, "memory.sync", {"force": "yes"})["error"] == "force must be of type boolean."
    assert call(memory, "memory.search", {"query": "x"}, session_key=GROUP)["results"] == []
    assert (
        call(memory, "memory.sync", session_key=GROUP)["error"]
        == "This session may not write to this memory."
    )


def test_what_changes_something_says_so() -> None:
    changing = {name for name, tool in OPERATIONS.items() if tool.access != "read"}
    assert changing == {"memory_save", "memory_store", "memory_forget", "memory", "memory.sync"}
    assert all(tool.name == name for name, tool in OPERATIONS.items())
