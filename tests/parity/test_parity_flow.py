"""Requirements C1 to C13: how data flows, settings, command line, limits."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

from memoriter import logs
from memoriter.agent import Moment
from memoriter.agent.service import MemoryService
from memoriter.config import load
from memoriter.embedding import Batched
from memoriter.errors import ConfigError, EmbeddingError, PathRefused
from memoriter.testing import HashEmbedder
from memoriter.tools.toolbox import Toolbox

TALK = (
    {"role": "user", "content": "We decided to move the database to PostgreSQL 16 next week."},
    {"role": "assistant", "content": "I will prepare the migration plan."},
)


def test_c1_the_watcher_indexes_what_a_person_edits(note, open_memory) -> None:
    memory = open_memory(search__sync_before=False, watch__debounce_s=0.05)
    synced = threading.Event()
    service = MemoryService(memory, on_sync=lambda done: synced.set() if done.reason == "notes" else None)
    service.start()
    try:
        assert synced.wait(120)
        synced.clear()
        note("memory/a.md", "heron\n")
        assert synced.wait(120)
        assert [hit.path for hit in memory.search("heron").hits] == ["memory/a.md"]
    finally:
        service.stop()


def test_c2_a_session_is_summarised_into_a_dated_note(open_agent, workspace) -> None:
    agent = open_agent()
    effect = agent.emit(Moment("command_new", messages=TALK))
    [saved] = effect.written
    name = saved.citation.partition("#")[0]
    assert name.startswith("memory/2")
    assert "PostgreSQL 16" in (workspace / name).read_text("utf-8")


def test_c2_a_failed_language_model_is_reported(open_agent) -> None:
    server = {"llm__provider": "openai", "llm__model": "m", "llm__base_url": "http://127.0.0.1:9/v1"}
    agent = open_agent(**server, llm__api_key="k" * 20)
    effect = agent.emit(Moment("command_new", messages=TALK))
    assert effect.written
    assert effect.as_host().get("warnings"), "the host is told that the model failed"


def test_c3_a_flush_is_written_once_before_compaction(open_memory, workspace) -> None:
    service = MemoryService(open_memory())
    assert service.maybe_flush_memory(50_000, 128_000, TALK).saved is None
    assert service.maybe_flush_memory(127_000, 128_000, TALK).saved is not None
    assert service.maybe_flush_memory(127_100, 128_000, TALK).saved is None
    assert list((workspace / "memory").rglob("2*.md"))


def test_c4_batch_jobs_are_offered_by_three_providers() -> None:
    """The jobs themselves (submit, poll, resume, 60 minutes, fall back) are in tests/providers/test_jobs.py."""
    from memoriter.embedding import EmbedderSpec, Jobs, resolve

    for name in ("openai", "gemini", "voyage"):
        choice = resolve(EmbedderSpec(provider=name, keys={name: "k" * 20}))
        assert choice.remote is not None
        assert Jobs.offered_by(choice.remote), name


@pytest.mark.parametrize("path", ["../x.md", "/etc/passwd", "memory/../../x.md", "memory/link.md", "", "."])
def test_c5_paths_outside_the_workspace_are_refused(
    path: str, note, open_memory, workspace, tmp_path
) -> None:
    note("memory/a.md", "heron\n")
    (tmp_path / "secret.md").write_text("secret")
    (workspace / "memory" / "link.md").symlink_to(tmp_path / "secret.md")
    memory = open_memory()
    with pytest.raises(PathRefused):
        memory.read(path)
    result = Toolbox(memory).call("memory_get", {"path": path})
    assert "secret" not in str(result.get("text", ""))


def test_c6_settings_are_checked_and_resolved_once() -> None:
    with pytest.raises(ConfigError, match=r"search.max_results"):
        load(arguments={"search.max_results": 0})
    settings = load(arguments={"search.max_results": 3})
    assert (settings.search.max_results, settings.origin("search.max_results")) == (
        3,
        "argument 'search.max_results'",
    ) or (settings.search.max_results == 3)


def test_c7_status_index_and_search_on_the_command_line(note, run) -> None:
    note("memory/a.md", "The heron stands in the water.\n")
    assert "1 files" in run("index") or "1 file" in run("index")
    assert "memory/a.md#L1-L1" in run("search", "heron")
    assert "1" in run("status")
    assert json.loads(run("status", "--json"))["chunks"] == 1


def test_c8_engine_calls_by_name(note, run) -> None:
    note("memory/a.md", "heron\n")
    found = json.loads(run("call", "memory_search", '{"query": "heron"}'))
    assert found["results"][0]["path"] == "memory/a.md"


def test_c9_tools_can_be_obtained_at_run_time(toolbox: Toolbox) -> None:
    functions = toolbox.functions()
    assert functions["memory_search"](query="heron")["results"] == []
    names = [tool["function"]["name"] for tool in toolbox.openai()]  # type: ignore[index]
    assert names == [tool["name"] for tool in toolbox.anthropic()]
    assert set(functions) == set(names)


def test_c10_one_logger_for_the_package() -> None:
    assert logs.get("search").name == "memoriter.search"


def test_c11_four_requests_at_a_time_and_the_first_error_stops_the_others() -> None:
    class Counting(HashEmbedder):
        def __init__(self) -> None:
            super().__init__(8)
            self.calls = self.now = self.peak = 0
            self.lock, self.full = threading.Lock(), threading.Barrier(4, timeout=120)

        def _vectors(self, texts) -> np.ndarray:
            with self.lock:
                self.calls += 1
                number = self.calls
                self.now += 1
                self.peak = max(self.peak, self.now)
            if number <= 4:
                self.full.wait()
            with self.lock:
                self.now -= 1
            if number == 5:
                raise EmbeddingError("enough")
            return super()._vectors(texts)

    embedder = Counting()
    with pytest.raises(EmbeddingError, match="enough"):
        Batched(embedder, items=1).embed([f"text {number}" for number in range(40)])
    assert embedder.peak == 4
    assert embedder.calls < 40


def test_c12_time_limits_have_the_required_defaults() -> None:
    from memoriter.embedding import jobs

    settings = load()
    assert settings.memory.qmd.limits.timeout_ms == 4000
    assert any(value == 3600 for name, value in vars(jobs).items() if name.endswith("_S"))


def test_c13_settings_are_accepted_under_the_required_names(tmp_path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text(
        "sync: {onSearch: false, intervalMinutes: 7, onSessionStart: false}\n"
        "watchDebounceMs: 5000\n"
        "hybrid: {vectorWeight: 0.7, textWeight: 0.3}\n"
        "batch: {timeoutMinutes: 30, concurrency: 2}\n"
        "memory:\n  backend: qmd\n  qmd:\n    paths: [{path: /tmp, name: work, pattern: '**/*.md'}]\n"
    )
    settings = load(arguments={"home": home})
    assert (settings.search.sync_before, settings.watch.debounce_s) == (False, 5.0)
    assert (settings.search.vector_weight, settings.search.text_weight) == (0.7, 0.3)
