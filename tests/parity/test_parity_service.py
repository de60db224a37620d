"""Requirements E1 to E7: the service, its tools, files and environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memoriter import Memory
from memoriter.agent import Moment
from memoriter.agent.service import MemoryService
from memoriter.config import load
from memoriter.notes.watch import Watcher
from memoriter.tools.toolbox import Toolbox

TALK = ({"role": "user", "content": "We decided to move the database to PostgreSQL 16."},)


def test_e1_the_service_starts_searches_injects_flushes_saves_and_stops(note, open_memory) -> None:
    note("memory/a.md", "The heron stands in the water.\n")
    memory = open_memory(search__min_score=0.35)
    with MemoryService(memory) as service:
        assert [hit.path for hit in memory.search("heron").hits] == ["memory/a.md"]
        assert service.inject_relevant_memories([{"role": "user", "content": "where does the heron stand?"}])
        assert service.maybe_flush_memory(1, 1000, TALK).saved is None
        assert service.save_conversation_memory(TALK, "s1").saved
        assert memory.sync(force=True).failed == 0
        assert memory.status().files >= 1
    assert (load().search.max_results, memory.settings.search.min_score) == (6, 0.35)


def test_e1b_the_service_takes_switches_for_search_and_saving(note, open_memory) -> None:
    note("memory/a.md", "The heron stands in the water.\n")
    memory = open_memory()
    off = MemoryService(memory, search_enabled=False, auto_save_enabled=False)
    messages = [{"role": "user", "content": "where does the heron stand?"}]
    assert off.inject_relevant_memories(messages) == messages
    assert off.save_conversation_memory(TALK, "s1").saved is None


def test_e2_the_debounce_is_a_setting_and_hidden_files_are_ignored(note, open_memory) -> None:
    assert load(arguments={"watch.debounce_s": 5}).watch.debounce_s == 5
    note("memory/.hidden.md", "a heron\n")
    note("memory/.git/x.md", "a heron\n")
    assert open_memory().search("heron").hits == ()
    assert Watcher


def test_e3_save_search_and_stats_are_tools(toolbox: Toolbox) -> None:
    saved = toolbox.call(
        "memory_save",
        {"content": "用户喜欢使用 TypeScript 开发", "title": "用户偏好", "tags": ["preference", "tech"]},
    )
    assert saved.get("error") is None
    found = toolbox.call("memory_search", {"query": "用户偏好", "maxResults": 1})
    [result] = found["results"]
    assert "用户喜欢使用 TypeScript 开发" in result["snippet"]
    stats = toolbox.call("memory_stats", {})
    assert stats["file_count"] >= 1
    assert stats["chunk_count"] >= 1
    assert stats["total_size"] > 0


def test_e4_core_facts_daily_logs_and_items_by_category(open_memory, note, workspace: Path) -> None:
    note("MEMORY.md", "Core: herons.\n")
    memory = open_memory()
    memory.save("A stork was seen.")
    memory.save("A pelican was seen.", title="pelican", category="birds")
    assert (workspace / "memory" / "birds" / "pelican.md").exists()
    assert list((workspace / "memory").glob("2*-*.md"))
    assert memory.search("pelican").hits[0].path == "memory/birds/pelican.md"
    assert memory.search("herons").hits[0].path == "MEMORY.md"


def test_e5_sync_reindex_stats_and_search_on_the_command_line(note, run) -> None:
    note("memory/a.md", "The heron stands in the water.\n")
    run("index")  # sync
    run("index", "--force")  # reindex
    assert json.loads(run("stats", "--json"))["file_count"] == 1
    assert "memory/a.md#L1-L1" in run("search", "heron")


@pytest.mark.parametrize("name", ["memory", "notes"])
def test_e6_the_environment_names_the_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("MEMORY_DIR", str(tmp_path / "data" / name))
    monkeypatch.setenv("STORAGE_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://127.0.0.1:11434")
    monkeypatch.setenv("MEMORITER_EMBEDDING__PROVIDER", "none")
    settings = load()
    assert settings.embedding.ollama_base_url == "http://127.0.0.1:11434"
    notes = tmp_path / "data" / name
    notes.mkdir(parents=True)
    (notes / "MEMORY.md").write_text("The owl sleeps in the barn.")
    with Memory.open() as memory:
        memory.save("A heron was seen.")
        memory.save("The red kite nests in the oak.", title="Kite", category="birds")
        assert memory.search("heron").hits
        assert memory.search("owl").hits
    assert (notes / "birds" / "kite.md").is_file()
    logs = [path.relative_to(notes).as_posix() for path in notes.rglob("2*.md")]
    assert len(logs) == 1
    assert "/" not in logs[0], "the daily log is in MEMORY_DIR itself"


def test_e7_an_agent_has_a_flush_tools_and_a_page(open_agent) -> None:
    """The page itself is tested in a browser in tests/page/."""
    from importlib.resources import files

    agent = open_agent()
    flushed = agent.emit(Moment("before_compaction", messages=TALK, window=128_000, tokens=127_000))
    assert flushed.written
    assert {"memory_search", "memory_save", "memory_store", "memory_forget"} <= set(agent.tools)
    assert files("memoriter").joinpath("server", "web", "index.html").is_file()
