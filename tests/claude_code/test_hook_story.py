"""Days with Claude Code, through the hooks alone: what the user says on one day is known on the next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_claude_code import ClaudeCode

from lab.evals.recalled_blocks import read_back


def recalled(context: str) -> list[str]:
    """Return the texts of the recalled block in the context of a prompt."""
    start = context.find("<relevant-memories")
    return [line.text for line in read_back(context[start:])[1]] if start >= 0 else []


@pytest.mark.requirement("X9")
def test_a_statement_from_one_day_is_known_on_the_next(real_claude: ClaudeCode) -> None:
    """With the bundled model, as installed by default."""
    del real_claude.environment["MEMORITER_EMBEDDING__PROVIDER"]
    real_claude.say(
        "I prefer tabs over spaces in all my Go code. Please fix the build.", "The build is green."
    )
    assert real_claude.process("Stop", stop_hook_active=False).answer == {}

    context = real_claude.context("SessionStart", session="day-2", source="startup")
    assert recalled(context) == ["I prefer tabs over spaces in all my Go code."]
    prompt = "Write main.go. Do I prefer tabs or spaces in Go?"
    context = real_claude.context("UserPromptSubmit", session="day-2", prompt=prompt)
    assert recalled(context) == ["I prefer tabs over spaces in all my Go code."]


def test_a_session_begins_with_what_matters_and_how_to_use_the_memory(claude: ClaudeCode) -> None:
    claude.say("I prefer tabs in Go code. We decided to use NATS for the queue.", session="here")
    claude.process(session="here")
    other = claude.project.parent / "other"
    (other / ".git").mkdir(parents=True)
    claude.say("We decided to use Kafka for the log.", session="there")
    claude.process(session="there", cwd=str(other))
    known = {"startup": 2, "clear": 2, "compact": 2, "resume": 0, "fork": 0}
    context = {source: claude.context("SessionStart", session="new", source=source) for source in known}
    assert {source: len(recalled(text)) for source, text in context.items()} == known
    assert sorted(recalled(context["startup"])) == [
        "I prefer tabs in Go code.",
        "We decided to use NATS for the queue.",
    ]
    in_other = claude.context("SessionStart", session="new", source="startup", cwd=str(other / "deep"))
    assert sorted(recalled(in_other)) == ["I prefer tabs in Go code.", "We decided to use Kafka for the log."]
    assert context["startup"].startswith("<memory-context>\n")
    assert "`memoriter search 'a few words'`" in context["startup"]
    assert context["resume"] == ""


def test_the_introduction_names_only_available_tools(claude: ClaudeCode) -> None:
    claude.home.mkdir()
    (claude.home / "config.yaml").write_text("plugins: {slots: {memory: memory-core}}")
    context = claude.hook("SessionStart", "--server", "mem", "--deadline", "20", source="startup").context
    assert "`mcp__mem__memory_search`" in context
    assert "memory_store" not in context


def test_injected_text_stays_below_the_limit_of_claude_code(claude: ClaudeCode) -> None:
    claude.home.mkdir()
    (claude.home / "config.yaml").write_text(
        "memory: {max_injected_chars: 100000}\nretrieval: {max_memories: 100}"
    )
    with claude.memory() as memory:
        for number in range(40):
            memory.entries.add(f"Rule {number} of the house: {'tabs and spaces ' * 40}", "user_preference")
    for event in ("SessionStart", "UserPromptSubmit"):
        context = claude.context(event, source="startup", prompt="Which rules of the house are there?")
        assert 4_000 < len(context) < 9_500
        assert len(recalled(context)) > 5


def test_text_that_claude_code_would_cut_is_not_injected(claude: ClaudeCode) -> None:
    """Claude Code counts UTF-16 units: an emoji is two."""
    claude.home.mkdir()
    (claude.home / "config.yaml").write_text("memory: {max_injected_chars: 8000}")
    with claude.memory() as memory:
        for number in range(10):
            memory.entries.add(f"Rule {number} of the house: {'🦉' * 900}", "user_preference")
    assert claude.context("UserPromptSubmit", prompt="Which rules of the house are there?") == ""
    assert "too many for a prompt; nothing was injected" in claude.log()


def test_a_prompt_that_matches_no_note_gets_none(claude: ClaudeCode) -> None:
    """With the bundled model, whose scores are rarely zero."""
    del claude.environment["MEMORITER_EMBEDDING__PROVIDER"]
    (claude.workspace / "MEMORY.md").write_text(
        "# Memory\n\nThe stop loss is eight percent below the price.\n\nMira lives in Lisbon and grows ferns.\n"
    )
    claude.hook("SessionStart", "--wait", "--deadline", "20", source="startup")
    for prompt in ("Run the tests and commit.", "Rename the variable foo to bar everywhere"):
        assert claude.context("UserPromptSubmit", prompt=prompt) == ""
    (line,) = recalled(claude.context("UserPromptSubmit", prompt="What is our stop loss in percent?"))
    assert "eight percent" in line


def test_each_turn_is_captured_once(claude: ClaudeCode) -> None:
    claude.say("I prefer tabs in Go code.")
    claude.process()
    claude.process()
    claude.say("I never work on Fridays.")
    claude.process("SessionEnd", reason="other")
    with claude.memory() as memory:
        found = {entry.text: (entry.repetitions, entry.session) for entry in memory.entries.list()}
    assert [count for count, _ in found.values()] == [1, 1]
    assert set(found) == {"I prefer tabs in Go code.", "I never work on Fridays."}


def test_turns_copied_into_a_forked_session_are_not_captured_again(claude: ClaudeCode) -> None:
    original = claude.say("I prefer tabs in Go code.", session="one")
    claude.process(session="one")
    # Claude Code copies the transcript under the new id, before or after it calls the hook.
    (claude.transcripts / "two.jsonl").write_text(original.read_text().replace('"one"', '"two"'))
    assert claude.context("SessionStart", session="two", source="fork") == ""
    claude.process("Stop", session="two")
    claude.say("I never work on Fridays.", "Good to know.", session="two")
    claude.process("Stop", session="two")
    claude.process("SessionEnd", session="two", reason="other")
    with claude.memory() as memory:
        found = {entry.text: (entry.repetitions, entry.session) for entry in memory.entries.list()}
    assert found == {"I prefer tabs in Go code.": (1, "one"), "I never work on Fridays.": (1, "two")}
    (summary,) = (claude.workspace / "memory").glob("*.md")
    assert "tabs" not in summary.read_text()


def test_an_agent_stays_untrusted_after_a_fork_if_it_read_from_the_web_before(claude: ClaudeCode) -> None:
    path = claude.say("What does the web say about geese?", session="two")
    call = {"type": "tool_use", "id": "t1", "name": "WebFetch", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "Geese bite."}
    with path.open("a") as file:
        for role, part in (("assistant", call), ("user", answer)):
            said = {
                "type": role,
                "timestamp": "2026-02-08T02:00:00Z",
                "message": {"role": role, "content": [part]},
            }
            file.write(json.dumps(said) + "\n")
    claude.context("SessionStart", session="two", source="fork")
    claude.say(
        "A task is over.",
        "We decided that geese guard the harbour from now on.",
        session="two",
        origin={"kind": "task-notification"},
    )
    claude.say("I never work on Fridays.", "Herons are noted.", session="two")
    claude.process("SessionEnd", session="two", reason="other")
    (summary,) = (claude.workspace / "memory").glob("*.md")
    found = {word: word in summary.read_text() for word in ("Fridays", "Herons", "geese")}
    assert found == {"Fridays": True, "Herons": False, "geese": False}


def test_injected_text_is_not_captured(claude: ClaudeCode) -> None:
    claude.say("I prefer tabs in Go code.", session="one")
    claude.process(session="one")
    context = claude.context("UserPromptSubmit", session="two", prompt="Do I prefer tabs?")
    with claude.memory() as memory:
        memory.erase(memory.entries.list()[0].id)
    claude.say(f"Do I prefer tabs?\n{context}", session="two")
    claude.say(f"<user-prompt-submit-hook>{context}</user-prompt-submit-hook>\nThanks.", session="two")
    claude.process("SessionEnd", session="two", reason="clear")
    assert claude.entries() == []


def test_sub_agents_and_continued_turns_are_not_processed(claude: ClaudeCode) -> None:
    path = claude.say("I prefer tabs in Go code.", session="agent-3f2a")
    claude.process(session="agent-3f2a")
    claude.process(transcript_path=str(path), agent_id="a1")
    (claude.transcripts / "main" / "subagents").mkdir(parents=True)
    moved = path.rename(claude.transcripts / "main" / "subagents" / "b1.jsonl")
    claude.process(transcript_path=str(moved))
    claude.say("I always use uv.", session="side", isSidechain=True)
    claude.process(session="side")
    claude.say("I never use pip.", session="again")
    claude.process(session="again", stop_hook_active=True)
    assert claude.entries() == []


def test_a_compaction_writes_what_it_would_lose_once(claude: ClaudeCode) -> None:
    claude.say("We decided to use NATS for the queue, because Kafka was too heavy for us.", "Noted.")
    claude.process("PreCompact", trigger="auto", custom_instructions="")
    claude.process("PreCompact", trigger="manual", custom_instructions="")
    (log,) = (claude.workspace / "memory").glob("*.md")
    assert log.read_text().count("<!-- memoriter: flush") == 1
    claude.say("We decided to keep the mail sender in Rust, it is fast enough.", "Noted.")
    claude.process("PreCompact", trigger="auto", custom_instructions="")
    assert log.read_text().count("<!-- memoriter: flush") == 2
    assert "NATS" not in log.read_text().partition("Rust")[2]


def test_a_finished_session_is_summarised_under_its_id(claude: ClaudeCode) -> None:
    claude.say("Please move the backup to the bucket heron.", "The backup runs into heron every night.")
    claude.process("SessionEnd", reason="prompt_input_exit")
    (note,) = (claude.workspace / "memory").glob("*.md")
    assert "heron" in note.read_text()
    assert 'session: "5b0c7a1e-0000-4000-8000-000000000001"' in note.read_text()


def test_a_project_folder_named_memory_is_not_the_workspace(claude: ClaudeCode) -> None:
    del claude.environment["MEMORITER_WORKSPACE"]
    (claude.project / "memory").mkdir()
    claude.say("Please move the backup to the bucket heron.", "The backup runs into heron every night.")
    claude.process("SessionEnd", reason="other")
    assert list((claude.project / "memory").iterdir()) == []
    assert [path.suffix for path in (claude.home / "workspace" / "memory").iterdir()] == [".md"]


def test_progress_records_the_project_but_no_text_of_the_session(claude: ClaudeCode) -> None:
    path = claude.say("I prefer tabs in Go code.")
    claude.process()
    (state,) = (claude.home / "agents" / "main" / "hooks").glob("*.json")
    progress = json.loads(state.read_text())
    assert (progress["project"], progress["transcript"]) == (str(claude.project), str(path))
    assert "tabs" not in state.read_text()
    assert Path(progress["transcript"]).stat().st_size == progress["position"]["offset"]
