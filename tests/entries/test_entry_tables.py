"""What people see of entries on the command line: type, similarity, stars, conversation, and why a prompt has them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from memoriter import Memory
from memoriter.cli.app import app
from memoriter.tools.table import OPERATIONS
from memoriter.tools.toolbox import Toolbox

Run = Callable[..., str]
TEA, DESK = "I drink green tea in the morning", "My desk is next to the window"


@pytest.fixture
def memory(open_memory) -> Memory:
    memory = open_memory(embedding__provider="none")
    memory.remember(
        TEA,
        "user_preference",
        importance=4,
        session="agent:main:telegram:direct:7",
        tags=("drinks", "morning"),
    )
    memory.remember(DESK, "fact", importance=2, source="cli", tags=("office",))
    return memory


@pytest.fixture
def run(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("MEMORITER_EMBEDDING__PROVIDER", "none")
    monkeypatch.setenv("COLUMNS", "200")
    folders = ["--workspace", str(memory.settings.workspace), "--home", str(memory.settings.home)]

    def run_(*words: str) -> str:
        result = CliRunner().invoke(app, [*folders, *words])
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout

    return run_


def texts(lines: str) -> list[str]:
    return [json.loads(line)["entry"]["text"] for line in lines.splitlines()[1:]]


@pytest.mark.requirement("D11", "D15")
def test_a_search_shows_type_similarity_and_stars_of_entries(run: Run) -> None:
    first = run("search", "green tea", "--source", "entries").splitlines()[0]
    assert "user_preference" in first
    assert "★★★★☆" in first
    (hit,) = json.loads(run("search", "green tea", "--json"))["results"]
    assert f"similarity {hit['similarity']:.2f}" in first
    shown = {name: hit[name] for name in ("type", "importance", "session")}
    assert shown == {"type": "user_preference", "importance": 4.0, "session": "agent:main:telegram:direct:7"}


@pytest.mark.requirement("D11")
def test_a_list_begins_with_the_total_and_has_the_words_of_its_language(run: Run, memory: Memory) -> None:
    assert run("list", "--limit", "1").splitlines()[0] == "2 entries"
    assert " user_preference · ★★★★☆" in run("list", "--type", "user_preference")
    memory.remember("我喜欢在早上喝绿茶，不喜欢咖啡", "user_preference", importance=4, tags=("茶",))
    first, _, about = run("list", "--tags", "茶").splitlines()
    assert (first, about.split(" · ")[0].strip()) == ("共 1 条", "用户偏好 (user_preference)")


@pytest.mark.requirement("D12")
def test_lists_and_histories_name_the_conversation(run: Run, memory: Memory) -> None:
    assert "agent:main:telegram:direct:7" in run("list", "--type", "user_preference")
    assert "agent:main:telegram:direct:7" in run("history", memory.entries.list("user_preference")[0].id)
    assert "cli" in run("list", "--type", "fact")


def test_why_shows_texts_and_needs_no_id(run: Run, memory: Memory, note) -> None:
    note("memory/tea.md", "# Drinks\n\nThe green tea is in the blue tin.\n")
    memory.sync()
    recalled = memory.recall("green tea", session="agent:main:telegram:direct:7")
    shown = run("why")
    assert f"Recall {recalled.id}" in shown
    assert "session agent:main:telegram:direct:7" in shown
    assert TEA in shown
    assert "The green tea is in the blue tin." in shown
    assert shown.count("agent:main:telegram:direct:7") == 2  # the recall, and the origin of the entry
    considered = json.loads(run("why", "--json"))["considered"]
    assert {one["kind"]: one["text"] for one in considered} == {
        "entry": TEA,
        "note": "# Drinks\n\nThe green tea is in the blue tin.",
    }
    by_tool = Toolbox(memory, tools=OPERATIONS).call("recalls.get", {})
    assert [one["text"] for one in by_tool["considered"]] == [one["text"] for one in considered]


@pytest.mark.requirement("D15")
def test_an_export_is_filtered_by_importance_and_tags(run: Run, memory: Memory) -> None:
    toolbox = Toolbox(memory, tools=OPERATIONS)
    cases: list[tuple[dict[str, object], list[str], list[str]]] = [
        ({}, [], [TEA, DESK]),
        ({"min_importance": 3}, ["--min-importance", "3"], [TEA]),
        ({"tags": ["office"]}, ["--tags", "office"], [DESK]),
        ({"tags": ["drinks", "morning"]}, ["--tags", "drinks, morning"], [TEA]),
        ({"tags": ["drinks", "office"]}, ["--tags", "drinks,office"], []),
        ({"type": "fact", "min_importance": 3}, ["--type", "fact", "--min-importance", "3"], []),
    ]
    for filters, options, expected in cases:
        assert texts("\n".join(memory.entries.export(**filters))) == expected
        assert texts(run("export", *options)) == expected
        named = {"types" if name == "type" else name: value for name, value in filters.items()}
        named |= {"types": [named["types"]]} if "types" in named else {}
        assert texts(toolbox.call("entries.export", named)["data"]) == expected
        exported = toolbox.call("memory", {"action": "export", **filters})
        assert (texts(exported["data"]), exported["total"]) == (expected, len(expected))


def test_the_tool_memory_counts_what_its_filters_match(memory: Memory) -> None:
    toolbox = Toolbox(memory)

    def listed(**arguments: object) -> tuple[list[str], int]:
        result = toolbox.call("memory", {"action": "list", **arguments})
        return [found["text"] for found in result["memories"]], result["total"]

    assert listed() == ([DESK, TEA], 2)
    assert listed(limit=1) == ([DESK], 2)
    assert listed(type="fact") == ([DESK], 1)
    assert listed(tags=["morning"]) == ([TEA], 1)
    assert listed(minImportance=5) == ([], 0)
    found = toolbox.call("memory", {"action": "search", "query": "tea desk", "type": "fact", "limit": 1})
    assert [one["text"] for one in found["memories"]] == [DESK]
