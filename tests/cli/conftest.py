"""The command line in a process of its own, with a workspace, a home and no model."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from command_line import Run, RunForked
from person import Person


@pytest.fixture
def memoriter(workspace: Path, tmp_path: Path, run_forked: RunForked) -> Run:
    """Return a function that runs a command line. ``stdin`` is its input, other keywords are variables."""

    def run(
        *arguments: str, stdin: bytes = b"", cwd: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        variables = {
            **os.environ,
            "MEMORITER_WORKSPACE": str(workspace),
            "MEMORITER_HOME": str(tmp_path / "state"),
            "MEMORITER_EMBEDDING__PROVIDER": "none",
            "NO_COLOR": "1",
            "COLUMNS": "120",
            **environment,
        }
        variables = {name: value for name, value in variables.items() if value}
        done = run_forked(list(arguments), variables, stdin, cwd)
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return run


@pytest.fixture
def person(tmp_path: Path, run_forked: RunForked) -> Person:
    """A person without notes."""
    return Person(tmp_path, run_forked)
