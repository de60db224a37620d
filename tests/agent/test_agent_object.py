"""A host and its memory: whatever is wrong with the memory, the host goes on, and is told why."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from talk import TEA, said, user

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

OpenHost = Callable[..., Agent]
NOTE_TOOLS = ("memory_search", "memory_get", "memory_save", "memory_stats")
ENTRY_TOOLS = ("memory_recall", "memory_store", "memory_forget", "memory")


@pytest.mark.parametrize(
    ("slot", "tools"),
    [
        ("memory-core", NOTE_TOOLS),
        ("memory-lancedb", ENTRY_TOOLS),
        ("memory-full", (*NOTE_TOOLS, *ENTRY_TOOLS)),
    ],
)
def test_exactly_one_plugin_is_active_and_decides_which_tools_there_are(
    open_host: OpenHost, slot: str, tools: tuple[str, ...]
) -> None:
    host = open_host(slot)
    assert (host.error, host.plugin and host.plugin.name, host.tools) == (None, slot, tools)
    assert said(host, "session_start").tools == tools


def test_a_slot_that_the_host_prefers_gives_way_to_the_one_that_the_owner_named(open_host: OpenHost) -> None:
    assert open_host(None).tools == NOTE_TOOLS
    assert open_host(None, "memory-full").tools == (*NOTE_TOOLS, *ENTRY_TOOLS)
    assert open_host("memory-core", "memory-full").tools == NOTE_TOOLS
    assert (
        open_host("none", "memory-full").error == "Memory is switched off: `plugins.slots.memory` is `none`."
    )


def test_a_host_that_was_closed_before_it_could_start_does_not_start(open_host: OpenHost) -> None:
    host = open_host("memory-core")
    host.close()
    assert host.start() is None


def test_an_empty_slot_answers_every_moment_with_the_reason(open_host: OpenHost, workspace: Path) -> None:
    host = open_host("none")
    off = "Memory is switched off: `plugins.slots.memory` is `none`."
    for event in EVENTS:
        effect = said(host, event, *TEA, prompt="tea?")
        assert effect == Effect(warnings=(off,))
        assert effect.as_host() == {"warnings": [off]}
    assert (host.plugin, host.tools, host.start()) == (None, (), None)
    for part in ("memory", "service"):
        with pytest.raises(MemoryDisabled, match="Memory is switched off"):
            getattr(host, part)
    assert list(workspace.rglob("*.md")) == []


def test_an_unknown_slot_is_one_sentence_that_names_the_known_ones(open_host: OpenHost) -> None:
    host = open_host("memory-cor")
    assert host.error == (
        "plugins.slots.memory = 'memory-cor' from --memory: "
        "must be one of memory-core, memory-lancedb, memory-full, none"
    )
    assert said(host, "agent_end", *TEA) == Effect(warnings=(host.error,))
    with pytest.raises(ConfigError, match="must be one of memory-core"):
        _ = host.memory
    preferred = open_host(None, "memory-cor")
    assert preferred.error == (
        "There is no memory plugin 'memory-cor'; there are memory-core, memory-lancedb, memory-full, none."
    )


def test_settings_that_are_wrong_are_one_sentence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "config.yaml").write_text("search:\n  max_results: many\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING, "memoriter.agent"):
        host = Agent.open(home=tmp_path, workspace=tmp_path / "notes")
    assert host.error
    assert host.error.startswith(f"search.max_results = 'many' from {tmp_path}/config.yaml: must be")
    assert host.error in caplog.text
    assert host.emit(Moment("before_agent_start", prompt="hello")) == Effect(warnings=(host.error,))


def test_a_home_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file, no folder", encoding="utf-8")
    host = Agent.open(home=tmp_path / "state", workspace=tmp_path / "notes")
    assert host.error
    assert said(host, "session_start") == Effect(warnings=(host.error,))
    with pytest.raises(MemoriterError):
        _ = host.memory
    host.close()


def test_a_store_that_breaks_under_way_is_a_warning(open_host: OpenHost, tmp_path: Path) -> None:
    host = open_host()
    (tmp_path / "state/agents/main/memory.db").write_bytes(b"not a database" * 1000)
    for event in EVENTS:
        effect = said(host, event, *TEA, prompt="tea or coffee?")
        assert (effect.prepend_context, effect.remembered) == ("", ())
        if event in ("agent_end", "before_agent_start"):
            assert len(effect.warnings) == 1


def test_a_wrong_argument_of_opening_is_a_sentence_too() -> None:
    host = Agent.open(colour="red")
    assert host.error
    assert host.error.startswith("TypeError: ")


def test_a_service_that_is_handed_in_stays_its_owners(open_memory: Callable[..., Memory]) -> None:
    memory = open_memory(**{"plugins.slots.memory": "memory-full"})
    with MemoryService(memory) as service:
        with Agent.open(service=service) as host:
            assert host.service is service
            assert [done.action for done in said(host, "agent_end", *TEA).remembered] == ["added"]
        assert memory.search("tea", source="entries").hits


def test_over_a_service_its_own_settings_name_the_plugin_so_that_tools_and_prompt_agree(
    open_memory: Callable[..., Memory],
) -> None:
    memory = open_memory()
    with Agent.open(service=MemoryService(memory), slot="memory-full") as host:
        described = call(memory, "prompt")["text"]
        assert [name for name in TOOLS if f"`{name}`" in described] == list(host.tools)


def test_an_observer_sees_every_moment_and_cannot_break_the_host(workspace: Path, tmp_path: Path) -> None:
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
    ) as host:
        moment = Moment("agent_end", session="s1", messages=tuple(TEA))
        effect = host.emit(moment)
    assert effect.remembered
    assert seen == [(moment, effect)]


def test_a_long_lived_host_warms_up_takes_in_and_watches(
    open_host: OpenHost, note: Callable[[str, str], Path], caplog: pytest.LogCaptureFixture
) -> None:
    others = set(threading.enumerate())
    note("memory/a.md", "The heron stands in the marsh.")
    host = open_host("memory-core", search__sync_before=False)
    with caplog.at_level(logging.INFO, "memoriter.agent"):
        started = host.start()
    assert started
    assert started.report
    assert started.report.files == 1
    assert "the memory is ready: 1 files, 1 chunks" in caplog.text
    assert host.service.watching == "watching"
    assert "heron" in said(host, "before_agent_start", prompt="Where does the heron stand?").prepend_context
    host.close()
    host.close()
    assert not [thread.name for thread in set(threading.enumerate()) - others]


def test_a_long_lived_host_says_at_the_start_that_its_engine_is_not_well(
    open_host: OpenHost, caplog: pytest.LogCaptureFixture
) -> None:
    host = open_host("memory-core", memory__backend="qmd", memory__qmd__command="/nowhere/qmd")
    with caplog.at_level(logging.WARNING, "memoriter"):
        assert host.start()
    assert "/nowhere/qmd" in caplog.text
    assert host.error is None


def test_without_lancedb_its_plugin_works_and_says_what_searches_instead(
    open_host: OpenHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lancedb", None)
    monkeypatch.setattr("memoriter.build.find_spec", lambda name: None)
    host = open_host("memory-lancedb")
    (warning,) = said(host, "session_start").warnings
    assert warning == (
        "LanceDB is not installed, so `scan` searches the vectors of entries. Run "
        "`pip install 'memoriter[lancedb]'`, or name an engine in `entries.vector_engine`."
    )
    assert said(host, "agent_end", *TEA).remembered
    assert "tea" in said(host, "before_agent_start", user("Tea or coffee?")).prepend_context


def test_with_lancedb_its_plugin_keeps_the_vectors_of_entries_there(
    open_host: OpenHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("lancedb", reason="the extra lancedb is not installed")
    monkeypatch.setattr("memoriter.store.vectors.lance.BATCH_ROWS", 1)  # or few entries would wait for more
    lance = tmp_path / "state/agents/main/entries/lance"
    host = open_host("memory-lancedb", entries__vector_engine="scan")
    assert said(host, "agent_end", *TEA).remembered
    said(host, "before_agent_start", prompt="Tea or coffee?")
    host.close()
    assert not lance.exists()
    host = open_host("memory-lancedb")
    assert "tea" in said(host, "before_agent_start", prompt="Tea or coffee?").prepend_context
    assert lance.exists()


# ---- late --------------------------------------------------------------------------------------------------------


class Gated(HashEmbedder):
    """An embedder that is slow while its gate is shut."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()

    def _vectors(self, texts: Sequence[str]) -> Matrix:
        self.gate.wait(30)
        return super()._vectors(texts)


@pytest.fixture
def slow(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Agent, Gated]]:
    """A host that waits for nothing longer than a moment, and its embedder."""
    embedder = Gated()
    with monkeypatch.context() as patch:
        for event in EVENTS:
            patch.setitem(DEADLINES, event, 0.05)  # type: ignore[arg-type]
        host = Agent.open(
            slot="memory-lancedb", workspace=workspace, home=tmp_path / "state", embedder=embedder
        )
    with host:
        yield host, embedder
        embedder.gate.set()


def test_a_capture_that_is_late_is_saved_all_the_same(slow: tuple[Agent, Gated], open_host: OpenHost) -> None:
    host, embedder = slow
    embedder.gate.clear()
    late = said(host, "agent_end", *TEA)
    assert late == Effect(
        warnings=("memory-lancedb (agent_end) took longer than 0.05 s, and goes on in the background.",)
    )
    embedder.gate.set()
    host.close()
    again = open_host("memory-lancedb")
    assert [entry.text for entry in again.memory.entries.list()] == ["I prefer tea over coffee."]
    assert said(again, "agent_end", *TEA).remembered == ()


def test_a_recall_that_is_late_is_dropped_and_not_noted(
    slow: tuple[Agent, Gated], open_host: OpenHost
) -> None:
    host, embedder = slow
    (done,) = host.memory.entries.capture(turns_of_messages(TEA))
    embedder.gate.clear()
    effect = said(host, "before_agent_start", prompt="Tea or coffee, what do I prefer?")
    assert effect == Effect(
        warnings=("memory-lancedb (before_agent_start) took longer than 0.05 s, and its result was dropped.",)
    )
    embedder.gate.set()
    host.close()
    assert done.entry
    again = open_host("memory-lancedb")
    assert again.memory.entries.recalls(entry=done.entry.id).recalls == ()
    assert said(again, "before_agent_start", prompt="Tea or coffee, what do I prefer?").recall_id
    assert len(again.memory.entries.recalls(entry=done.entry.id).recalls) == 1


def test_many_sessions_at_once_are_all_heard(open_host: OpenHost) -> None:
    host = open_host("memory-full")
    rooms = [f"room-{number}" for number in range(12)]

    def session(room: str) -> None:
        conversation = [user(f"Remember that my seat in {room} is number {room[5:]}.")]
        events: list[Event] = ["session_start", "before_agent_start", "agent_end", "session_end"]
        effects.extend([said(host, event, *conversation, session=room) for event in events])

    effects: list[Effect] = []
    threads = [threading.Thread(target=session, args=(room,)) for room in rooms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    host.close()
    assert [effect.warnings for effect in effects if effect.warnings] == []
    kept = [done.entry.text for effect in effects for done in effect.remembered if done.entry]
    assert sorted(kept) == sorted(f"My seat in {room} is number {room[5:]}." for room in rooms)


def test_two_who_start_a_host_at_once_start_it_once(open_host: OpenHost) -> None:
    host = open_host()
    ready, started = threading.Barrier(4), []

    def start() -> None:
        ready.wait()
        started.append(host.start())

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [done.reason for done in started if done] == ["start"]
    assert host.service.watching == "watching"
