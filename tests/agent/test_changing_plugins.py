"""What the index learns between moments, and plugins that are changed while an agent runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from talk import TEA, TRAIN, assistant, emit, user

from memoriter import Memory
from memoriter.agent import Agent, Effect, Moment

OpenAgent = Callable[..., Agent]
Note = Callable[[str, str], Path]
OWN = ("memory-core", "memory-lancedb", "memory-full")

# ---- the index --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("B8")
def test_a_session_start_indexes_changes(open_agent: OpenAgent, note: Note) -> None:
    agent = open_agent("memory-core", search__sync_before=False)
    note("memory/a.md", "The heron stands in the marsh.")
    assert agent.memory.search("heron").hits == ()
    emit(agent, "session_start")
    assert agent.memory.search("heron").hits


def test_a_transcript_that_grew_is_indexed(
    open_agent: OpenAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoriter.agent.service.SESSION_DEBOUNCE_S", 0.0)
    agent = open_agent(
        "memory-core",
        search__sync_before=False,
        watch__enabled=False,
        sessions__delta_messages=1,
    )
    folder = tmp_path / "state/agents/main/sessions"
    folder.mkdir(parents=True)
    agent.start()
    transcript = folder / "s1.jsonl"
    transcript.write_text("".join(f"{json.dumps(line)}\n" for line in TRAIN), encoding="utf-8")
    assert emit(agent, "transcript_update", transcript=transcript) == Effect()
    assert _found(agent.memory, "train to Lyon")


def _found(memory: Memory, query: str) -> bool:
    import time

    end, pause = time.monotonic() + 120, threading.Event()
    while not memory.search(query).hits:
        if time.monotonic() > end:
            return False
        pause.wait(0.01)
    return True


# ---- changing the plugin ----------------------------------------------------------------------------------------


def test_switching_the_slot_loses_nothing(open_agent: OpenAgent, note: Note) -> None:
    """Text written while one plugin was active is found while any other is active."""
    birds = {"memory-core": "heron", "memory-lancedb": "stork", "memory-full": "avocet"}
    for slot, bird in birds.items():
        with open_agent(slot) as agent:
            note(f"memory/{slot}.md", f"The {bird} nests near the mill.")
            conversation = [
                user(f"Remember that the {bird} is my favourite bird of the week."),
                assistant("Yes."),
            ]
            emit(agent, "agent_end", *conversation, session=slot)
            agent.memory.entries.add(f"Anna photographed the {bird}", "fact")
            agent.memory.save(f"The {bird} left in autumn.")
            emit(agent, "before_compaction", *conversation, session=slot)
            emit(agent, "session_end", *conversation, session=slot)
    with open_agent("none") as nothing:
        assert nothing.error
    expected: dict[str, list[tuple[str, str]]] | None = None
    for slot in OWN:
        with open_agent(slot) as agent:
            found = {
                bird: sorted(
                    (hit.source, hit.path)
                    for source in ("memory", "entries")
                    for hit in agent.memory.search(bird, max_results=20, source=source).hits  # type: ignore[arg-type]
                    if bird in hit.snippet
                )
                for bird in birds.values()
            }
        for bird, places in found.items():
            assert {source for source, _ in places} == {"memory", "entries"}, (slot, bird)
        assert expected in (None, found)
        expected = found


def test_a_moment_needs_only_an_event() -> None:
    assert Moment("agent_end") == Moment("agent_end", "main", None, (), "", None, None, None)


def test_remembered_entries_are_reported_even_if_the_summary_cannot_be_written(
    open_agent: OpenAgent, workspace: Path
) -> None:
    agent = open_agent("memory-full")
    (workspace / "memory").rmdir()
    (workspace / "memory").write_text("a file, no folder", encoding="utf-8")
    effect = emit(agent, "session_end", *TEA)
    assert [done.action for done in effect.remembered] == ["added"]
    assert effect.written == ()
    assert len(effect.warnings) == 1


def test_the_ledger_records_the_session(open_agent: OpenAgent) -> None:
    agent = open_agent()
    emit(agent, "agent_end", *TEA, session="monday")
    effect = emit(agent, "before_agent_start", session="tuesday", prompt="Tea or coffee?")
    [recalled] = agent.memory.entries.recalls(limit=10, session="tuesday").recalls
    assert (recalled.id, recalled.interface) == (effect.recall_id, "hook")
    assert agent.memory.entries.recalls(limit=10, session="monday").recalls == ()


def test_things_that_are_not_messages_are_ignored(open_agent: OpenAgent) -> None:
    agent = open_agent()
    odd: Any = (None, "text", 3, *TEA)
    effect = agent.emit(Moment("agent_end", session="s1", messages=odd))
    assert ([done.action for done in effect.remembered], effect.warnings) == (["added"], ())
    nothing: Any = None
    assert agent.emit(Moment("agent_end", session="s2", messages=nothing)) == Effect()
    assert agent.emit(Moment("before_agent_start", session="s2", prompt=nothing)) == Effect()
