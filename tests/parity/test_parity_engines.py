"""Requirements A1 to A11: engines, fallback and tools. Each test is named after its requirement."""

from __future__ import annotations

import logging

import pytest

from memoriter.config import load
from memoriter.engines.fallback import Cooldown, EnginePool, cache_key, warm_up
from memoriter.errors import EngineError, PathRefused, StoreError
from memoriter.records import Query
from memoriter.tools.toolbox import Toolbox

DIRECT, GROUP = "agent:main:main", "agent:main:telegram:group:42"


@pytest.fixture
def with_qmd(open_memory, tmp_path):
    from standin import StandIn

    standin = StandIn.make(tmp_path / "bin")
    settings = {
        "memory__backend": "qmd",
        "memory__qmd__command": str(standin.command),
        "memory__qmd__limits__timeout_ms": 20_000,
        "memory__qmd__update__debounce": 0,
    }
    return standin, lambda **more: open_memory(**{**settings, **more})


def test_a1_backend_and_qmd_settings_are_read_under_the_names_of_openclaw(tmp_path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "extra").mkdir()
    (home / "config.yaml").write_text(
        "memory:\n  backend: qmd\n  qmd:\n    searchMode: query\n"
        f"    collections: [{tmp_path / 'extra'}]\n"
        "    update: {interval: 5m, debounce: 2s, commandTimeout: 10s, updateTimeout: 60s}\n"
        "    limits: {maxResults: 4, maxSnippetChars: 300, maxInjectedChars: 3000, timeoutMs: 2500}\n"
        "    citations: off\n    scope: {default: allow}\n"
    )
    settings = load(arguments={"home": home})
    qmd, update = settings.memory.qmd, settings.memory.qmd.update
    assert (settings.memory.backend, qmd.search_mode, settings.memory.citations) == ("qmd", "query", "off")
    assert (update.interval, update.debounce, update.command_timeout, update.update_timeout) == (
        300,
        2,
        10,
        60,
    )
    assert (settings.search.max_results, settings.search.snippet_chars) == (4, 300)
    assert (settings.memory.max_injected_chars, qmd.limits.timeout_ms) == (3000, 2500)
    assert settings.memory.scope.default == "allow"
    assert load().memory.max_injected_chars == 4000
    assert load().memory.qmd.limits.timeout_ms == 4000


def test_a2_engines_are_cached_and_a_failure_gives_builtin_or_an_error_but_never_raises(tmp_path) -> None:
    from stubs import Clock, Maker

    pool, qmd, builtin = EnginePool(clock=Clock()), Maker("qmd"), Maker("local")
    key = cache_key("main", ("settings",))
    assert pool.get(key, qmd, builtin).engine is pool.get(key, qmd, builtin).engine
    assert (
        pool.get(cache_key("other", ("settings",)), qmd, builtin).engine
        is not pool.get(key, qmd, builtin).engine
    )
    broken, both = Maker("qmd"), Maker("local")
    broken.error = EngineError("no qmd")
    chosen = pool.get("broken", broken, builtin).engine
    assert chosen is not None
    assert chosen.search(Query("x")).provider == "local"
    both.error = StoreError("no disk")
    nothing = pool.get("both", broken, both)
    assert (nothing.engine, bool(nothing.error)) == (None, True)


def test_a3_the_primary_fails_over_and_is_tried_again_after_a_cooldown() -> None:
    from stubs import Clock, Maker

    clock, qmd, builtin = Clock(), Maker("qmd"), Maker("local")
    pool = EnginePool(cooldown=Cooldown(60, 600), clock=clock)
    engine = pool.get("key", qmd, builtin).engine
    assert engine is not None
    assert (engine.search(Query("x")).provider, len(builtin.created)) == ("qmd", 0)
    qmd.created[0].error = EngineError("qmd was killed.")
    answer = engine.search(Query("x"))
    assert (answer.provider, answer.fallback, "qmd was killed" in (answer.degraded or "")) == (
        "local",
        True,
        True,
    )
    clock.now += 60
    again = pool.get("key", qmd, builtin).engine
    assert again is not None
    assert again.search(Query("x")).provider == "qmd"
    again.close()
    assert qmd.created[-1].closed


def test_a4_every_engine_offers_the_same_calls(note, open_memory) -> None:
    note("memory/a.md", "heron\n")
    engine = open_memory()._engine
    assert [hit.path for hit in engine.search(Query("heron")).hits] == ["memory/a.md"]
    assert engine.read_file("memory/a.md", 1, 1).text == "heron"
    assert (engine.status().backend, engine.sync().failed) == ("builtin", 0)
    assert (engine.probe_embedding(), engine.probe_vector()) == (None, None)
    engine.close()


def test_a5_memory_search_waits_for_pending_changes_checks_the_scope_cites_and_clamps(
    note, open_memory
) -> None:
    for number in range(9):
        note(f"memory/{number}.md", f"heron {number} " + "word " * 100)
    memory = open_memory(memory__max_injected_chars=1000)
    box = Toolbox(memory, session_key=DIRECT)
    first = box.call("memory_search", {"query": "heron"})
    assert {"results", "provider", "model", "fallback", "citations"} <= first.keys()
    assert 0 < sum(len(result["snippet"]) for result in first["results"]) <= 1000
    assert all("Source: memory/" in result["snippet"] for result in first["results"])
    note("memory/new.md", "a quokka was seen\n")  # by an editor, a moment before the search
    found = box.call("memory_search", {"query": "quokka"})
    assert (found["results"][0]["path"], found["degraded"]) == ("memory/new.md", None)
    assert Toolbox(memory, session_key=GROUP).call("memory_search", {"query": "heron"})["results"] == []
    assert "MEMORY.md" in str(box.openai())


def test_a6_memory_get_reads_some_lines_inside_the_workspace(note, toolbox: Toolbox) -> None:
    note("memory/a.md", "\n".join(f"line {number}" for number in range(1, 400)))
    part = toolbox.call("memory_get", {"path": "memory/a.md", "from": 10, "lines": 2})
    assert part["text"] == "line 10\nline 11"
    whole = toolbox.call("memory_get", {"path": "memory/a.md"})
    assert (len(whole["text"].splitlines()) < 399, whole["nextFrom"] is not None) == (True, True)


def test_a7_citations_are_on_off_or_automatic(note, open_memory) -> None:
    note("memory/a.md", "heron\n")
    shown = {}
    for mode in ("on", "off", "auto"):
        memory = open_memory(memory__citations=mode, memory__scope__default="allow")
        for name, key in (("direct", DIRECT), ("group", GROUP)):
            [result] = Toolbox(memory, session_key=key).call("memory_search", {"query": "heron"})["results"]
            shown[mode, name] = "Source: memory/a.md#L1-L1" in result["snippet"]
    assert shown == {
        ("on", "direct"): True,
        ("on", "group"): True,
        ("off", "direct"): False,
        ("off", "group"): False,
        ("auto", "direct"): True,
        ("auto", "group"): False,
    }


def test_a8_the_engine_is_warmed_up_at_the_start(with_qmd, caplog: pytest.LogCaptureFixture) -> None:
    _, open_with_qmd = with_qmd
    with caplog.at_level(logging.INFO, "memoriter"):
        assert open_with_qmd().warm_up() is None
        problem = open_with_qmd(memory__qmd__command="/nowhere/qmd").warm_up()
    assert "/nowhere/qmd does not exist" in str(problem)
    assert any(record.levelname == "WARNING" for record in caplog.records)
    assert warm_up


def test_a9_the_cache_saves_embeddings_and_a_failing_embedder_leaves_keywords(note, open_memory) -> None:
    from memoriter.testing import FailingEmbedder

    note("memory/a.md", "the same text\n")
    note("memory/b.md", "the same text\n")
    memory = open_memory()
    assert (memory.sync().embedded, memory.sync(force=True).embedded) == (1, 0)
    memory.close()
    note("memory/c.md", "heron\n")
    broken = open_memory(FailingEmbedder())
    report = broken.sync()
    assert report.degraded
    assert [hit.path for hit in broken.search("heron").hits] == ["memory/c.md"]


def test_a10_memory_enters_the_prompt_by_tools_and_by_injection(open_agent) -> None:
    from memoriter.agent import Moment

    agent = open_agent()
    agent.memory.remember("I prefer tabs over spaces", type="user_preference")
    effect = agent.emit(Moment("before_agent_start", prompt="do I prefer tabs or spaces?"))
    assert "I prefer tabs over spaces" in effect.as_host()["prependContext"]
    assert "memory_search" in agent.tools


def test_a11_the_checklist_of_eight_questions_holds(note, with_qmd) -> None:
    """The other seven questions are in tests/engines/test_checklist.py; this is the sixth, as it is asked."""
    standin, open_with_qmd = with_qmd
    memory = open_with_qmd()
    note("memory/a.md", "heron\n")
    assert [hit.path for hit in memory.search("heron").hits] == ["memory/a.md"]
    note("memory/b.md", "stork\n")
    assert [hit.path for hit in memory.search("stork").hits] == ["memory/b.md"]
    standin.fault("exit1")
    assert memory.search("heron").fallback
    with pytest.raises(PathRefused):
        memory.read("../outside.md")
