"""The options of a `MemoryService`: what it searches and what it writes."""

from __future__ import annotations

import pytest

from memoriter import Memory, MemoryService

MESSAGES = [
    {"role": "user", "content": "Where does the heron nest? We decided to watch it every day in June."}
]


@pytest.fixture
def memory(note, open_memory) -> Memory:
    for number in range(5):
        note(f"memory/{number}.md", f"The heron nests in marsh number {number}.\n")
    return open_memory(retrieval__min_confidence=0)


@pytest.mark.requirement("E1")
def test_search_uses_the_defaults_of_the_service(memory: Memory) -> None:
    service = MemoryService(memory, max_search_results=2)
    assert len(service.search_memories("heron marsh")) == 2
    assert len(service.search_memories("heron marsh", max_results=3)) == 3
    strict = MemoryService(memory, min_score=1.0)
    assert len(strict.search_memories("quokka")) == 0
    assert service.inject_relevant_memories(MESSAGES)[0]["role"] == "system"


@pytest.mark.requirement("E1b")
def test_search_can_be_switched_off(memory: Memory) -> None:
    service = MemoryService(memory, search_enabled=False)
    answer = service.search_memories("heron")
    assert (answer.hits, answer.degraded) == ((), "Search is switched off (search_enabled).")
    assert service.inject_relevant_memories(MESSAGES) == MESSAGES


@pytest.mark.requirement("E1b")
def test_automatic_saving_can_be_switched_off(memory: Memory, workspace) -> None:
    before = sorted(workspace.rglob("*"))
    off = MemoryService(memory, auto_save_enabled=False)
    assert off.save_conversation_memory(MESSAGES, "s").saved is None
    assert off.maybe_flush_memory(None, None, MESSAGES).saved is None
    assert sorted(workspace.rglob("*")) == before
    assert MemoryService(memory).save_conversation_memory(MESSAGES, "s").saved is not None


@pytest.mark.requirement("E1")
def test_a_host_can_sync_rebuild_and_count(memory: Memory, note) -> None:
    done = []
    service = MemoryService(memory, on_sync=done.append)
    first = service.sync_index()
    assert (first.reason, first.error, first.report and first.report.files) == ("asked", None, 5)
    note("memory/new.md", "The bittern nests in the reeds.\n")
    again, rebuilt = service.sync_index(), service.reindex()
    assert [one.report and one.report.unchanged for one in (again, rebuilt)] == [5, 0]
    assert done == [first, again, rebuilt]
    stats = service.get_stats()
    assert (stats, stats.files, stats.chunks) == (memory.status(), 6, 6)
