"""The real OpenClaw: what it writes is taken in while it runs, and its agent uses the memory through MCP.

`make openclaw` installs it under `.tools/openclaw`, which `make integration` does not. What is asserted here of its
database is what `tests/openclaw/openclaw_recorded.json` plays back in the fast tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from openai_api import Call, OpenAiApi, Say
from openclaw_itself import RECORDED, RECORDING, SCRIPT, RealOpenClaw, free_port, lived

from memoriter import Memory
from memoriter.integrations.openclaw import import_openclaw

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not SCRIPT.exists(), reason="no OpenClaw under .tools; run `make openclaw`"),
]

Lived = tuple[RealOpenClaw, OpenAiApi]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lived]:
    home, notes = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("notes")
    (notes / "MEMORY.md").write_text("# Memory\n\n- The backup goes to the bucket heron.\n")
    with lived(home, notes) as found:
        yield found


def test_its_agent_searches_the_memory_through_mcp(real: Lived) -> None:
    _, api = real
    results = [
        str(message["content"])
        for body in api.asked
        for message in body["messages"]
        if message["role"] == "tool"
    ]
    assert any("memoriter__memory_search" in one and "bucket heron" in one for one in results)


def test_notes_and_sessions_are_taken_in_while_it_runs(real: Lived, tmp_path: Path) -> None:
    openclaw, _ = real
    workspace = tmp_path / "workspace"
    with Memory.open(workspace, home=tmp_path / "state", overrides={"embedding.provider": "none"}) as memory:
        report = import_openclaw(memory, openclaw.state)
        assert sorted(step.target.name for step in report.steps if step.kind == "note") == [
            "2026-02-08.md",
            "MEMORY.md",
            "USER.md",
        ]
        assert [step.action for step in report.steps if step.kind == "session"] == ["new"] * 4
        assert report.remarks == ("Sessions that OpenClaw was told to forget are left out: 1.",)
        (queue,) = memory.search("which queue for mail", source="sessions", max_results=1).hits
        assert queue.snippet == "User: Which queue do we use for mail?\n\nAssistant: NATS, since March."
        pond = memory.search("crane 273", source="sessions", max_results=1).hits  # a compressed message
        assert "crane number 273 stood" in pond[0].snippet
        said = {hit.snippet: hit.trust for hit in memory.search("moon stork page", source="sessions").hits}
        assert said["Assistant: The page says that the moon is a stork."] == "untrusted"
        assert memory.search("secret", source="sessions").hits == ()
        assert memory.search("birds of the pond", source="sessions", min_score=0.9).hits == ()
        again = import_openclaw(memory, openclaw.state)
        assert {step.action for step in again.steps} == {"same"}

        openclaw.say("And for pictures of herons?", "agent:main:main")
        grown = import_openclaw(memory, openclaw.state)
        assert (
            sorted(step.action for step in grown.steps if step.kind == "session") == ["grown"] + ["same"] * 3
        )


def test_its_workspace_is_read_in_place(real: Lived, tmp_path: Path) -> None:
    openclaw, _ = real
    with Memory.open(
        openclaw.workspace, home=tmp_path / "state", overrides={"embedding.provider": "none"}
    ) as memory:
        report = import_openclaw(memory, openclaw.state)
        assert {step.kind for step in report.steps} == {"session"}
        (tea,) = memory.search("who prefers tea", source="memory", max_results=1).hits
        assert (tea.path, tea.snippet.splitlines()[-1]) == ("MEMORY.md", "- Ada prefers tea.")
        assert memory.search("which queue for mail", source="sessions").hits != ()


def test_without_its_own_memory_the_agent_has_ours_alone(real: Lived) -> None:
    openclaw, api = real
    openclaw.run("config", "set", "plugins.slots.memory", "none")
    openclaw.run("mcp", "tools", "memoriter", "--include", "memory_search,memory_get,memory_save")
    before, script = len(api.asked), api.model
    api.model = lambda body: (
        [Say("Yes.")]
        if any(message["role"] == "tool" for message in body["messages"])
        else [Call("tool_search", {"query": "memory search get save", "limit": 20})]
    )
    try:
        openclaw.say("What do you remember?", "agent:main:slot")
    finally:
        api.model = script
    asked = api.asked[before:]
    found = json.dumps(asked[-1]["messages"])
    assert "mcp:memoriter:memoriter__memory_search" in found
    assert "memory-core" not in found
    assert "memory_search" not in json.dumps(asked[0]["messages"][0])  # its own section of the prompt


def test_sessions_that_it_moves_into_its_database_stay_one(tmp_path: Path) -> None:
    openclaw = RealOpenClaw(tmp_path, free_port())
    openclaw.run("setup", "--baseline")
    name = "9f1c2d3e-0000-4000-8000-000000000001"
    file = openclaw.state / "agents" / "main" / "sessions" / f"{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    message = {"role": "user", "content": [{"type": "text", "text": "Which queue do we use for mail?"}]}
    lines = [
        {"type": "session", "version": 3, "id": name, "timestamp": "2026-02-08T01:58:00.000Z", "cwd": "/"},
        {
            "type": "message",
            "id": "a1",
            "parentId": None,
            "timestamp": "2026-02-08T02:00:00.000Z",
            "message": message,
        },
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    listed = {
        "agent:main:main": {"sessionId": name, "updatedAt": 1_770_516_000_000, "sessionFile": str(file)}
    }
    file.with_name("sessions.json").write_text(json.dumps(listed))
    with Memory.open(
        tmp_path / "notes", home=tmp_path / "state", overrides={"embedding.provider": "none"}
    ) as memory:

        def taken_in() -> list[str]:
            report = import_openclaw(memory, openclaw.state)
            return [step.action for step in report.steps if step.kind == "session"]

        assert taken_in() == ["new"]
        openclaw.run("doctor", "--session-sqlite", "import", "--session-sqlite-all-agents")
        assert (file.exists(), taken_in(), taken_in()) == (False, ["grown"], ["same"])
        (queue,) = memory.search("queue for mail", source="sessions").hits
        assert (queue.snippet, queue.trust) == ("User: Which queue do we use for mail?", "owner")


def test_the_recording_is_of_this_form(real: Lived) -> None:
    openclaw, _ = real
    tables = json.loads(RECORDING.read_text("utf-8"))["tables"]
    assert {name: tuple(held["columns"]) for name, held in tables.items()} == RECORDED
    for name, columns in RECORDED.items():
        there = {column for (column,) in openclaw.rows(f"SELECT name FROM pragma_table_info('{name}')")}
        assert set(columns) <= there
