"""Sessions that qmd searches."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from standin import StandIn

from memoriter.extensions.qmd.engine import QmdEngine, QmdSettings
from memoriter.extensions.qmd.sessions import Exports
from memoriter.extensions.qmd.updater import UpdateSchedule
from memoriter.notes.workspace import Workspace
from memoriter.records import Query
from memoriter.sessions.transcripts import Transcripts

# ---- sessions -----------------------------------------------------------------------------------------------------


def test_sessions_are_found_at_the_line_numbers_of_the_transcript(note, workspace, standin, tmp_path) -> None:
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    turns = [
        {"role": "user", "content": "I watch herons.\nI want to know where they nest."},
        {"role": "tool", "content": "noise"},
        {"role": "assistant", "content": "In the marsh."},
    ]
    (sessions / "one.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    note("MEMORY.md", "nothing\n")
    exports = Exports(Transcripts([sessions]), tmp_path / "qmd" / "sessions")
    settings = QmdSettings(
        tmp_path / "qmd",
        workspace,
        command=str(standin.command),
        timeout_s=20,
        schedule=UpdateSchedule(debounce_s=0, wait_s=10),
    )
    engine = QmdEngine(settings, Workspace(workspace), exports=exports)
    hit = engine.search(Query("marsh")).hits[0]
    assert (hit.path, hit.source, hit.trust) == ("sessions/one.jsonl", "sessions", "untrusted")
    assert (hit.start_line, hit.end_line) == (2, 3)
    assert hit.snippet == "Assistant, after text from outside: In the marsh."
    first = engine.search(Query("herons nest")).hits[0]
    assert "User: I watch herons. I want to know where they nest." in first.snippet
    assert engine.search(Query("marsh", source="memory")).hits == ()
    assert "marsh" in engine.read_file("sessions/one.jsonl").text
    (sessions / "one.jsonl").unlink()
    assert engine.search(Query("marsh")).hits == ()
    assert list(exports.folder.glob("*.md")) == []
    engine.close()


def test_the_version_is_read_once_for_each_program(open_qmd, standin: StandIn) -> None:
    open_qmd()
    open_qmd()
    assert len(standin.calls("--version")) == 1
    os.utime(standin.command, ns=(0, 0))
    open_qmd()
    assert len(standin.calls("--version")) == 2


def test_each_agent_has_its_own_folder(open_qmd, standin: StandIn, tmp_path: Path) -> None:
    open_qmd(folder=tmp_path / "agents" / "a" / "qmd")
    open_qmd(folder=tmp_path / "agents" / "b" / "qmd")
    caches = {environment["XDG_CACHE_HOME"] for environment in standin.environments()}
    assert caches == {str(tmp_path / f"agents/{agent}/qmd/cache") for agent in "ab"}


@pytest.mark.parametrize(
    "query", ["x" * 1_000_000, "word " * 10_000, "\ud800", "a\0b", "heron " + "🪶" * 9000]
)
def test_any_query_is_answered(note, open_qmd, query: str) -> None:
    note("memory/a.md", "heron\n")
    assert open_qmd().search(Query(query)).provider == "qmd"
