"""Agent: whatever is wrong with the memory, the host continues and learns why."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from talk import TEA, emit, user

from memoriter import Memory
from memoriter.agent import EVENTS, Agent, Effect, Event, Moment
from memoriter.agent.hooks import DEADLINES
from memoriter.agent.service import MemoryService
from memoriter.errors import ConfigError, MemoriterError, MemoryDisabled
from memoriter.sessions.messages import turns_of_messages
from memoriter.testing import HashEmbedder
from memoriter.tools.table import call
from memoriter.tools.toolbox import TOOLS

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix

OpenAgent = Callable[..., Agent]
NOTE_TOOLS = ("memory_search", "memory_get", "memory_save", "memory_stats")
ENTRY_TOOLS = ("memory_recall", "memory_store", "memory_forget", "memory")


@pytest.mark.requirement("A10", "B9", "E7")
@pytest.mark.parametrize(
    ("slot", "tools"),
    [
        ("memory-core", NOTE_TOOLS),
        ("memory-lancedb", ENTRY_TOOLS),
        ("memory-full", (*NOTE_TOOLS, *ENTRY_TOOLS)),
    ],
)
def test_exactly_one_plugin_is_active_and_decides_which_tools_exist(
    open_agent: OpenAgent, slot: str, tools: tuple[str, ...]
) -> None:
    agent = open_agent(slot)
    assert (agent.error, agent.plugin and agent.plugin.name, agent.tools) == (None, slot, tools)
    assert emit(agent, "session_start").tools == tools


def test_the_plugin_that_the_owner_names_overrides_the_default_of_the_host(open_agent: OpenAgent) -> None:
    assert open_agent(None).tools == NOTE_TOOLS
    assert open_agent(None, "memory-full").tools == (*NOTE_TOOLS, *ENTRY_TOOLS)
    assert open_agent("memory-core", "memory-full").tools == NOTE_TOOLS
    assert (
        open_agent("none", "memory-full").error == "Memory is switched off: `plugins.slots.memory` is `none`."
    )


def test_a_closed_agent_does_not_start(open_agent: OpenAgent) -> None:
    agent = open_agent("memory-core")
    agent.close()
    assert agent.start() is None


def test_with_an_empty_slot_every_effect_says_why_there_is_no_memory(
    open_agent: OpenAgent, workspace: Path
) -> None:
    agent = open_agent("none")
    off = "Memory is switched off: `plugins.slots.memory` is `none`."
    for event in EVENTS:
        effect = emit(agent, event, *TEA, prompt="tea?")
        assert effect == Effect(warnings=(off,))
        assert effect.as_host() == {"warnings": [off]}
    assert (agent.plugin, agent.tools, agent.start()) == (None, (), None)
    for part in ("memory", "service"):
        with pytest.raises(MemoryDisabled, match="Memory is switched off"):
            getattr(agent, part)
    assert list(workspace.rglob("*.md")) == []


@pytest.mark.requirement("B9")
def test_an_unknown_plugin_gives_an_error_that_lists_the_known_ones(open_agent: OpenAgent) -> None:
    agent = open_agent("memory-cor")
    assert agent.error == (
        "The setting plugins.slots.memory = 'memory-cor' from overrides is not valid: "
        "it must be one of memory-core, memory-lancedb, memory-full, none."
    )
    assert emit(agent, "agent_end", *TEA) == Effect(warnings=(agent.error,))
    with pytest.raises(ConfigError, match="must be one of memory-core"):
        _ = agent.memory
    preferred = open_agent(None, "memory-cor")
    assert preferred.error == (
        "Unknown memory plugin 'memory-cor'. Known: memory-core, memory-lancedb, memory-full, none."
    )


def test_invalid_settings_give_a_one_line_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "config.yaml").write_text("search:\n  max_results: many\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING, "memoriter.agent"):
        agent = Agent.open(home=tmp_path, workspace=tmp_path / "notes")
    assert agent.error
    assert agent.error.startswith(
        f"The setting search.max_results = 'many' from {tmp_path / 'config.yaml'} is not valid: it must be"
    )
    assert agent.error in caplog.text
    assert agent.emit(Moment("before_agent_start", prompt="hello")) == Effect(warnings=(agent.error,))


def test_an_unusable_home_gives_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file, no folder", encoding="utf-8")
    agent = Agent.open(home=tmp_path / "state", workspace=tmp_path / "notes")
    assert agent.error
    assert emit(agent, "session_start") == Effect(warnings=(agent.error,))
    with pytest.raises(MemoriterError):
        _ = agent.memory
    agent.close()


def test_a_store_that_breaks_later_gives_a_warning(open_agent: OpenAgent, tmp_path: Path) -> None:
    agent = open_agent()
    (tmp_path / "state/agents/main/memory.db").write_bytes(b"not a database" * 1000)
    for event in EVENTS:
        effect = emit(agent, event, *TEA, prompt="tea or coffee?")
        assert (effect.prepend_context, effect.remembered) == ("", ())
        if event in ("agent_end", "before_agent_start"):
            assert len(effect.warnings) == 1


def test_a_wrong_argument_of_open_gives_an_error_too() -> None:
    agent = Agent.open(colour="red")
    assert agent.error
    assert agent.error.startswith("TypeError: ")


def test_a_service_that_is_passed_in_is_not_closed(open_memory: Callable[..., Memory]) -> None:
    memory = open_memory(**{"plugins.slots.memory": "memory-full"})
    with MemoryService(memory) as service:
        with Agent.open(service=service) as agent:
            assert agent.service is service
            assert [done.action for done in emit(agent, "agent_end", *TEA).remembered] == ["added"]
        assert memory.search("tea", source="entries").hits


def test_the_settings_of_a_service_name_the_plugin_so_that_tools_and_prompt_agree(
    open_memory: Callable[..., Memory],
) -> None:
    memory = open_memory()
    with Agent.open(service=MemoryService(memory), slot="memory-full") as agent:
        described = call(memory, "prompt")["text"]
        assert [name for name in TOOLS if f"`{name}`" in described] == list(agent.tools)


def test_an_observer_gets_every_moment_and_cannot_break_the_host(workspace: Path, tmp_path: Path) -> None:
    seen: list[tuple[Moment, Effect]] = []

    def observer(moment: Moment, effect: Effect) -> None:
        seen.append((moment, effect))
        raise RuntimeError("the observer is out of order")

    with Agent.open(
        slot="memory-full",
        workspace=workspace,
        home=tmp_path / "state",
        embedder=HashEmbedder(),
        observer=observer,
    ) as agent:
        moment = Moment("agent_end", session="s1", messages=tuple(TEA))
        effect = agent.emit(moment)
    assert effect.remembered
    assert seen == [(moment, effect)]


@pytest.mark.requirement("A8")
def test_a_started_agent_warms_up_indexes_and_watches(
    open_agent: OpenAgent, note: Callable[[str, str], Path], caplog: pytest.LogCaptureFixture
) -> None:
    others = set(threading.enumerate())
    note("memory/a.md", "The heron stands in the marsh.")
    agent = open_agent("memory-core", search__sync_before=False)
    with caplog.at_level(logging.INFO, "memoriter.agent"):
        started = agent.start()
    assert started
    assert started.report
    assert started.report.files == 1
    assert "the memory is ready. Files: 1, chunks: 1" in caplog.text
    assert agent.service.watching == "watching"
    assert "heron" in emit(agent, "before_agent_start", prompt="Where does the heron stand?").prepend_context
    agent.close()
    agent.close()
    assert not [thread.name for thread in set(threading.enumerate()) - others]


def test_starting_reports_an_engine_that_does_not_work(
    open_agent: OpenAgent, caplog: pytest.LogCaptureFixture
) -> None:
    agent = open_agent("memory-core", memory__backend="qmd", memory__qmd__command="/nowhere/qmd")
    with caplog.at_level(logging.WARNING, "memoriter"):
        assert agent.start()
    assert str(Path("/nowhere/qmd")) in caplog.text
    assert agent.error is None


def test_the_lancedb_plugin_works_without_lancedb_and_warns(
    open_agent: OpenAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lancedb", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    agent = open_agent("memory-lancedb")
    (warning,) = emit(agent, "session_start").warnings
    assert warning == (
        "LanceDB is not installed, so `scan` searches the vectors of entries. Run "
        "`pip install 'lancedb>=0.30'`, or name an engine in `entries.vector_engine`."
    )
    assert emit(agent, "agent_end", *TEA).remembered
    assert "tea" in emit(agent, "before_agent_start", user("Tea or coffee?")).prepend_context


def test_the_lancedb_plugin_stores_the_vectors_of_entries_in_lancedb(
    open_agent: OpenAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("lancedb", reason="the extra lancedb is not installed")
    monkeypatch.setattr(
        "memoriter.extensions.external_tables.BATCH_ROWS", 1
    )  # otherwise a few entries wait for a batch
    lance = tmp_path / "state/agents/main/entries/lance"
    agent = open_agent("memory-lancedb", entries__vector_engine="scan")
    assert emit(agent, "agent_end", *TEA).remembered
    emit(agent, "before_agent_start", prompt="Tea or coffee?")
    agent.close()
    assert not lance.exists()
    agent = open_agent("memory-lancedb")
    assert "tea" in emit(agent, "before_agent_start", prompt="Tea or coffee?").prepend_context
    assert lance.exists()


# ---- late --------------------------------------------------------------------------------------------------------


class Gated(HashEmbedder):
    """An embedder that blocks while its gate is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()

    def _vectors(self, texts: Sequence[str]) -> Matrix:
        self.gate.wait(30)
        return super()._vectors(texts)


@pytest.fixture
def slow(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Agent, Gated]]:
    """An agent with very short deadlines, and its embedder."""
    embedder = Gated()
    with monkeypatch.context() as patch:
        for event in EVENTS:
            patch.setitem(DEADLINES, event, 0.05)  # type: ignore[arg-type]
        agent = Agent.open(
            slot="memory-lancedb", workspace=workspace, home=tmp_path / "state", embedder=embedder
        )
    with agent:
        yield agent, embedder
        embedder.gate.set()


def test_a_late_capture_is_still_saved(slow: tuple[Agent, Gated], open_agent: OpenAgent) -> None:
    agent, embedder = slow
    embedder.gate.clear()
    late = emit(agent, "agent_end", *TEA)
    assert late == Effect(
        warnings=("memory-lancedb (agent_end) took longer than 0.05 s, and continues in the background.",)
    )
    embedder.gate.set()
    agent.close()
    again = open_agent("memory-lancedb")
    assert [entry.text for entry in again.memory.entries.list()] == ["I prefer tea over coffee."]
    assert emit(again, "agent_end", *TEA).remembered == ()


def test_a_late_recall_is_dropped_and_not_recorded(slow: tuple[Agent, Gated], open_agent: OpenAgent) -> None:
    agent, embedder = slow
    (done,) = agent.memory.entries.capture(turns_of_messages(TEA))
    embedder.gate.clear()
    effect = emit(agent, "before_agent_start", prompt="Tea or coffee, what do I prefer?")
    assert effect == Effect(
        warnings=("memory-lancedb (before_agent_start) took longer than 0.05 s, and its result was dropped.",)
    )
    embedder.gate.set()
    agent.close()
    assert done.entry
    again = open_agent("memory-lancedb")
    assert again.memory.entries.recalls(entry=done.entry.id).recalls == ()
    assert emit(again, "before_agent_start", prompt="Tea or coffee, what do I prefer?").recall_id
    assert len(again.memory.entries.recalls(entry=done.entry.id).recalls) == 1


def test_many_sessions_at_the_same_time_are_all_captured(open_agent: OpenAgent) -> None:
    agent = open_agent("memory-full")
    rooms = [f"room-{number}" for number in range(12)]

    def session(room: str) -> None:
        conversation = [user(f"Remember that my seat in {room} is number {room[5:]}.")]
        events: list[Event] = ["session_start", "before_agent_start", "agent_end", "session_end"]
        effects.extend([emit(agent, event, *conversation, session=room) for event in events])

    effects: list[Effect] = []
    threads = [threading.Thread(target=session, args=(room,)) for room in rooms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    agent.close()
    warnings = [warning for effect in effects for warning in effect.warnings]
    # Another session's transcript may be indexed but not yet embedded when this one recalls.
    assert [warning for warning in warnings if "have no vector yet" not in warning] == []
    kept = [done.entry.text for effect in effects for done in effect.remembered if done.entry]
    assert sorted(kept) == sorted(f"My seat in {room} is number {room[5:]}." for room in rooms)


def test_two_threads_that_start_an_agent_start_it_once(open_agent: OpenAgent) -> None:
    agent = open_agent()
    ready, started = threading.Barrier(4), []

    def start() -> None:
        ready.wait()
        started.append(agent.start())

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [done.reason for done in started if done] == ["start"]
    assert agent.service.watching == "watching"
