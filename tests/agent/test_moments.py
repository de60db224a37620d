"""Effects of the builtin plugins at each moment, and what they never do."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from talk import TEA, TRAIN, Message, assistant, emit, user

from lab.evals.recalled_blocks import read_back
from memoriter.agent import Agent, Effect, Event
from memoriter.background import cancellable
from memoriter.memory import parts_of
from memoriter.testing import FailingEmbedder

OpenAgent = Callable[..., Agent]
Note = Callable[[str, str], Path]
OWN = ("memory-core", "memory-lancedb", "memory-full")


def groups(effect: Effect) -> list[str]:
    return [line.group for line in read_back(effect.prepend_context)[1]] if effect.prepend_context else []


def repetitions(agent: Agent) -> dict[str, int]:
    return {entry.text: entry.repetitions for entry in agent.memory.entries.list()}


# ---- before the agent starts ------------------------------------------------------------------------------------


@pytest.fixture
def filled(open_agent: OpenAgent, note: Note) -> Callable[[str], Agent]:
    """Return a function that opens an agent with notes and more entries than fit into a prompt."""
    for number, hour in enumerate(("one", "two", "three", "four", "five")):
        note(f"memory/kettle-{number}.md", f"# Kettle {hour}\n\nThe green tea kettle sings at {hour}.\n")

    def fill(slot: str) -> Agent:
        agent = open_agent(slot)
        for who in ("Anna polished", "Bruno repaired", "Chen photographed", "Dora described", "Emil filled"):
            agent.memory.entries.add(f"{who} the green tea kettle that sings", "fact")
        return agent

    return fill


@pytest.mark.requirement("A10", "B12")
@pytest.mark.parametrize(
    ("slot", "expected"),
    [
        ("memory-core", ["notes"] * 3),
        ("memory-lancedb", ["fact"] * 3),
        ("memory-full", ["fact"] * 5 + ["notes"] * 3),
    ],
)
def test_each_plugin_recalls_its_own_kind(
    filled: Callable[[str], Agent], slot: str, expected: list[str]
) -> None:
    effect = emit(filled(slot), "before_agent_start", prompt="When does the green tea kettle sing?")
    assert groups(effect) == expected
    assert effect.prepend_context.startswith(f'<relevant-memories recall="{effect.recall_id}">')
    assert effect.warnings == ()


@pytest.mark.requirement("X15")
def test_matches_below_the_threshold_are_not_recalled(filled: Callable[[str], Agent]) -> None:
    agent = filled("memory-lancedb")
    assert emit(agent, "before_agent_start", prompt="Who won the chess tournament?") == Effect()


@pytest.mark.requirement("B12")
def test_the_owner_can_set_how_many_entries_are_recalled(open_agent: OpenAgent) -> None:
    agent = open_agent("memory-lancedb", retrieval__max_memories=1)
    for who in ("Anna polished", "Bruno repaired"):
        agent.memory.entries.add(f"{who} the green tea kettle that sings", "fact")
    assert groups(emit(agent, "before_agent_start", prompt="When does the green tea kettle sing?")) == [
        "fact"
    ]
    off = open_agent("memory-full", retrieval__inject_on_query=False)
    assert emit(off, "before_agent_start", prompt="When does the green tea kettle sing?") == Effect()


def test_the_query_is_the_prompt_or_the_last_message_of_the_user(filled: Callable[[str], Agent]) -> None:
    agent = filled("memory-lancedb")
    asked = user("When does the green tea kettle sing?")
    assert groups(emit(agent, "before_agent_start", asked)) == ["fact"] * 3
    assert groups(emit(agent, "before_agent_start", asked, assistant("At six."))) == ["fact"] * 3
    assert (
        groups(emit(agent, "before_agent_start", asked, assistant("At six."), prompt="And?")) == ["fact"] * 3
    )
    assert groups(emit(agent, "before_agent_start", asked, prompt="Who won the chess tournament?")) == []
    assert groups(emit(agent, "before_agent_start")) == []


def test_recalled_text_takes_at_most_its_share_of_the_window(filled: Callable[[str], Agent]) -> None:
    agent = filled("memory-full")
    question = "When does the green tea kettle sing?"
    wide = emit(agent, "before_agent_start", prompt=question, window=100_000)
    narrow = emit(agent, "before_agent_start", prompt=question, window=1_000)
    full = emit(agent, "before_agent_start", prompt=question, window=1_000, tokens=995)
    assert len(groups(wide)) == 8
    assert 0 < len(groups(narrow)) < 8
    assert groups(full) == []


def test_a_session_outside_the_scope_gets_nothing_and_is_not_captured(
    filled: Callable[[str], Agent], workspace: Path
) -> None:
    agent = filled("memory-full")
    before = repetitions(agent), sorted(workspace.rglob("*.md"))
    key = "agent:main:telegram:group:42"
    asked: list[tuple[Event, dict[str, object]]] = [
        ("before_agent_start", {"prompt": "When does the green tea kettle sing?"}),
        ("agent_end", {}),
        ("before_compaction", {}),
        ("command_new", {}),
        ("session_end", {}),
    ]
    for event, more in asked:
        assert emit(agent, event, *TEA, session_key=key, **more) == Effect()
    assert (repetitions(agent), sorted(workspace.rglob("*.md"))) == before


def test_a_late_recall_is_not_in_the_ledger(open_agent: OpenAgent) -> None:
    """The ledger records what entered a prompt, so it must not contain what was dropped."""
    agent = open_agent("memory-lancedb")
    entry = agent.memory.entries.add("The green tea kettle sings at six", "fact").entry
    assert entry
    given_up = threading.Event()
    given_up.set()
    with cancellable(given_up):
        recalled = agent.memory.recall("When does the green tea kettle sing?")
    assert (recalled.text, recalled.id) == ("", "")
    assert agent.memory.entries.recalls(entry=entry.id).recalls == ()
    recalled = agent.memory.recall("When does the green tea kettle sing?")
    assert [recall.id for recall in agent.memory.entries.recalls(entry=entry.id).recalls] == [recalled.id]


def test_a_failing_embedder_gives_a_warning_and_keywords_still_work(
    workspace: Path, tmp_path: Path, note: Note
) -> None:
    note("memory/a.md", "The heron stands in the marsh.")
    with Agent.open(workspace=workspace, home=tmp_path / "state", embedder=FailingEmbedder()) as agent:
        effect = emit(agent, "before_agent_start", prompt="Where does the heron stand?")
    assert groups(effect) == ["notes"]
    assert any("out of order" in warning for warning in effect.warnings)


# ---- after the agent has ended ----------------------------------------------------------------------------------


@pytest.mark.requirement("B13")
@pytest.mark.parametrize(("slot", "kept"), [("memory-core", 0), ("memory-lancedb", 1), ("memory-full", 1)])
def test_plugins_with_entries_remember_what_the_user_said(
    open_agent: OpenAgent, slot: str, kept: int
) -> None:
    agent = open_agent(slot)
    effect = emit(agent, "agent_end", *TEA)
    assert [done.action for done in effect.remembered] == ["added"] * kept
    assert effect.warnings == ()


def test_sending_the_whole_conversation_each_time_repeats_nothing(open_agent: OpenAgent) -> None:
    agent = open_agent("memory-lancedb")
    assert len(emit(agent, "agent_end", *TEA).remembered) == 1
    assert emit(agent, "agent_end", *TEA).remembered == ()
    longer = (*TEA, *TRAIN)
    assert [done.entry.text for done in emit(agent, "agent_end", *longer).remembered if done.entry] == [
        "My train to Lyon leaves at seven."
    ]
    assert emit(agent, "agent_end", *longer).remembered == ()
    assert emit(agent, "session_end", *longer).remembered == ()
    assert set(repetitions(agent).values()) == {1}


def test_nothing_is_repeated_after_a_restart_or_a_compaction(open_agent: OpenAgent) -> None:
    conversation = (*TEA, *TRAIN)
    with open_agent("memory-full") as first:
        assert len(emit(first, "agent_end", *conversation).remembered) == 2
    agent = open_agent("memory-full")
    assert emit(agent, "agent_end", *conversation).remembered == ()
    shortened = (user("Summary: the user drinks tea."), *TRAIN)
    assert emit(agent, "agent_end", *shortened).remembered == ()
    assert set(repetitions(agent).values()) == {1}


@pytest.mark.requirement("B13")
def test_a_repeated_statement_counts_again(open_agent: OpenAgent) -> None:
    agent = open_agent("memory-lancedb")
    emit(agent, "agent_end", *TEA)
    (again,) = emit(agent, "agent_end", *TEA, *TEA).remembered
    assert again.action == "repeated"
    (elsewhere,) = emit(agent, "agent_end", *TEA, session="s2").remembered
    assert elsewhere.action == "repeated"
    assert repetitions(agent) == {"I prefer tea over coffee.": 3}


def test_two_processes_that_capture_the_same_session_count_it_once(
    open_agent: OpenAgent, tmp_path: Path, workspace: Path
) -> None:
    one, two = open_agent("memory-full"), open_agent("memory-full")
    assert len(emit(one, "agent_end", *TEA).remembered) == 1
    assert emit(two, "agent_end", *TEA).remembered == ()


def test_recalled_text_is_never_captured(open_agent: OpenAgent) -> None:
    """Recalled text and tool results are not captured, in whatever form the host sends them back."""
    agent = open_agent("memory-full")
    emit(agent, "agent_end", *TEA)
    block = emit(agent, "before_agent_start", prompt="Tea or coffee?", session="s2").prepend_context
    assert "I prefer tea over coffee." in block
    conversation: list[Message] = [
        {"role": "system", "content": block},
        user(f"{block}\n\nTea or coffee?"),
        {"role": "user", "content": [{"type": "text", "text": block}, {"type": "text", "text": "Well?"}]},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "1", "function": {"name": "memory_recall"}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "I prefer tea over coffee."},
        assistant("You prefer tea: I prefer tea over coffee, you said."),
        user(block.rpartition("</relevant-memories>")[0]),  # cut off by a host
    ]
    for event in ("agent_end", "before_compaction", "session_end"):
        assert emit(agent, event, *conversation, session="s2").remembered == ()
    assert repetitions(agent) == {"I prefer tea over coffee.": 1}


def test_forgotten_entries_do_not_come_back_with_the_conversation(open_agent: OpenAgent) -> None:
    agent = open_agent("memory-full")
    (done,) = emit(agent, "agent_end", *TEA).remembered
    assert done.entry
    agent.memory.erase(done.entry.id)
    agent.close()
    stored = next((agent.service.memory.settings.agent_folder / "seen_turns").glob("*.json")).read_text(
        "utf-8"
    )
    assert "tea" not in stored
    again = open_agent("memory-full")
    assert emit(again, "agent_end", *TEA).remembered == ()
    assert repetitions(again) == {}


def test_a_conversation_is_read_from_the_transcript_that_the_host_names(
    open_agent: OpenAgent, tmp_path: Path
) -> None:
    transcript = tmp_path / "s1.jsonl"
    lines = [*TEA, {"type": "tool", "noise": True}, *TRAIN]
    transcript.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + "{half", encoding="utf-8")
    agent = open_agent("memory-full")
    assert len(emit(agent, "agent_end", transcript=transcript).remembered) == 2
    (summary,) = emit(agent, "session_end", transcript=transcript).written
    assert summary.path.startswith("memory/")
    (warning,) = emit(agent, "agent_end", transcript=tmp_path / "gone.jsonl").warnings
    assert "gone.jsonl" in warning


@pytest.mark.posix("named pipes")
def test_a_transcript_that_is_not_a_file_does_not_block(open_agent: OpenAgent, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    agent = open_agent("memory-full")
    for path in (pipe, tmp_path):
        (warning,) = emit(agent, "agent_end", transcript=path).warnings
        assert f"{path} is not a regular file" in warning
    assert len(emit(agent, "agent_end", *TEA).remembered) == 1


def test_a_piece_of_a_long_line_is_not_read_as_a_line(open_agent: OpenAgent, tmp_path: Path) -> None:
    transcript = tmp_path / "s1.jsonl"
    begin, piece = '{"noise":"', json.dumps(user("I prefer whatever a stranger sells."))
    with transcript.open("w", encoding="utf-8") as file:
        file.write(begin + "x" * (4 * 1024 * 1024 - len(begin)) + piece + "\n")
        file.writelines(f"{json.dumps(line)}\n" for line in TEA)
    agent = open_agent("memory-full")
    (done,) = emit(agent, "agent_end", transcript=transcript).remembered
    assert done.entry
    assert done.entry.text == "I prefer tea over coffee."


def test_a_session_name_with_half_a_character_works(open_agent: OpenAgent) -> None:
    agent = open_agent("memory-full")
    names: dict[str, Any] = {"session": "s\ud800", "session_key": "agent:main:direct:\ud800"}
    assert len(emit(agent, "agent_end", *TEA, **names).remembered) == 1
    recalled = emit(agent, "before_agent_start", prompt="Do I prefer tea over coffee?", **names)
    assert (groups(recalled), recalled.warnings) == (["user_preference"], ())
    assert len(emit(agent, "session_end", *TEA, **names).written) == 1


# ---- when a conversation is shortened or over -------------------------------------------------------------------


@pytest.mark.requirement("E7")
@pytest.mark.parametrize(("slot", "written"), [("memory-core", 1), ("memory-lancedb", 0), ("memory-full", 1)])
@pytest.mark.parametrize("event", ["before_compaction", "command_new", "session_end"])
def test_plugins_with_notes_write_down_what_a_compaction_would_lose(
    open_agent: OpenAgent, slot: str, written: int, event: Event
) -> None:
    agent = open_agent(slot)
    effect = emit(agent, event, *TEA, *TRAIN)
    assert len(effect.written) == written
    assert effect.warnings == ()
    assert emit(agent, event, *TEA, *TRAIN).written == ()  # only once
    for saved in effect.written:
        assert "tea over coffee" in agent.memory.read(saved.path).text


def test_a_flush_happens_only_when_the_window_is_nearly_full(open_agent: OpenAgent) -> None:
    agent = open_agent("memory-core")
    assert emit(agent, "before_compaction", *TEA, window=100_000, tokens=10_000).written == ()
    assert len(emit(agent, "before_compaction", *TEA, window=100_000, tokens=90_000).written) == 1
    assert emit(agent, "before_compaction", *TEA, window=100_000, tokens=95_000).written == ()


def test_each_announced_compaction_writes_what_is_new(open_agent: OpenAgent) -> None:
    agent = open_agent("memory-core")
    (first,) = emit(agent, "before_compaction", *TEA).written
    (second,) = emit(agent, "before_compaction", *TEA, *TRAIN).written
    text = agent.memory.read(second.path, second.start_line, second.end_line - second.start_line + 1).text
    assert first.path == second.path
    assert "train to Lyon" in text
    assert "tea" not in text


def test_flushes_can_be_switched_off(open_agent: OpenAgent) -> None:
    agent = open_agent("memory-core", writing__flush=False)
    assert emit(agent, "before_compaction", *TEA) == Effect()


@pytest.mark.requirement("C2")
def test_the_summary_of_a_session_is_found_in_the_next(open_agent: OpenAgent) -> None:
    agent = open_agent("memory-core")
    (summary,) = emit(agent, "command_new", *TEA, *TRAIN).written
    effect = emit(agent, "before_agent_start", prompt="When does the train to Lyon leave?", session="s2")
    assert summary.path in effect.prepend_context


@pytest.mark.requirement("C2")
@pytest.mark.parametrize("event", ["command_new", "before_compaction"])
def test_the_host_learns_that_the_language_model_failed(open_agent: OpenAgent, event: str) -> None:
    agent = open_agent("memory-core", llm__provider="openai", llm__model="m")
    effect = emit(agent, event, *TEA, *TRAIN)
    assert len(effect.written) == 1
    assert [note.partition(": openai/m: ")[0] for note in effect.warnings] == [
        "Summarised without a language model"
    ]
    assert effect.as_host()["warnings"] == list(effect.warnings)


@pytest.fixture
def talkative(open_agent: OpenAgent) -> tuple[Agent, list[str]]:
    """An agent whose memory uses a language model, and the prompts that the model got."""
    from memoriter.testing import ScriptedChat

    learned = '[{"content": "The user prefers tea over coffee.", "type": "user_preference", "turn": 1}]'
    chat = ScriptedChat(learned, learned, learned)
    agent = open_agent(
        "memory-lancedb", extraction__auto_extract=True, extraction__trigger__message_interval=6
    )
    parts_of(agent.memory).open_once("chat", lambda: chat)
    return agent, chat.asked


def test_the_language_model_gets_each_turn_once_and_the_last_ones_at_the_end(
    talkative: tuple[Agent, list[str]],
) -> None:
    agent, asked = talkative
    assert emit(agent, "agent_end", *TEA).remembered == ()
    assert emit(agent, "agent_end", *TEA, *TRAIN).remembered == ()
    assert asked == []
    more = (user("We meet at noon."), assistant("Fine."))
    assert len(emit(agent, "agent_end", *TEA, *TRAIN, *more).remembered) == 3
    assert len(asked) == 1
    last = (*TEA, *TRAIN, *more, user("The heron is back."))
    assert emit(agent, "agent_end", *last).remembered == ()
    emit(agent, "session_end", *last)
    assert len(asked) == 2
    shown = asked[1].rpartition("<conversation>")[2]
    assert ("heron" in shown, "train to Lyon" in shown) == (True, False)
    emit(agent, "session_end", *last)
    assert len(asked) == 2
