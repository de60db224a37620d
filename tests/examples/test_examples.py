"""The examples run and print what the docs promise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=folder,
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
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
