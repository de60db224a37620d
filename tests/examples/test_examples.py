"""The examples run and print what the docs promise."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_quickstart_finds_the_backup_note_and_remembers(tmp_path: Path) -> None:
    out = run("quickstart.py", tmp_path)
    assert "memory/projects/backup.md#L" in out
    assert "Mira prefers tabs in Go files." in out


def test_the_tools_find_and_read_the_backup_note(tmp_path: Path) -> None:
    out = run("tools.py", tmp_path)
    assert "## Memory recall ['memory_search', 'memory_get']" in out
    assert "Source: memory/projects/backup.md#L" in out
    assert '"disabled": false' in out


def test_the_async_example_answers_every_question(tmp_path: Path) -> None:
    out = run("async_agent.py", tmp_path)
    for place in ("MEMORY.md#L", "memory/2026-02-14.md#L", "memory/projects/fern.md#L"):
        assert place in out


@pytest.fixture
def resident_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let commands use the resident process, as they do for a user, and stop it at the end."""
    monkeypatch.delenv("MEMORITER_RESIDENT__ENABLED")
    yield
    home = {"MEMORITER_HOME": str(tmp_path / "demo-workspace" / ".home")}
    stop = [sys.executable, "-m", "memoriter", "resident", "stop"]
    subprocess.run(stop, env={**os.environ, **home}, check=True, stdout=subprocess.DEVNULL)


@pytest.mark.usefixtures("resident_process")
def test_the_demo_shows_the_whole_flow(tmp_path: Path) -> None:
    out = run("demo.py", tmp_path)
    for place in (
        "MEMORY.md#L",
        "memory/projects/investing.md#L",
        "memory/2026-02-08.md#L",
        "memory/2026-02-03.md#L",
        "memory/projects/backup.md#L",
        "memory/2026-02-15.md#L",
    ):
        assert place in out
