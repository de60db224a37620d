"""A secret in the owner's note: the owner sees it, and no agent does."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import memoriter
from memoriter import Memory
from memoriter.agent.service import MemoryService
from memoriter.cli.app import app
from memoriter.extensions.anthropic.commands import MemoryCommands
from memoriter.memory import parts_of
from memoriter.tools.table import OPERATIONS
from memoriter.tools.toolbox import Toolbox

TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
MASKED = "[redacted github token]"
KEY_LINES = [f"{chr(97 + number)}QbIvAeDnCkRyPtBoDy" * 3 for number in range(20)]
NOTE = f"# Deploy\n\nThe deploy token of the heron robot is {TOKEN}, valid until May.\n"
KEY = "\n".join(
    ["# Key", "", "-----BEGIN PRIVATE KEY-----", *KEY_LINES, "-----END PRIVATE KEY-----", "", "Heron."]
)


@pytest.fixture
def memory(note, open_memory) -> Memory:
    note("memory/deploy.md", NOTE)
    memory: Memory = open_memory(retrieval__min_confidence=0)
    memory.sync()
    return memory


@pytest.mark.requirement("X11")
def test_no_tool_of_agents_shows_the_secret(memory: Memory) -> None:
    toolbox = Toolbox(memory)
    for name, arguments in (
        ("memory_search", {"query": "deploy token heron robot"}),
        ("memory_get", {"path": "memory/deploy.md"}),
        ("memory_get", {"path": "memory/deploy.md#L3-L3"}),
    ):
        result = json.dumps(toolbox.call(name, arguments))
        assert TOKEN not in result
        assert MASKED in result
    recalled = memory.recall("deploy token heron robot").text
    assert TOKEN not in recalled
    assert MASKED in recalled
    viewed = MemoryCommands(memory, "memory", None).view("/memories/deploy.md")
    assert TOKEN not in viewed
    assert MASKED in viewed


@pytest.mark.parametrize("access", ["read", "write"])
def test_operations_hide_the_secret_from_callers_that_are_not_the_owner(memory: Memory, access) -> None:
    memory.recall("deploy token heron robot")
    calls = (
        ("memory.search", {"query": "deploy token heron robot"}),
        ("notes.get", {"path": "memory/deploy.md"}),
        ("recalls.get", {}),
    )
    for name, arguments in calls:
        theirs = json.dumps(Toolbox(memory, tools=OPERATIONS, access=access).call(name, arguments))
        assert TOKEN not in theirs
        assert MASKED in theirs
        assert TOKEN in json.dumps(Toolbox(memory, tools=OPERATIONS).call(name, arguments))


def test_a_secret_in_a_heading_is_hidden_too(note, memory: Memory) -> None:
    paragraphs = ("The garden robot waters the tea every evening. " * 8, "The kestrel robot logs in. " * 8)
    note("memory/login.md", f"# Login\n\n## Token {TOKEN}\n\n{paragraphs[0]}\n\n{paragraphs[1]}\n")
    memory.sync()
    asked = {"query": "kestrel robot logs in"}
    for name, arguments in (("memory.search", asked), ("notes.chunks", {"path": "memory/login.md"})):
        theirs = json.dumps(Toolbox(memory, tools=OPERATIONS, access="read").call(name, arguments))
        assert TOKEN not in theirs
        assert MASKED in theirs
        assert TOKEN in json.dumps(Toolbox(memory, tools=OPERATIONS).call(name, arguments))
    assert TOKEN not in str(parts_of(memory).search.for_prompt(memoriter.Query("kestrel robot logs in")))
    assert TOKEN not in str(MemoryService(memory).search_memories("kestrel robot logs in"))


def test_an_operation_reads_the_lines_that_a_citation_names(note, memory: Memory) -> None:
    note("memory/long.md", "".join(f"line {number}\n" for number in range(1, 10)))
    read = Toolbox(memory, tools=OPERATIONS).call("notes.get", {"path": "memory/long.md#L4-L5"})
    assert (read["from"], read["text"], read["nextFrom"]) == (4, "line 4\nline 5", 6)


@pytest.mark.requirement("X11")
def test_the_owner_sees_it_in_python_and_on_the_command_line(memory: Memory, monkeypatch) -> None:
    monkeypatch.setenv("MEMORITER_EMBEDDING__PROVIDER", "none")
    assert TOKEN in memory.search("deploy token heron").hits[0].snippet
    assert TOKEN in memory.read("memory/deploy.md").text
    folders = ["--workspace", str(memory.settings.workspace), "--home", str(memory.settings.home)]
    for words in (["search", "deploy token heron"], ["get", "memory/deploy.md"]):
        assert TOKEN in CliRunner().invoke(app, [*folders, *words]).stdout


def test_a_key_is_hidden_line_by_line_and_line_numbers_stay(note, memory: Memory) -> None:
    note("memory/key.md", KEY)
    memory.sync()
    toolbox = Toolbox(memory)
    whole = toolbox.call("memory_get", {"path": "memory/key.md"})
    assert whole["totalLines"] == KEY.count("\n") + 1
    assert whole["text"].split("\n") == ["# Key", "", *["[redacted private key]"] * 22, "", "Heron."]
    middle = toolbox.call("memory_get", {"path": "memory/key.md", "from": 10, "lines": 2})
    assert middle["text"] == "[redacted private key]\n[redacted private key]"
    for line in KEY_LINES:
        found = json.dumps(toolbox.call("memory_search", {"query": line[:18], "maxResults": 20}))
        assert not [secret for secret in KEY_LINES if secret in found]
