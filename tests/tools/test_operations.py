"""Operations, called by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memoriter.tools.table import OPERATIONS, call
from memoriter.tools.toolbox import Toolbox

GROUP = "agent:main:telegram:group:42"


@pytest.mark.requirement("A4", "C8")
def test_operations_answer_like_the_tools(note, open_memory) -> None:
    note("MEMORY.md", "The heron nests in the marsh.\n")
    memory = open_memory()
    asked = {"query": "heron"}
    found, told = call(memory, "memory.search", asked), Toolbox(memory).call("memory_search", asked)
    assert found["results"][0].pop("snippet") == "The heron nests in the marsh."
    told["results"][0].pop("snippet")
    assert found.pop("threshold") == memory.settings.retrieval.min_confidence
    assert found == told
    assert call(memory, "memory.get", {"path": "MEMORY.md"})["text"] == "The heron nests in the marsh."
    assert call(memory, "memory.stats")["file_count"] == 1


@pytest.mark.requirement("A4")
def test_sync_status_and_probe(note, open_memory) -> None:
    note("MEMORY.md", "heron\n")
    memory = open_memory()
    assert call(memory, "memory.sync", {"force": True})["files"] == 1
    status = call(memory, "memory.status", {"deep": True})
    assert (status["backend"], status["files"], status["details"]["store"]) == ("builtin", 1, "ok")
    assert call(memory, "memory.probe") == {"embedding": "ok", "vectors": "ok", "disabled": False}
    json.dumps([status, call(memory, "memory.sync")])


def test_errors_and_scope(open_memory) -> None:
    memory = open_memory()
    assert call(memory, "memory.drop")["error"].startswith(
        "There is no tool 'memory.drop'. The tools are: memory_search"
    )
    assert call(memory, "memory.sync", {"force": "yes"})["error"] == "`force` must be true or false."
    assert call(memory, "memory.search", {"query": "x"}, session=GROUP)["results"] == []
    assert call(memory, "memory.sync", session=GROUP)["error"] == "This session may not write to this memory."


def test_operations_that_write_need_write_or_admin_access() -> None:
    writing = {name for name, tool in OPERATIONS.items() if tool.access == "write"}
    assert writing == {
        "memory_save", "memory_store", "memory_forget", "memory", "memory.sync", "capture", "flush", "summarise",
    }  # fmt: skip
    owners = {name for name, tool in OPERATIONS.items() if tool.access == "admin"}
    entries = (
        *("add", "edit", "merge", "supersede", "undo", "forget", "erase"),
        *("approve", "reject", "export", "import", "undo_import"),
    )
    notes = ("text", "put", "waiting", "approve", "remove", "restore")
    operating = {
        "tokens": ("list", "create", "revoke"),
        "backups": ("list", "create", "check", "read", "restore", "remove"),
        "hosts": ("list",),
        "settings": ("list", "set"),
    }
    assert owners == {
        *(f"notes.{what}" for what in notes),
        *(f"entries.{what}" for what in entries),
        *("about.change", "about.undo", "inbox.foresee", "inbox.proposals"),
        *(f"{group}.{what}" for group, names in operating.items() for what in names),
    }
    assert all(tool.name == name for name, tool in OPERATIONS.items())


def test_an_answer_with_lines_of_a_note_is_limited_by_their_length(note, open_memory, monkeypatch) -> None:
    monkeypatch.setattr("memoriter.tools.notes.MAX_CHARS", 10)  # each line counts with its end
    note("memory/fits.md", "four\nfive\nlast\n")
    note("memory/over.md", "four\nfives\nlast\n")
    note("memory/long.md", "0123456789ab\nlast\n")
    memory = open_memory()
    read = [call(memory, "notes.get", {"path": f"memory/{name}.md"}) for name in ("fits", "over", "long")]
    assert [(one["text"], one["nextFrom"]) for one in read] == [
        ("four\nfive", 3),
        ("four", 2),
        ("0123456789", 2),
    ]


def test_lone_surrogates_are_replaced(note, open_memory) -> None:
    note("MEMORY.md", "heron\n")
    memory = open_memory()
    half = "heron \ud800"
    assert call(memory, "memory.search", {"query": half})["results"]
    assert call(memory, "entries.add", {"text": half, "tags": [half]})["entry"]["tags"] == ["heron ?"]
    assert call(memory, "entries.list", {"query": half, "session": half, "tags": [half]})["total"] == 0
    told = call(memory, "recall", {"messages": [{"role": "user", "content": half}], "session": half})
    assert "error" not in told
    assert call(memory, "recalls.list", {"session": "heron ?"})["total"] == 1
    assert call(memory, "notes.get", {"path": half})["error"].endswith(".")
    deep: object = "x"
    for _ in range(5000):
        deep = [deep]
    answer = call(memory, "capture", {"messages": [{"role": "user", "content": deep}]})
    assert answer["error"] == "`messages` must be plain JSON data that is not nested too deeply."


def test_a_cursor_is_only_valid_for_its_own_list(open_memory) -> None:
    memory = open_memory()
    for number in range(3):
        memory.entries.add(f"Statement number {number} about {'xyz'[number] * 5}")
    first = call(memory, "entries.list", {"limit": 2})
    rest = call(memory, "entries.list", {"limit": 2, "cursor": first["cursor"]})
    assert len({one["id"] for one in (*first["entries"], *rest["entries"])}) == 3
    assert rest["cursor"] is None
    wrong = call(memory, "entries.list", {"cursor": first["cursor"], "sort": "importance"})
    assert wrong["error"] == "`cursor` belongs to a list in another order. Start again without it."
    for cursor in ("x", "é", "W10", "WyJjcmVhdGVkIiwgIngiLCAxXQ", "WyJjcmVhdGVkIiwgTmFOLCAieCJd"):
        assert call(memory, "entries.list", {"cursor": cursor})["error"].startswith("`cursor` ")


@pytest.mark.parametrize("session", ["agent:main:telegram:group:42", "whatsapp:120363@g.us", "irc:#public"])
def test_a_session_key_in_the_arguments_is_checked_too(open_memory: Any, session: str) -> None:
    memory = open_memory()
    memory.entries.add("I prefer green tea.")
    toolbox = Toolbox(memory, tools=OPERATIONS)
    assert toolbox.call("recall", {"query": "I prefer green tea.", "session": session})["text"] == ""
    messages = [{"role": "user", "content": "I prefer black tea over green tea."}]
    for operation in ("capture", "flush", "summarise"):
        refused = toolbox.call(operation, {"messages": messages, "session": session})
        assert refused["error"] == "This session may not write to this memory."
    assert [entry.text for entry in memory.entries.list()] == ["I prefer green tea."]
    assert "green tea" in toolbox.call("recall", {"query": "I prefer green tea.", "session": "s-1"})["text"]
