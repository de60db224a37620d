"""What our own plugins do at each moment, and what they never do."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from talk import TEA, TRAIN, Message, assistant, said, user

from memoriter import Memory
from memoriter.agent import Agent, Effect, Event, Moment
from memoriter.recall.render import read_back
from memoriter.testing import FailingEmbedder

OpenHost = Callable[..., Agent]
Note = Callable[[str, str], Path]
OWN = ("memory-core", "memory-lancedb", "memory-full")


def groups(effect: Effect) -> list[str]:
    return [line.group for line in read_back(effect.prepend_context)[1]] if effect.prepend_context else []


def repetitions(host: Agent) -> dict[str, int]:
    return {entry.text: entry.repetitions for entry in host.memory.entries.list()}


# ---- before the agent starts ------------------------------------------------------------------------------------


@pytest.fixture
def filled(open_host: OpenHost, note: Note) -> Callable[[str], Agent]:
    """A host with this slot over notes and more entries than enter a prompt."""
    for number, hour in enumerate(("one", "two", "three", "four", "five")):
        note(f"memory/kettle-{number}.md", f"# Kettle {hour}\n\nThe green tea kettle boils at {hour}.\n")

    def fill(slot: str) -> Agent:
        host = open_host(slot)
        for who in ("Anna polished", "Bruno repaired", "Chen photographed", "Dora described", "Emil filled"):
            host.memory.entries.add(f"{who} the green tea kettle that sings", "fact")
        return host

    return fill


@pytest.mark.parametrize(
    ("slot", "expected"),
    [
        ("memory-core", ["notes"] * 3),
        ("memory-lancedb", ["fact"] * 3),
        ("memory-full", ["fact"] * 5 + ["notes"] * 3),
    ],
)
def test_each_plugin_puts_its_own_kind_before_the_agent(
    filled: Callable[[str], Agent], slot: str, expected: list[str]
) -> None:
    effect = said(filled(slot), "before_agent_start", prompt="When does the green tea kettle sing?")
    assert groups(effect) == expected
    assert effect.prepend_context.startswith(f'<relevant-memories recall="{effect.recall_id}">')
    assert effect.warnings == ()


def test_what_fits_less_than_the_threshold_is_not_told(filled: Callable[[str], Agent]) -> None:
    host = filled("memory-lancedb")
    assert said(host, "before_agent_start", prompt="Who won the chess tournament?") == Effect()


def test_the_owner_may_say_how_many_entries_are_told(open_host: OpenHost) -> None:
    host = open_host("memory-lancedb", retrieval__max_memories=1)
    for who in ("Anna polished", "Bruno repaired"):
        host.memory.entries.add(f"{who} the green tea kettle that sings", "fact")
    assert groups(said(host, "before_agent_start", prompt="When does the green tea kettle sing?")) == ["fact"]
    off = open_host("memory-full", retrieval__inject_on_query=False)
    assert said(off, "before_agent_start", prompt="When does the green tea kettle sing?") == Effect()


def test_the_prompt_counts_and_else_what_the_user_said_last(filled: Callable[[str], Agent]) -> None:
    host = filled("memory-lancedb")
    asked = user("When does the green tea kettle sing?")
    assert groups(said(host, "before_agent_start", asked)) == ["fact"] * 3
    assert groups(said(host, "before_agent_start", asked, assistant("At six."))) == ["fact"] * 3
    assert (
        groups(said(host, "before_agent_start", asked, assistant("At six."), prompt="And?")) == ["fact"] * 3
    )
    assert groups(said(host, "before_agent_start", asked, prompt="Who won the chess tournament?")) == []
    assert groups(said(host, "before_agent_start")) == []


def test_what_is_told_is_a_share_of_the_window(filled: Callable[[str], Agent]) -> None:
    host = filled("memory-full")
    question = "When does the green tea kettle sing?"
    wide = said(host, "before_agent_start", prompt=question, window=100_000)
    narrow = said(host, "before_agent_start", prompt=question, window=1_000)
    full = said(host, "before_agent_start", prompt=question, window=1_000, tokens=995)
    assert len(groups(wide)) == 8
    assert 0 < len(groups(narrow)) < 8
    assert groups(full) == []


def test_a_session_out_of_scope_is_neither_told_anything_nor_listened_to(
    filled: Callable[[str], Agent], workspace: Path
) -> None:
    host = filled("memory-full")
    before = repetitions(host), sorted(workspace.rglob("*.md"))
    key = "agent:main:telegram:group:42"
    asked: list[tuple[Event, dict[str, object]]] = [
        ("before_agent_start", {"prompt": "When does the green tea kettle sing?"}),
        ("agent_end", {}),
        ("before_compaction", {}),
        ("command_new", {}),
        ("session_end", {}),
    ]
    for event, more in asked:
        assert said(host, event, *TEA, session_key=key, **more) == Effect()
    assert (repetitions(host), sorted(workspace.rglob("*.md"))) == before


def test_a_recall_that_comes_too_late_is_not_in_the_ledger(open_host: OpenHost) -> None:
    """The ledger says what entered a prompt: it must not hold what was dropped."""
    host = open_host("memory-lancedb")
    entry = host.memory.entries.add("The green tea kettle sings at six", "fact").entry
    assert entry
    told = host.memory.recall("When does the green tea kettle sing?", given_up=lambda: True)
    assert (told.text, told.id) == ("", "")
    assert host.memory.entries.recalls(entry=entry.id).recalls == ()
    told = host.memory.recall("When does the green tea kettle sing?")
    assert [recall.id for recall in host.memory.entries.recalls(entry=entry.id).recalls] == [told.id]


def test_an_embedder_that_fails_costs_a_warning_and_words_still_find(
    workspace: Path, tmp_path: Path, note: Note
) -> None:
    note("memory/a.md", "The heron stands in the marsh.")
    with Agent.open(workspace=workspace, home=tmp_path / "state", embedder=FailingEmbedder()) as host:
        effect = said(host, "before_agent_start", prompt="Where does the heron stand?")
    assert groups(effect) == ["notes"]
    assert any("out of order" in warning for warning in effect.warnings)


# ---- after the agent has ended ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("slot", "kept"), [("memory-core", 0), ("memory-lancedb", 1), ("memory-full", 1)])
def test_what_the_user_said_is_remembered_where_the_plugin_listens(
    open_host: OpenHost, slot: str, kept: int
) -> None:
    host = open_host(slot)
    effect = said(host, "agent_end", *TEA)
    assert [done.action for done in effect.remembered] == ["added"] * kept
    assert effect.warnings == ()


def test_a_host_that_sends_the_whole_conversation_each_time_repeats_nothing(open_host: OpenHost) -> None:
    host = open_host("memory-lancedb")
    assert len(said(host, "agent_end", *TEA).remembered) == 1
    assert said(host, "agent_end", *TEA).remembered == ()
    longer = (*TEA, *TRAIN)
    assert [done.entry.text for done in said(host, "agent_end", *longer).remembered if done.entry] == [
        "My train to Lyon leaves at seven."
    ]
    assert said(host, "agent_end", *longer).remembered == ()
    assert said(host, "session_end", *longer).remembered == ()
    assert set(repetitions(host).values()) == {1}


def test_nothing_is_repeated_after_a_restart_or_a_compaction(open_host: OpenHost) -> None:
    conversation = (*TEA, *TRAIN)
    with open_host("memory-full") as first:
        assert len(said(first, "agent_end", *conversation).remembered) == 2
    host = open_host("memory-full")
    assert said(host, "agent_end", *conversation).remembered == ()
    shortened = (user("Summary: the user drinks tea."), *TRAIN)
    assert said(host, "agent_end", *shortened).remembered == ()
    assert set(repetitions(host).values()) == {1}


def test_what_is_said_again_counts_again(open_host: OpenHost) -> None:
    host = open_host("memory-lancedb")
    said(host, "agent_end", *TEA)
    (again,) = said(host, "agent_end", *TEA, *TEA).remembered
    assert again.action == "repeated"
    (elsewhere,) = said(host, "agent_end", *TEA, session="s2").remembered
    assert elsewhere.action == "repeated"
    assert repetitions(host) == {"I prefer tea over coffee.": 3}


def test_two_processes_that_hear_the_same_session_count_it_once(
    open_host: OpenHost, tmp_path: Path, workspace: Path
) -> None:
    one, two = open_host("memory-full"), open_host("memory-full")
    assert len(said(one, "agent_end", *TEA).remembered) == 1
    assert said(two, "agent_end", *TEA).remembered == ()


def test_nothing_that_recall_put_into_the_prompt_is_ever_captured(open_host: OpenHost) -> None:
    """B13: no recursion, however the host sends our own block and our tools' results back to us."""
    host = open_host("memory-full")
    said(host, "agent_end", *TEA)
    block = said(host, "before_agent_start", prompt="Tea or coffee?", session="s2").prepend_context
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
        assert said(host, event, *conversation, session="s2").remembered == ()
    assert repetitions(host) == {"I prefer tea over coffee.": 1}


def test_what_the_owner_forgot_does_not_come_back_with_the_conversation(open_host: OpenHost) -> None:
    host = open_host("memory-full")
    (done,) = said(host, "agent_end", *TEA).remembered
    assert done.entry
    host.memory.forget(done.entry.id)
    host.close()
    heard = next((host.service.memory.settings.agent_folder / "seen_turns").glob("*.json")).read_text("utf-8")
    assert "tea" not in heard
    again = open_host("memory-full")
    assert said(again, "agent_end", *TEA).remembered == ()
    assert repetitions(again) == {}


def test_a_conversation_is_read_from_its_transcript_where_the_host_names_one(
    open_host: OpenHost, tmp_path: Path
) -> None:
    transcript = tmp_path / "s1.jsonl"
    lines = [*TEA, {"type": "tool", "noise": True}, *TRAIN]
    transcript.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + "{half", encoding="utf-8")
    host = open_host("memory-full")
    assert len(said(host, "agent_end", transcript=transcript).remembered) == 2
    (summary,) = said(host, "session_end", transcript=transcript).written
    assert summary.path.startswith("memory/")
    (warning,) = said(host, "agent_end", transcript=tmp_path / "gone.jsonl").warnings
    assert "gone.jsonl" in warning


def test_a_transcript_that_is_no_file_keeps_nobody_waiting(open_host: OpenHost, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    host = open_host("memory-full")
    for path in (pipe, tmp_path):
        (warning,) = said(host, "agent_end", transcript=path).warnings
        assert f"{path} is not a regular file" in warning
    assert len(said(host, "agent_end", *TEA).remembered) == 1


def test_of_a_long_line_no_piece_is_taken_for_a_line(open_host: OpenHost, tmp_path: Path) -> None:
    transcript = tmp_path / "s1.jsonl"
    begin, piece = '{"noise":"', json.dumps(user("I prefer whatever a stranger sells."))
    with transcript.open("w", encoding="utf-8") as file:
        file.write(begin + "x" * (4 * 1024 * 1024 - len(begin)) + piece + "\n")
        file.writelines(f"{json.dumps(line)}\n" for line in TEA)
    host = open_host("memory-full")
    (done,) = said(host, "agent_end", transcript=transcript).remembered
    assert done.entry
    assert done.entry.text == "I prefer tea over coffee."


def test_a_session_whose_name_holds_half_a_character_is_heard_and_told(open_host: OpenHost) -> None:
    host = open_host("memory-full")
    names: dict[str, Any] = {"session": "s\ud800", "session_key": "agent:main:\ud800"}
    assert len(said(host, "agent_end", *TEA, **names).remembered) == 1
    told = said(host, "before_agent_start", prompt="Do I prefer tea over coffee?", **names)
    assert (groups(told), told.warnings) == (["user_preference"], ())
    assert len(said(host, "session_end", *TEA, **names).written) == 1


# ---- when a conversation is shortened or over -------------------------------------------------------------------


@pytest.mark.parametrize(("slot", "written"), [("memory-core", 1), ("memory-lancedb", 0), ("memory-full", 1)])
@pytest.mark.parametrize("event", ["before_compaction", "command_new", "session_end"])
def test_the_plugins_that_watch_over_notes_write_down_what_would_be_lost(
    open_host: OpenHost, slot: str, written: int, event: Event
) -> None:
    host = open_host(slot)
    effect = said(host, event, *TEA, *TRAIN)
    assert len(effect.written) == written
    assert effect.warnings == ()
    assert said(host, event, *TEA, *TRAIN).written == ()  # and once only
    for saved in effect.written:
        assert "tea over coffee" in host.memory.read(saved.path).text


def test_a_flush_waits_for_its_time_where_the_host_says_how_long_the_window_is(open_host: OpenHost) -> None:
    host = open_host("memory-core")
    assert said(host, "before_compaction", *TEA, window=100_000, tokens=10_000).written == ()
    assert len(said(host, "before_compaction", *TEA, window=100_000, tokens=90_000).written) == 1
    assert said(host, "before_compaction", *TEA, window=100_000, tokens=95_000).written == ()


def test_each_compaction_that_a_host_announces_writes_what_is_new(open_host: OpenHost) -> None:
    host = open_host("memory-core")
    (first,) = said(host, "before_compaction", *TEA).written
    (second,) = said(host, "before_compaction", *TEA, *TRAIN).written
    text = host.memory.read(second.path, second.start_line, second.end_line - second.start_line + 1).text
    assert first.path == second.path
    assert "train to Lyon" in text
    assert "tea" not in text


def test_flushes_can_be_switched_off(open_host: OpenHost) -> None:
    host = open_host("memory-core", writing__flush=False)
    assert said(host, "before_compaction", *TEA) == Effect()


def test_what_a_session_is_about_is_found_in_the_next(open_host: OpenHost) -> None:
    host = open_host("memory-core")
    (summary,) = said(host, "command_new", *TEA, *TRAIN).written
    effect = said(host, "before_agent_start", prompt="When does the train to Lyon leave?", session="s2")
    assert summary.path in effect.prepend_context


@pytest.fixture
def talkative(open_host: OpenHost) -> tuple[Agent, list[str]]:
    """A host whose memory asks a language model; and what it was asked."""
    from memoriter.testing import ScriptedChat

    learned = '[{"content": "The user prefers tea over coffee.", "type": "user_preference", "turn": 1}]'
    chat = ScriptedChat(learned, learned, learned)
    host = open_host("memory-lancedb", extraction__auto_extract=True, extraction__trigger__message_interval=6)
    host.memory._open_writer().chat = chat
    return host, chat.asked


def test_the_language_model_sees_each_turn_once_and_the_rest_at_the_end(
    talkative: tuple[Agent, list[str]],
) -> None:
    host, asked = talkative
    assert said(host, "agent_end", *TEA).remembered == ()
    assert said(host, "agent_end", *TEA, *TRAIN).remembered == ()
    assert asked == []
    more = (user("We meet at noon."), assistant("Fine."))
    assert len(said(host, "agent_end", *TEA, *TRAIN, *more).remembered) == 1
    assert len(asked) == 1
    last = (*TEA, *TRAIN, *more, user("The heron is back."))
    assert said(host, "agent_end", *last).remembered == ()
    said(host, "session_end", *last)
    assert len(asked) == 2
    assert ("heron" in asked[1], "train to Lyon" in asked[1].split("heron")[0][-400:]) == (True, False)
    said(host, "session_end", *last)
    assert len(asked) == 2


# ---- the index --------------------------------------------------------------------------------------------------


def test_a_session_that_starts_takes_in_what_changed(open_host: OpenHost, note: Note) -> None:
    host = open_host("memory-core", search__sync_before=False)
    note("memory/a.md", "The heron stands in the marsh.")
    assert host.memory.search("heron").hits == ()
    said(host, "session_start")
    assert host.memory.search("heron").hits


def test_a_transcript_that_grew_is_taken_in(
    open_host: OpenHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoriter.agent.service.SESSION_DEBOUNCE_S", 0.0)
    host = open_host(
        "memory-core",
        search__sync_before=False,
        watch__enabled=False,
        sessions__delta_messages=1,
    )
    folder = tmp_path / "state/agents/main/sessions"
    folder.mkdir(parents=True)
    host.start()
    transcript = folder / "s1.jsonl"
    transcript.write_text("".join(f"{json.dumps(line)}\n" for line in TRAIN), encoding="utf-8")
    assert said(host, "transcript_update", transcript=transcript) == Effect()
    assert _found(host.memory, "train to Lyon")


def _found(memory: Memory, query: str) -> bool:
    import threading
    import time

    end, pause = time.monotonic() + 20, threading.Event()
    while not memory.search(query).hits:
        if time.monotonic() > end:
            return False
        pause.wait(0.01)
    return True


# ---- changing the plugin ----------------------------------------------------------------------------------------


def test_switching_the_slot_loses_nothing(open_host: OpenHost, note: Note) -> None:
    """B9: what was written while one plugin was active is found while any other is, by every way of asking."""
    birds = {"memory-core": "heron", "memory-lancedb": "stork", "memory-full": "avocet"}
    for slot, bird in birds.items():
        with open_host(slot) as host:
            note(f"memory/{slot}.md", f"The {bird} nests near the mill.")
            conversation = [
                user(f"Remember that the {bird} is my favourite bird of the week."),
                assistant("Yes."),
            ]
            said(host, "agent_end", *conversation, session=slot)
            host.memory.entries.add(f"Somebody photographed the {bird}", "fact")
            host.memory.save(f"The {bird} left in autumn.")
            said(host, "before_compaction", *conversation, session=slot)
            said(host, "session_end", *conversation, session=slot)
    with open_host("none") as nothing:
        assert nothing.error
    expected: dict[str, list[tuple[str, str]]] | None = None
    for slot in OWN:
        with open_host(slot) as host:
            found = {
                bird: sorted(
                    (hit.source, hit.path)
                    for source in ("memory", "entries")
                    for hit in host.memory.search(bird, max_results=20, source=source).hits  # type: ignore[arg-type]
                    if bird in hit.snippet
                )
                for bird in birds.values()
            }
        for bird, places in found.items():
            assert {source for source, _ in places} == {"memory", "entries"}, (slot, bird)
        assert expected in (None, found)
        expected = found


def test_a_moment_says_little_and_is_enough() -> None:
    assert Moment("agent_end") == Moment("agent_end", "main", None, (), "", None, None, None)


def test_what_was_learned_is_told_even_when_the_summary_cannot_be_written(
    open_host: OpenHost, workspace: Path
) -> None:
    host = open_host("memory-full")
    (workspace / "memory").rmdir()
    (workspace / "memory").write_text("a file, no folder", encoding="utf-8")
    effect = said(host, "session_end", *TEA)
    assert [done.action for done in effect.remembered] == ["added"]
    assert effect.written == ()
    assert len(effect.warnings) == 1


def test_the_ledger_knows_in_which_session_something_was_told(open_host: OpenHost) -> None:
    host = open_host()
    said(host, "agent_end", *TEA, session="monday")
    effect = said(host, "before_agent_start", session="tuesday", prompt="Tea or coffee?")
    [told] = host.memory.entries.recalls(limit=10, session="tuesday").recalls
    assert (told.id, told.interface) == (effect.recall_id, "hook")
    assert host.memory.entries.recalls(limit=10, session="monday").recalls == ()


def test_what_is_no_message_does_not_cost_the_others(open_host: OpenHost) -> None:
    host = open_host()
    odd: Any = (None, "text", 3, *TEA)
    effect = host.emit(Moment("agent_end", session="s1", messages=odd))
    assert ([done.action for done in effect.remembered], effect.warnings) == (["added"], ())
    nothing: Any = None
    assert host.emit(Moment("agent_end", session="s2", messages=nothing)) == Effect()
    assert host.emit(Moment("before_agent_start", session="s2", prompt=nothing)) == Effect()
