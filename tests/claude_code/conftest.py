"""Hooks as Claude Code calls them, with their own home, project and transcripts.

Starting a process takes half a second of imports. Most tests therefore run in forks of one process that has loaded
everything. Tests about the process itself use ``real_claude``.
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
    """Run the command line in a fork."""
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("fork_server.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        calls, results = server.stdin, server.stdout
        assert calls is not None
        assert results is not None

        def run(arguments: list[str], data: bytes, environment: dict[str, str], cwd: Path) -> Ran:
            call = {"arguments": arguments, "data": data.hex(), "environment": environment, "cwd": str(cwd)}
            calls.write(json.dumps(call).encode() + b"\n")
            calls.flush()
            result = json.loads(results.readline())
            return Ran(result["code"], bytes.fromhex(result["output"]), bytes.fromhex(result["error"]))

        yield run
        calls.close()


@pytest.fixture
def claude(tmp_path: Path, forked: Run) -> ClaudeCode:
    return ClaudeCode(tmp_path, forked)


@pytest.fixture
def real_claude(tmp_path: Path) -> ClaudeCode:
    return ClaudeCode(tmp_path)
