"""OpenClaw's memory, read in place or imported repeatedly without overwriting anything."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memoriter import Memory
from memoriter.errors import NotFound
from memoriter.extensions.openclaw.importing import import_openclaw
from memoriter.text.blocks import without_annotations

DAY = "# 2026-02-08\n\n- The backup goes to the bucket heron. <!-- importance: 8 --> <!-- trigger: backup, s3 -->\n"


def transcript(*messages: str) -> str:
    lines = [{"type": "session", "version": 3, "id": "9f1c", "timestamp": "2026-02-08T01:58:00.000Z"}]
    for number, text in enumerate(messages):
        role = "assistant" if number % 2 else "user"
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        lines.append(
            {
                "type": "message",
                "id": f"a{number}",
                "timestamp": "2026-02-08T02:00:00.000Z",
                "message": message,
            }
        )  # type: ignore[dict-item]
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.fixture
def openclaw(tmp_path: Path) -> Path:
    """A complete home of OpenClaw."""
    home = tmp_path / "openclaw"
    files = {
        "workspace/MEMORY.md": "# Memory\n\n- Ada prefers tea. <!-- project: host/owner/repo -->\n",
        "workspace/USER.md": "# User\n\n- Call her Ada.\n",
        "workspace/AGENTS.md": "Instructions, not memories.\n",
        "workspace/memory/2026-02-08.md": DAY,
        "workspace/memory/people/priya.md": "# Priya\n\nRuns the mail servers.\n",
        "workspace/memory/.hidden.md": "nothing\n",
        "agents/main/sessions/9f1c.jsonl": transcript(
            "Which queue do we use for mail?", "NATS, since March."
        ),
        "agents/main/sessions/sessions.json": "{}",
        "agents/work/sessions/other.jsonl": transcript("Another agent's secret."),
        "memory/main.sqlite": "an index",
    }
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (home / "workspace" / "memory" / "link.md").symlink_to("/etc/hostname")
    return home


@pytest.fixture
def entries(openclaw: Path) -> None:
    """Entries of the plugin memory-lancedb."""
    lancedb = pytest.importorskip("lancedb", reason="the extra lancedb is not installed")
    common = {"vector": [0.1, 0.2], "importance": 0.7, "createdAt": 1_770_516_065_000}
    rows = [
        {"id": "__schema__", "text": "", "category": "other", "agentId": "", "scope": "", **common},
        {"id": "6f1c2d3e-0000-4000-8000-000000000001", "text": "I prefer oolong", "category": "preference"},
        {"id": "6f1c2d3e-0000-4000-8000-000000000002", "text": "We chose NATS", "category": "decision"},
        {"id": "6f1c2d3e-0000-4000-8000-000000000003", "text": "Another agent's", "category": "fact"},
        {"id": "6f1c2d3e-0000-4000-8000-000000000004", "text": "x " * 3000, "category": "fact"},
    ]
    agents = ["", "", "main", "work", "main"]
    scopes = ["", "", "mail", "", ""]
    table = [
        {**common, **row, "agentId": agent, "scope": scope}
        for row, agent, scope in zip(rows, agents, scopes, strict=True)
    ]
    lancedb.connect(str(openclaw / "memory" / "lancedb")).create_table("memories", table)


def actions(report: Any, kind: str) -> dict[str, str]:
    return {
        str(step.target).rpartition("imports/openclaw/")[2].rpartition("sessions/openclaw/")[2]: step.action
        for step in report.steps
        if step.kind == kind
    }


OpenMemory = Callable[..., Memory]


@pytest.mark.requirement("X9")
def test_its_workspace_and_sessions_are_read_in_place(openclaw: Path, tmp_path: Path) -> None:
    sessions = openclaw / "agents" / "main" / "sessions"
    before = {path: path.read_bytes() for path in openclaw.rglob("*") if path.is_file()}
    with Memory.open(
        openclaw / "workspace",
        home=tmp_path / "state",
        overrides={"embedding.provider": "none", "sessions.paths": [str(sessions)]},
    ) as memory:
        memory.sync()
        (backup,) = memory.search("bucket heron", max_results=1).hits
        assert (backup.citation, backup.snippet.splitlines()[-1]) == (
            "memory/2026-02-08.md#L1-L3",
            "- The backup goes to the bucket heron.",
        )
        (said,) = memory.search("queue for mail", source="sessions", max_results=1).hits
        assert said.citation == "sessions/9f1c.jsonl#L2-L3"
        assert memory.search("trigger importance", max_results=3).hits == ()
    assert {path: path.read_bytes() for path in openclaw.rglob("*") if path.is_file()} == before


def test_a_group_conversation_without_senders_is_skipped(openclaw: Path, open_memory: OpenMemory) -> None:
    sessions = openclaw / "agents" / "main" / "sessions"
    (sessions / "77ab.jsonl").write_text(transcript("I am the owner, and I prefer rum."))
    keys = {
        "agent:main:main": {"sessionId": "9f1c"},
        "agent:main:telegram:group:-42": {"sessionId": "77ab"},
        "agent:main:discord:channel:1": {"sessionId": 7},
        "agent:main:slack:channel:2": None,
    }
    (sessions / "sessions.json").write_text(json.dumps(keys))
    memory = open_memory()
    report = import_openclaw(memory, openclaw)
    assert actions(report, "session") == {"77ab.jsonl": "other", "9f1c.jsonl": "new"}
    assert [step.note for step in report.steps if step.action == "other"] == [
        "a group conversation that does not record who speaks"
    ]
    assert [path.name for path in memory.settings.agent_folder.rglob("*.jsonl")] == ["9f1c.jsonl"]


@pytest.mark.requirement("X12")
def test_everything_is_imported_once(openclaw: Path, entries: None, open_memory: OpenMemory) -> None:
    memory = open_memory()
    preview = import_openclaw(memory, openclaw, dry_run=True)
    assert list(memory.settings.workspace.rglob("*.md")) == []
    assert memory.entries.list() == []
    first = import_openclaw(memory, openclaw)
    assert (first.steps, first.entries) == (preview.steps, preview.entries)
    assert actions(first, "note") == dict.fromkeys(
        ["MEMORY.md", "USER.md", "2026-02-08.md", "people/priya.md"], "new"
    )
    assert actions(first, "session") == {"9f1c.jsonl": "new"}
    assert (first.entries.added, first.entries.already) == (2, 0)
    copied = memory.settings.workspace / "memory" / "imports" / "openclaw" / "2026-02-08.md"
    original = openclaw / "workspace" / "memory" / "2026-02-08.md"
    assert (copied.read_text(), copied.stat().st_mtime_ns) == (DAY, original.stat().st_mtime_ns)
    again = import_openclaw(memory, openclaw)
    assert {step.action for step in again.steps} == {"same"}
    assert (again.entries.added, again.entries.already) == (0, 2)


def test_imported_entries_keep_their_source_and_have_the_trust_of_an_agent(
    openclaw: Path, entries: None, open_memory: OpenMemory
) -> None:
    memory = open_memory()
    report = import_openclaw(memory, openclaw)
    kept = {
        entry.text: (entry.type, entry.trust, entry.source, entry.tags, round(entry.created_at))
        for entry in memory.entries.list()
    }
    assert kept == {
        "I prefer oolong": ("user_preference", "agent", "import:openclaw", (), 1_770_516_065),
        "We chose NATS": ("technical_decision", "agent", "import:openclaw", ("scope:mail",), 1_770_516_065),
    }
    assert [remark.partition(":")[0] for remark in report.remarks] == [
        "Other agents are not imported",
        f"{openclaw / 'memory' / 'main.sqlite'} is an index of the notes and is not needed.",
        "Skipped the entry 6f1c2d3e-0000-4000-8000-000000000004",
    ]
    assert "imported" not in report.remarks[-1]


def test_a_different_file_at_the_target_is_kept_and_reported(openclaw: Path, open_memory: OpenMemory) -> None:
    memory = open_memory()
    import_openclaw(memory, openclaw)
    mine = memory.settings.workspace / "memory" / "imports" / "openclaw" / "USER.md"
    mine.write_text("# I have edited this\n")
    grown = openclaw / "agents" / "main" / "sessions" / "9f1c.jsonl"
    grown.write_text(grown.read_text() + "\n")
    report = import_openclaw(memory, openclaw)
    assert actions(report, "note")["USER.md"] == "other"
    assert mine.read_text() == "# I have edited this\n"
    assert actions(report, "session") == {"9f1c.jsonl": "grown"}
    assert (
        memory.settings.agent_folder / "sessions" / "openclaw" / "9f1c.jsonl"
    ).read_bytes() == grown.read_bytes()


def test_links_in_the_target_are_not_followed(
    openclaw: Path, open_memory: OpenMemory, tmp_path: Path
) -> None:
    memory, outside = open_memory(), tmp_path / "outside"
    outside.mkdir()
    for link in (
        memory.settings.workspace / "memory" / "imports",
        memory.settings.agent_folder / "sessions" / "openclaw",
    ):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(outside)
    preview = import_openclaw(memory, openclaw, dry_run=True)
    report = import_openclaw(memory, openclaw)
    refused = "is not a folder, or it is a symbolic link. Links are not followed."
    assert {(step.kind, step.action, step.note) for step in report.steps} == {
        ("note", "other", f"'imports' {refused}"),
        ("session", "other", f"'openclaw' {refused}"),
    }
    assert (preview.steps, list(outside.iterdir())) == (report.steps, [])


def test_notes_in_a_linked_folder_are_not_imported(
    openclaw: Path, open_memory: OpenMemory, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("# Another user's note\n")
    (openclaw / "workspace" / "memory" / "linked").symlink_to(outside)
    assert "linked/secret.md" not in actions(import_openclaw(open_memory(), openclaw), "note")


def test_imported_notes_and_sessions_are_found(openclaw: Path, open_memory: OpenMemory) -> None:
    memory = open_memory()
    import_openclaw(memory, openclaw)
    (hit,) = memory.search("bucket heron", max_results=1).hits
    assert hit.citation == "memory/imports/openclaw/2026-02-08.md#L1-L3"
    (said,) = memory.search("queue for mail", source="sessions", max_results=1).hits
    assert said.path == "sessions/openclaw/9f1c.jsonl"


def test_openclaws_own_workspace_is_not_copied_into_itself(openclaw: Path, tmp_path: Path) -> None:
    with Memory.open(
        openclaw / "workspace", home=tmp_path / "state", overrides={"embedding.provider": "none"}
    ) as memory:
        report = import_openclaw(memory, openclaw)
    assert actions(report, "note") == {}
    assert "The notes are used in place: this is OpenClaw's own workspace." in report.remarks
    assert not (openclaw / "workspace" / "memory" / "imports").exists()


def test_a_missing_folder_is_reported(tmp_path: Path, open_memory: OpenMemory) -> None:
    with pytest.raises(NotFound, match="is not a folder"):
        import_openclaw(open_memory(), tmp_path / "missing")


def test_the_command_reports_what_it_imported(
    openclaw: Path,
    workspace: Path,
    tmp_path: Path,
    run_forked: Callable[..., subprocess.CompletedProcess[bytes]],
) -> None:
    (tmp_path / "state").mkdir()
    places = ["--workspace", str(workspace), "--home", str(tmp_path / "state")]
    environment = {**os.environ, "MEMORITER_EMBEDDING__PROVIDER": "none"}

    def run(*arguments: str) -> str:
        result = run_forked([*places, "import", "openclaw", str(openclaw), *arguments], environment)
        assert (result.returncode, result.stderr) == (0, b"")
        return result.stdout.decode()

    preview = run("--dry-run").splitlines()
    assert preview[:4] == [
        f"OpenClaw in {openclaw}, agent main (dry run: nothing is changed)",
        "notes: 4 new",
        "sessions: 1 new",
        "entries: 0 new, 0 unchanged",
    ]
    assert run().splitlines()[1:4] == ["notes: 4 new", "sessions: 1 new", "entries: 0 new, 0 unchanged"]
    assert {file["action"] for file in json.loads(run("--json"))["files"]} == {"same"}


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("- tea <!-- trigger: a, b -->\n", "- tea\n"),
        ("- tea <!-- importance: 8 --> <!--project: x/y-->  \r\n", "- tea\r\n"),
        ("<!-- trigger: a -->", ""),
        ("- tea <!-- a comment -->\n", "- tea <!-- a comment -->\n"),
        ("- <!-- trigger: a --> tea\n", "- <!-- trigger: a --> tea\n"),
        ("no annotation  \n", "no annotation  \n"),
    ],
)
def test_annotations_at_the_end_of_a_line_are_removed(line: str, plain: str) -> None:
    assert without_annotations(f"before\n{line}") == f"before\n{plain}"


def test_removing_annotations_takes_linear_time() -> None:
    for text in (" " * 1_000_000 + "-->", "<!-- trigger: x --> " * 50_000, "<!--" * 250_000 + " -->"):
        start = time.process_time()
        without_annotations(text)
        assert time.process_time() - start < 10
