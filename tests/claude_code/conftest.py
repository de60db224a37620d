"""Hooks as a host calls them, with a home, a project and transcripts of its own.

A process costs half a second of imports, so most tests run in forks of one that has them behind it; those about the
process itself take ``real_claude``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_claude_code import ClaudeCode, Ran, Run


@pytest.fixture(scope="session")
def forked() -> Iterator[Run]:
    """Runs the command line in a fork."""
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("fork_server.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        asked, answered = server.stdin, server.stdout
        assert asked is not None
        assert answered is not None

        def run(arguments: list[str], data: bytes, environment: dict[str, str], cwd: Path) -> Ran:
            call = {"arguments": arguments, "data": data.hex(), "environment": environment, "cwd": str(cwd)}
            asked.write(json.dumps(call).encode() + b"\n")
            asked.flush()
            told = json.loads(answered.readline())
            return Ran(told["code"], bytes.fromhex(told["output"]), bytes.fromhex(told["error"]))

        yield run
        asked.close()


@pytest.fixture
def claude(tmp_path: Path, forked: Run) -> ClaudeCode:
    return ClaudeCode(tmp_path, forked)


@pytest.fixture
def real_claude(tmp_path: Path) -> ClaudeCode:
    return ClaudeCode(tmp_path)
