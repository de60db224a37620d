"""Days with Claude Code, through the hooks alone: what is said on one is known on the next."""

from __future__ import annotations

import json
from pathlib import Path

from fake_claude_code import ClaudeCode

from memoriter.recall.render import read_back


def block(told: str) -> list[str]:
    """The texts of the recalled block in what was told."""
    start = told.find("<relevant-memories")
    return [line.text for line in read_back(told[start:])[1]] if start >= 0 else []


def test_what_was_said_on_one_day_is_known_on_the_next(real_claude: ClaudeCode) -> None:
    """With the bundled model, as people have it."""
    del real_claude.environment["MEMORITER_EMBEDDING__PROVIDER"]
    real_claude.say(
        "I prefer tabs over spaces in all my Go code. Please fix the build.", "The build is green."
    )
    assert real_claude.heard("Stop", stop_hook_active=False).answer == {}

    told = real_claude.told("SessionStart", session="day-2", source="startup")
    assert block(told) == ["I prefer tabs over spaces in all my Go code."]
    prompt = "Add a file main.go; how do I like it indented?"
    told = real_claude.told("UserPromptSubmit", session="day-2", prompt=prompt)
    assert block(told) == ["I prefer tabs over spaces in all my Go code."]


def test_a_session_begins_with_what_matters_and_how_to_use_the_memory(claude: ClaudeCode) -> None:
    claude.say("I prefer tabs in Go code. We decided to use NATS for the queue.", session="here")
    claude.heard(session="here")
    other = claude.project.parent / "other"
    (other / ".git").mkdir(parents=True)
    claude.say("We decided to use Kafka for the log.", session="there")
    claude.heard(session="there", cwd=str(other))
    known = {"startup": 2, "clear": 2, "compact": 2, "resume": 0, "fork": 0}
    told = {source: claude.told("SessionStart", session="new", source=source) for source in known}
    assert {source: len(block(text)) for source, text in told.items()} == known
    assert sorted(block(told["startup"])) == [
        "I prefer tabs in Go code.",
        "We decided to use NATS for the queue.",
    ]
    elsewhere = claude.told("SessionStart", session="new", source="startup", cwd=str(other / "deep"))
    assert sorted(block(elsewhere)) == ["I prefer tabs in Go code.", "We decided to use Kafka for the log."]
    assert told["startup"].startswith("<memory-context>\n")
    assert "`memoriter search 'a few words'`" in told["startup"]
    assert told["resume"] == ""


def test_an_agent_is_told_only_of_tools_that_it_has(claude: ClaudeCode) -> None:
    claude.home.mkdir()
    (claude.home / "config.yaml").write_text("plugins: {slots: {memory: memory-core}}")
    told = claude.hook("SessionStart", "--server", "mem", "--deadline", "20", source="startup").told
    assert "`mcp__mem__memory_search`" in told
    assert "memory_store" not in told


def test_what_is_put_into_a_prompt_stays_below_the_hosts_limit(claude: ClaudeCode) -> None:
    claude.home.mkdir()
    (claude.home / "config.yaml").write_text(
        "memory: {max_injected_chars: 100000}\nretrieval: {max_memories: 100}"
    )
    with claude.memory() as memory:
        for number in range(40):
            memory.entries.add(f"Rule {number} of the house: {'tabs and spaces ' * 40}", "user_preference")
    for event in ("SessionStart", "UserPromptSubmit"):
        told = claude.told(event, source="startup", prompt="Which rules of the house are there?")
        assert 4_000 < len(told) < 9_500
        assert len(block(told)) > 5


def test_what_the_host_would_cut_is_not_told(claude: ClaudeCode) -> None:
    """It counts as JavaScript does, and an emoji is two."""
    claude.home.mkdir()
    (claude.home / "config.yaml").write_text("memory: {max_injected_chars: 8000}")
    with claude.memory() as memory:
        for number in range(10):
            memory.entries.add(f"Rule {number} of the house: {'🦉' * 900}", "user_preference")
    assert claude.told("UserPromptSubmit", prompt="Which rules of the house are there?") == ""
    assert "too many for a prompt; nothing was injected" in claude.log()


def test_a_prompt_about_no_note_is_told_of_none(claude: ClaudeCode) -> None:
    """With the bundled model, whose scores for anything at all are seldom zero."""
    del claude.environment["MEMORITER_EMBEDDING__PROVIDER"]
    (claude.workspace / "MEMORY.md").write_text(
        "# Memory\n\nThe stop loss is eight percent below the price.\n\nMira lives in Lisbon and grows ferns.\n"
    )
    claude.hook("SessionStart", "--wait", "--deadline", "20", source="startup")
    for prompt in ("Run the tests and commit.", "Rename the variable foo to bar everywhere"):
        assert claude.told("UserPromptSubmit", prompt=prompt) == ""
    (line,) = block(claude.told("UserPromptSubmit", prompt="What is our stop loss in percent?"))
    assert "eight percent" in line


def test_only_what_is_new_is_heard(claude: ClaudeCode) -> None:
    claude.say("I prefer tabs in Go code.")
    claude.heard()
    claude.heard()
    claude.say("I never work on Fridays.")
    claude.heard("SessionEnd", reason="other")
    with claude.memory() as memory:
        kept = {entry.text: (entry.repetitions, entry.session) for entry in memory.entries.list()}
    assert [count for count, _ in kept.values()] == [1, 1]
    assert set(kept) == {"I prefer tabs in Go code.", "I never work on Fridays."}


def test_what_a_forked_session_brings_along_is_not_heard_again(claude: ClaudeCode) -> None:
    original = claude.say("I prefer tabs in Go code.", session="one")
    claude.heard(session="one")
    # Claude Code begins the fork's transcript with a copy, under the new id; it asks us before or after.
    (claude.transcripts / "two.jsonl").write_text(original.read_text().replace('"one"', '"two"'))
    assert claude.told("SessionStart", session="two", source="fork") == ""
    claude.heard("Stop", session="two")
    claude.say("I never work on Fridays.", "Good to know.", session="two")
    claude.heard("Stop", session="two")
    claude.heard("SessionEnd", session="two", reason="other")
    with claude.memory() as memory:
        kept = {entry.text: (entry.repetitions, entry.session) for entry in memory.entries.list()}
    assert kept == {"I prefer tabs in Go code.": (1, "one"), "I never work on Fridays.": (1, "two")}
    (summary,) = (claude.workspace / "memory").glob("*.md")
    assert "tabs" not in summary.read_text()


def test_what_the_web_said_before_a_fork_is_no_word_of_the_agents_after_it(claude: ClaudeCode) -> None:
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
    claude.told("SessionStart", session="two", source="fork")
    claude.say(
        "A task is over.",
        "We decided that geese guard the harbour from now on.",
        session="two",
        origin={"kind": "task-notification"},
    )
    claude.say("I never work on Fridays.", "Herons are noted.", session="two")
    claude.heard("SessionEnd", session="two", reason="other")
    (summary,) = (claude.workspace / "memory").glob("*.md")
    assert ("Herons" in summary.read_text(), "geese" in summary.read_text()) == (True, False)


def test_nobody_learns_from_what_was_put_into_a_prompt(claude: ClaudeCode) -> None:
    claude.say("I prefer tabs in Go code.", session="one")
    claude.heard(session="one")
    told = claude.told("UserPromptSubmit", session="two", prompt="Do I prefer tabs?")
    with claude.memory() as memory:
        memory.forget(memory.entries.list()[0].id)
    claude.say(f"Do I prefer tabs?\n{told}", session="two")
    claude.say(f"<user-prompt-submit-hook>{told}</user-prompt-submit-hook>\nThanks.", session="two")
    claude.heard("SessionEnd", session="two", reason="clear")
    assert claude.learned() == []


def test_sub_agents_and_turns_that_a_hook_prolongs_are_not_heard(claude: ClaudeCode) -> None:
    path = claude.say("I prefer tabs in Go code.", session="agent-3f2a")
    claude.heard(session="agent-3f2a")
    claude.heard(transcript_path=str(path), agent_id="a1")
    (claude.transcripts / "main" / "subagents").mkdir(parents=True)
    moved = path.rename(claude.transcripts / "main" / "subagents" / "b1.jsonl")
    claude.heard(transcript_path=str(moved))
    claude.say("I always use uv.", session="side", isSidechain=True)
    claude.heard(session="side")
    claude.say("I never use pip.", session="again")
    claude.heard(session="again", stop_hook_active=True)
    assert claude.learned() == []


def test_before_a_compaction_what_would_be_lost_is_written_down_once(claude: ClaudeCode) -> None:
    claude.say("We decided to use NATS for the queue, because Kafka was too heavy for us.", "Noted.")
    claude.heard("PreCompact", trigger="auto", custom_instructions="")
    claude.heard("PreCompact", trigger="manual", custom_instructions="")
    (log,) = (claude.workspace / "memory").glob("*.md")
    assert log.read_text().count("<!-- memoriter: flush") == 1
    claude.say("We decided to keep the mail sender in Rust, it is fast enough.", "Noted.")
    claude.heard("PreCompact", trigger="auto", custom_instructions="")
    assert log.read_text().count("<!-- memoriter: flush") == 2
    assert "NATS" not in log.read_text().partition("Rust")[2]


def test_a_session_that_ends_is_summarised_under_its_own_name(claude: ClaudeCode) -> None:
    claude.say("Please move the backup to the bucket heron.", "The backup runs into heron every night.")
    claude.heard("SessionEnd", reason="prompt_input_exit")
    (note,) = (claude.workspace / "memory").glob("*.md")
    assert "heron" in note.read_text()
    assert 'session: "5b0c7a1e-0000-4000-8000-000000000001"' in note.read_text()


def test_a_project_with_a_folder_named_memory_is_not_taken_for_the_notes(claude: ClaudeCode) -> None:
    del claude.environment["MEMORITER_WORKSPACE"]
    (claude.project / "memory").mkdir()
    claude.say("Please move the backup to the bucket heron.", "The backup runs into heron every night.")
    claude.heard("SessionEnd", reason="other")
    assert list((claude.project / "memory").iterdir()) == []
    assert [path.suffix for path in (claude.home / "workspace" / "memory").iterdir()] == [".md"]


def test_the_project_of_a_session_is_noted_and_no_word_of_it(claude: ClaudeCode) -> None:
    path = claude.say("I prefer tabs in Go code.")
    claude.heard()
    (mark,) = (claude.home / "agents" / "main" / "hooks").glob("*.json")
    noted = json.loads(mark.read_text())
    assert (noted["project"], noted["transcript"]) == (str(claude.project), str(path))
    assert "tabs" not in mark.read_text()
    assert Path(noted["transcript"]).stat().st_size == noted["mark"]["offset"]
