"""Hooks as Claude Code calls them, with their own home, project and transcripts.

Most tests run in forks (`run_forked`). Tests about the process itself use ``real_claude``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from fake_claude_code import ClaudeCode, Ran, Run


@pytest.fixture(scope="session")
def forked(run_forked: Callable[..., CompletedProcess[bytes]]) -> Run:
    """Run the command line in a fork."""

    def run(arguments: list[str], data: bytes, environment: dict[str, str], cwd: Path) -> Ran:
        done = run_forked(arguments, environment, data, cwd)
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def claude(tmp_path: Path, forked: Run) -> ClaudeCode:
    return ClaudeCode(tmp_path, forked)


@pytest.fixture
def real_claude(tmp_path: Path) -> ClaudeCode:
    return ClaudeCode(tmp_path)
