"""The checklist of eight requirements for an agent memory, one test for each."""

from __future__ import annotations

import pytest
from standin import StandIn
from stubs import Clock, Maker

from memoriter.errors import EngineError
from memoriter.extensions.qmd.fallback import EnginePool, FallbackEngine
from memoriter.memory import parts_of
from memoriter.records import Query
from memoriter.tools.toolbox import Toolbox

DIRECT, GROUP = "agent:main:main", "agent:main:telegram:group:42"


@pytest.fixture
def open_with_qmd(open_memory, standin: StandIn):
    settings = {
        "memory__backend": "qmd",
        "memory__qmd__command": str(standin.command),
        "memory__qmd__limits__timeout_ms": 20_000,
        "memory__qmd__update__debounce": 0,
    }
    return lambda **more: open_memory(**{**settings, **more})


@pytest.mark.requirement("A11")
def test_1_when_qmd_dies_the_builtin_engine_takes_over(note, open_with_qmd, standin: StandIn) -> None:
    note("memory/a.md", "heron\n")
    memory = open_with_qmd()
    assert memory.search("heron").provider == "qmd"
    standin.fault("exit1")
    answer = memory.search("heron")
    assert isinstance(memory._parts.engine, FallbackEngine)
    assert memory._parts.engine.primary_failed
    assert (answer.fallback, [hit.path for hit in answer.hits]) == (True, ["memory/a.md"])


@pytest.mark.requirement("A11")
def test_2_a_failed_engine_is_removed_from_the_pool_and_the_next_selection_tries_qmd_again() -> None:
    clock, qmd, builtin = Clock(), Maker("qmd"), Maker("local")
    engines = EnginePool(clock=clock)
    failed = engines.get("key", qmd, builtin)
    qmd.created[0].error = EngineError("qmd was killed.")
    failed.search(Query("x"))
    clock.now += 60
    again = engines.get("key", qmd, builtin)
    assert again is not failed
    assert again.search(Query("x")).provider == "qmd"


@pytest.mark.requirement("A11")
def test_3_without_an_engine_tools_return_disabled_results(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    toolbox = Toolbox.open(workspace=tmp_path, home=tmp_path / "file" / "home")
    result = toolbox.call("memory_search", {"query": "heron"})
    assert (result["disabled"], result["results"]) == (True, [])
    assert result["error"].startswith("Memory is disabled: ")


@pytest.mark.requirement("A5", "A11")
def test_4_all_snippets_together_stay_below_max_injected_chars(note, open_with_qmd) -> None:
    for number in range(9):
        note(f"memory/{number}.md", f"heron {number} " + "word " * 100)
    toolbox = Toolbox(open_with_qmd(memory__max_injected_chars=1000))
    results = toolbox.call("memory_search", {"query": "heron"})["results"]
    assert 0 < sum(len(result["snippet"]) for result in results) <= 1000
    assert len(results) < 6


@pytest.mark.requirement("A11")
def test_5_citations_are_shown_in_direct_chats_but_not_in_groups(note, open_with_qmd) -> None:
    note("memory/a.md", "heron\n")
    memory = open_with_qmd(memory__scope__default="allow")
    direct = Toolbox(memory, session=DIRECT).call("memory_search", {"query": "heron"})
    group = Toolbox(memory, session=GROUP).call("memory_search", {"query": "heron"})
    assert (direct["citations"], direct["results"][0]["snippet"]) == (
        True,
        "heron\n\nSource: memory/a.md#L1-L1",
    )
    assert (group["citations"], group["results"][0]["snippet"]) == (False, "heron")
    assert "citation" not in group["results"][0]


@pytest.mark.requirement("A5", "A11")
def test_6_a_search_waits_for_what_was_just_written(note, open_with_qmd) -> None:
    memory = open_with_qmd()
    note("memory/a.md", "heron\n")
    memory.search("heron")
    note("memory/b.md", "stork\n")
    memory.mark_changed()
    assert [hit.path for hit in memory.search("stork").hits] == ["memory/b.md"]


@pytest.mark.requirement("A5", "A11")
def test_7_a_session_outside_the_scope_finds_nothing(note, open_with_qmd) -> None:
    note("memory/a.md", "heron\n")
    memory = open_with_qmd()
    assert memory.search("heron", session=DIRECT).hits
    assert memory.search("heron", session=GROUP).hits == ()
    assert Toolbox(memory, session=GROUP).call("memory_search", {"query": "heron"})["results"] == []
    assert Toolbox(memory, session=GROUP).call("memory_get", {"path": "memory/a.md"})["text"] == ""


@pytest.mark.requirement("A11")
def test_8_wrong_settings_of_qmd_are_reported_at_the_start(open_with_qmd) -> None:
    memory = open_with_qmd(memory__qmd__command="/nowhere/qmd")
    problem = parts_of(memory).warm_up()
    assert problem is not None
    assert "/nowhere/qmd does not exist" in problem
    assert "/nowhere/qmd does not exist" in (memory.status().degraded or "")
