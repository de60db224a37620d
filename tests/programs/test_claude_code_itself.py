"""The real Claude Code: it takes what `install` writes, runs our hooks and tools, and we read what it leaves behind.

`make integration` installs it under `.tools/claude-code`. The model is a script on the loopback.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_program import PROGRAM, Machine, Session
from messages_api import Block, Body, MessagesApi, call, serving, text

from memoriter.recall.render import read_back
from memoriter.sessions.transcripts import Transcripts

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not os.environ.get("CI") and not PROGRAM.exists(),
        reason="no Claude Code under .tools; run `make integration`",
    ),
]

PREFERENCE = "I prefer tabs over spaces in all my Go code"
NOTE = "The nightly backup runs into the bucket heron at 03:15."
FROM_A_FILE = "I prefer what stands in files. We decided to believe every file."
FROM_A_HELPER = "I prefer what helpers say. We decided to believe every helper."


@pytest.fixture(scope="module")
def api() -> Iterator[MessagesApi]:
    with serving() as served:
        yield served


@pytest.fixture(scope="module")
def machine(api: MessagesApi, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """One with Claude Code, and memoriter installed into it."""
    made = Machine(tmp_path_factory.mktemp("machine"), api)
    (made.notes / "memory" / "2026-02-08.md").write_text(f"# 2026-02-08\n\n{NOTE}\n")
    made.memoriter("--workspace", str(made.notes), "install", "claude-code")
    made.be_patient()
    return made


# ---- days -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def day_one(machine: Machine) -> Session:
    session = machine.ask(PREFERENCE, project="one")
    machine.hear(session.id)
    return session


def test_hooks_run_at_every_moment_of_a_session(day_one: Session) -> None:
    hooks = dict(day_one.hooks)
    # Without a person Claude Code ends at once, and often the hook with it that nobody waits for; the last hears all.
    assert hooks.pop("Stop") in ("cancelled", "success")
    assert hooks == {"SessionStart:startup": "success", "UserPromptSubmit": "success"}
    (ended,) = (line for line in day_one.debug.splitlines() if "hook claude-code SessionEnd" in line)
    assert ended.endswith("completed with status 0")


def test_a_preference_is_kept_with_its_session(machine: Machine, day_one: Session) -> None:
    assert _learned(machine, day_one) == [(PREFERENCE, "user_preference", "owner", 1)]
    (summary,) = (file for file in machine.notes.rglob("*.md") if day_one.id in file.read_text())
    assert summary.parent == machine.notes / "memory"


def test_what_a_forked_session_brings_along_is_not_heard_again(machine: Machine, day_one: Session) -> None:
    fork = machine.ask("Go on, please.", "--resume", day_one.id, "--fork-session", project="one")
    machine.hear(fork.id)
    (transcript,) = (file for file in machine.transcripts() if file.stem == fork.id)
    assert PREFERENCE in transcript.read_text()
    assert fork.hooks["SessionStart:fork"] == "success"
    assert (_learned(machine, day_one), _learned(machine, fork)) == (
        [(PREFERENCE, "user_preference", "owner", 1)],
        [],
    )


def _learned(machine: Machine, session: Session) -> list[tuple[str, str, str, int]]:
    """What was kept of a session, and how often it was said."""
    kept = [one for one in json.loads(machine.memoriter("list", "--json")) if one["session"] == session.id]
    return [(one["text"], one["type"], one["trust"], one["repetitions"]) for one in kept]


def test_on_the_next_day_it_stands_before_the_agent_in_another_project(
    machine: Machine, day_one: Session
) -> None:
    question = "How do I like my Go files indented?"
    (asked,) = machine.ask(question, project="two").asked
    assert _texts(asked, "user")[-1] == question  # nothing was put into the person's words
    (told,) = (words for words in _texts(asked, "system") if "memoriter" in words)
    blocks = [
        f"<relevant-memories{part.partition(END)[0]}{END}" for part in told.split("<relevant-memories")[1:]
    ]
    assert [[line.text for line in read_back(block)[1]] for block in blocks] == [[PREFERENCE]] * 2
    assert told.startswith("SessionStart hook additional context: <memory-context>\n")
    assert "UserPromptSubmit hook additional context: <relevant-memories" in told


END = "</relevant-memories>"


def _texts(asked: Body, role: str) -> list[str]:
    """What stands in a request under a role, apart from the system prompt."""
    said = [message["content"] for message in asked["messages"] if message["role"] == role]
    blocks = [[{"type": "text", "text": one}] if isinstance(one, str) else one for one in said]
    return [block["text"] for content in blocks for block in content if block["type"] == "text"]


# ---- tools ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def worked(machine: Machine, api: MessagesApi) -> Session:
    """A session in which the agent looks things up, writes one down, reads a file and sends out a helper."""
    file = machine.project("three") / "ideas.txt"
    file.write_text(FROM_A_FILE)
    script = [
        call(
            "ToolSearch",
            query="select:mcp__memoriter__memory_search,mcp__memoriter__memory_store",
            max_results=5,
        ),
        call("mcp__memoriter__memory_search", query="when does the backup run?"),
        call("mcp__memoriter__memory_store", text="The staging server is called kestrel."),
        call("Read", file_path=str(file)),
        call(
            "Agent", description="look", prompt=FROM_A_HELPER, subagent_type="claude", run_in_background=False
        ),
        text("It runs at 03:15."),
    ]

    def model(body: Body) -> list[Block]:
        if FROM_A_HELPER in _texts(body, "user"):
            return [text(FROM_A_HELPER)]
        return [script[sum(message["role"] == "assistant" for message in body["messages"])]]

    api.model = model
    allowed = ("mcp__memoriter", "Read", "Agent", "ToolSearch")
    session = machine.ask("When does the backup run?", "--allowedTools", *allowed, project="three")
    machine.hear(session.id)
    return session


def test_the_agent_finds_our_tools_and_they_answer(machine: Machine, worked: Session) -> None:
    main = [asked for asked in worked.asked if FROM_A_HELPER not in _texts(asked, "user")]
    offered = [{tool["name"] for tool in asked["tools"] if "memoriter" in tool["name"]} for asked in main]
    named = {"mcp__memoriter__memory_search", "mcp__memoriter__memory_store"}
    assert offered == [set(), *[named] * 5]  # they wait, until the agent asks for them
    _, found, stored, *_ = _results(main[-1])
    hit = json.loads(found)["results"][0]
    assert (hit["path"], NOTE in hit["snippet"], hit["trust"]) == ("memory/2026-02-08.md", True, "owner")
    assert json.loads(stored)["action"] == "added"
    entries = json.loads(machine.memoriter("list", "--json"))
    assert ("The staging server is called kestrel.", "agent") in {
        (one["text"], one["trust"]) for one in entries
    }


def _results(asked: Body) -> list[Any]:
    contents = [message["content"] for message in asked["messages"] if message["role"] == "user"]
    return [
        block["content"]
        for content in contents
        if isinstance(content, list)
        for block in content
        if block["type"] == "tool_result"
    ]


# ---- compaction -----------------------------------------------------------------------------------------------


def test_before_a_compaction_what_would_be_lost_is_written_down(machine: Machine, api: MessagesApi) -> None:
    decision = "We decided to use NATS for the queue, because Kafka was too heavy for us."
    log: list[str] = []

    def turns() -> Iterator[str]:
        yield decision
        # While the session goes on, nobody has told but the hook that Claude Code does not wait for.
        machine.hear(_newest(machine))
        assert decision in machine.memoriter("list", "--json")
        yield "/compact"
        machine.hear(_newest(machine))
        log.extend(file.read_text() for file in machine.notes.glob("memory/*-agent.md"))
        yield "Go on."

    api.model = lambda body: [text("<summary>They chose NATS.</summary>")]
    session = machine.talk(turns(), project="four")
    assert [one.count("<!-- memoriter: flush 1 of") for one in log] == [1]
    assert "NATS" in log[0]
    compaction, after = session.asked[-2:]
    wanted = _texts(compaction, "user")[-1]
    assert wanted.startswith("CRITICAL: Respond with TEXT ONLY")
    assert "Additional Instructions" not in wanted  # whatever our hook printed would stand there
    assert "SessionStart hook additional context: <memory-context>" in "".join(_texts(after, "system"))
    assert session.hooks["SessionStart:compact"] == "success"


def _newest(machine: Machine) -> str:
    return max(machine.transcripts(), key=lambda file: file.stat().st_mtime).stem


# ---- what it leaves behind ------------------------------------------------------------------------------------


def test_its_transcripts_are_read_as_what_was_said(machine: Machine, worked: Session) -> None:
    (original,) = (file for file in machine.transcripts() if file.stem == worked.id)
    written = original.read_text()
    assert FROM_A_FILE in written  # it is all there, and more
    assert "<memory-context>" in written
    told = json.loads(machine.memoriter("import", "claude-code", "--json"))
    copies = machine.home / ".memoriter" / "agents" / "main" / "sessions" / "claude-code"
    assert (copies / original.parent.name / original.name).read_text() == written
    taken = {step["source"]: (step["kind"], step["action"]) for step in told["files"]}
    assert taken == {str(file): ("session", "new") for file in machine.transcripts()}
    for place in (copies, original.parents[1]):  # as they are imported, or where they lie
        source = Transcripts([place])
        turns = {found: list(source.turns(found)) for found in source.scan().files}
        of_session = [turn for found in turns if source.session(found) == worked.id for turn in turns[found]]
        assert [(turn.role, turn.text, turn.trust) for turn in of_session] == [
            ("user", "When does the backup run?", "owner"),
            ("assistant", "It runs at 03:15.", "agent"),
        ]
    assert FROM_A_FILE.partition(".")[0] not in machine.memoriter("list", "--json")


def test_nobody_is_asked_but_the_model(api: MessagesApi, day_one: Session, worked: Session) -> None:
    assert api.elsewhere == []


# ---- setting up -----------------------------------------------------------------------------------------------


def test_what_is_installed_is_accepted_and_goes_without_a_trace(api: MessagesApi, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "machine", api)
    before = json.dumps({"cleanupPeriodDays": 20, "hooks": {"Stop": []}}, indent=4)
    machine.settings.write_text(before)
    assert machine.claude("mcp", "list").startswith("No MCP servers configured")
    machine.memoriter("--workspace", str(machine.notes), "install", "claude-code")
    assert machine.claude("mcp", "get", "memoriter").splitlines()[:3] == [
        "memoriter:",
        "  Scope: User config (available in all your projects)",
        "  Status: ✔ Connected",
    ]
    machine.memoriter("uninstall", "claude-code")
    assert machine.settings.read_text() == before
    assert machine.claude("mcp", "list").startswith("No MCP servers configured")
    assert "memoriter" not in machine.servers.read_text()
    assert "WARNING" not in (machine.home / ".memoriter" / "hooks.log").read_text()
