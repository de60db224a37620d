from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recollect.doors.cli.app import app
from recollect.errors import RecollectError

Run = Callable[..., str]


@pytest.fixture
def run(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command line in a home of its own, with keywords only; gives what it printed."""
    monkeypatch.setenv("RECOLLECT_EMBEDDING__PROVIDER", "none")

    def run_(*words: str, fails: bool = False) -> str:
        line = ["--workspace", str(workspace), "--home", str(tmp_path / "home"), *words]
        done = CliRunner().invoke(app, line, catch_exceptions=True)
        if fails:
            assert isinstance(done.exception, RecollectError | SystemExit), done.output
            return str(done.exception)
        assert done.exit_code == 0, (done.output, done.exception)
        return done.stdout

    return run_


def test_entries_are_added_listed_changed_back_and_carried(run: Run, tmp_path: Path) -> None:
    added = json.loads(
        run(
            "add",
            "我偏好用 TypeScript",
            "--type",
            "user_preference",
            "--importance",
            "5",
            "--tags",
            "前端,ts",
            "--json",
        )
    )
    assert uuid.UUID(added["id"])
    assert (added["action"], added["tags"], added["expires_at"]) == ("added", ["前端", "ts"], None)
    run("add", "Standup is at nine", "--type", "workflow")
    assert "★★★★★" in run("list", "--type", "user_preference")
    assert [e["text"] for e in json.loads(run("list", "--json"))] == [
        "Standup is at nine",
        "我偏好用 TypeScript",
    ]
    assert [e["kind"] for e in json.loads(run("history", added["id"][:8], "--json"))] == ["add"]
    run("undo")
    assert [e["id"] for e in json.loads(run("list", "--json"))] == [added["id"]]

    file = tmp_path / "entries.jsonl"
    assert json.loads(run("export", "--output", str(file), "--json"))["exported"] == 1
    assert file.stat().st_mode & 0o777 == 0o600
    run("undo", added["id"])
    assert json.loads(run("list", "--json")) == []
    assert json.loads(run("import", str(file), "--json")) == {"added": 1, "already": 0}
    assert json.loads(run("import", str(file), "--json")) == {"added": 0, "already": 1}
    assert [e["id"] for e in json.loads(run("list", "--json"))] == [added["id"]]


def test_what_cannot_be_is_said_in_a_sentence(run: Run, tmp_path: Path) -> None:
    assert "no type 'mood'" in run("add", "I am well", "--type", "mood", fails=True)
    assert "no entry" in run("history", "ffffffff", fails=True)
    (tmp_path / "bad.jsonl").write_text("nonsense")
    assert "line 1: is not JSON" in run("import", str(tmp_path / "bad.jsonl"), fails=True)
