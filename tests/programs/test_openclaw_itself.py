"""The real OpenClaw: its memory is imported while it runs, and its agent uses memoriter through MCP.

`make openclaw` installs it under `.tools/openclaw`; `make integration` does not. The fast tests play back its database
from `tests/openclaw/openclaw_recorded.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from openai_api import Call, OpenAiApi, Say
from openclaw_itself import RECORDED, RECORDING, SCRIPT, RealOpenClaw, free_port, run_conversations

from memoriter import Memory
from memoriter.extensions.openclaw.importing import import_openclaw

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not SCRIPT.exists(), reason="no OpenClaw under .tools; run `make openclaw`"),
]

Running = tuple[RealOpenClaw, OpenAiApi]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home, notes = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("notes")
    (notes / "MEMORY.md").write_text("# Memory\n\n- The backup goes to the bucket heron.\n")
    with run_conversations(home, notes) as running:
        yield running


def test_its_agent_searches_the_memory_through_mcp(real: Running) -> None:
    _, api = real
    results = [
        str(message["content"])
        for body in api.requests
        for message in body["messages"]
        if message["role"] == "tool"
    ]
    assert any("memoriter__memory_search" in result and "bucket heron" in result for result in results)


def test_notes_and_sessions_are_imported_while_it_runs(real: Running, tmp_path: Path) -> None:
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
        assert report.remarks[0] == "Skipped 1 session that OpenClaw was told to forget."
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


def test_its_workspace_is_read_in_place(real: Running, tmp_path: Path) -> None:
    openclaw, _ = real
    with Memory.open(
        openclaw.workspace, home=tmp_path / "state", overrides={"embedding.provider": "none"}
    ) as memory:
        report = import_openclaw(memory, openclaw.state)
        assert {step.kind for step in report.steps} == {"session"}
        (tea,) = memory.search("who prefers tea", source="memory", max_results=1).hits
        assert (tea.path, tea.snippet.splitlines()[-1]) == ("MEMORY.md", "- Ada prefers tea.")
        assert memory.search("which queue for mail", source="sessions").hits != ()


def test_with_its_own_memory_off_the_agent_has_only_ours(real: Running) -> None:
    openclaw, api = real
    openclaw.run("config", "set", "plugins.slots.memory", "none")
    openclaw.run("mcp", "tools", "memoriter", "--include", "memory_search,memory_get,memory_save")
    before, script = len(api.requests), api.model
    api.model = lambda body: (
        [Say("Yes.")]
        if any(message["role"] == "tool" for message in body["messages"])
        else [Call("tool_search", {"query": "memory search get save", "limit": 20})]
    )
    try:
        openclaw.say("What do you remember?", "agent:main:slot")
    finally:
        api.model = script
    requests = api.requests[before:]
    found = json.dumps(requests[-1]["messages"])
    assert "mcp:memoriter:memoriter__memory_search" in found
    assert "memory-core" not in found
    assert "memory_search" not in json.dumps(requests[0]["messages"][0])  # the section of its memory plugin


def test_sessions_that_it_moves_into_its_database_are_not_duplicated(tmp_path: Path) -> None:
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

        def import_again() -> list[str]:
            report = import_openclaw(memory, openclaw.state)
            return [step.action for step in report.steps if step.kind == "session"]

        assert import_again() == ["new"]
        openclaw.run("doctor", "--session-sqlite", "import", "--session-sqlite-all-agents")
        assert (file.exists(), import_again(), import_again()) == (False, ["grown"], ["same"])
        (queue,) = memory.search("queue for mail", source="sessions").hits
        assert (queue.snippet, queue.trust) == ("User: Which queue do we use for mail?", "owner")


def test_the_recording_has_the_current_schema(real: Running) -> None:
    openclaw, _ = real
    tables = json.loads(RECORDING.read_text("utf-8"))["tables"]
    assert {name: tuple(held["columns"]) for name, held in tables.items()} == RECORDED
    for name, columns in RECORDED.items():
        columns_now = {column for (column,) in openclaw.rows(f"SELECT name FROM pragma_table_info('{name}')")}
        assert set(columns) <= columns_now
