"""`hosts` shows the agents on this machine, and `install` without a name offers to connect them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Run

from memoriter.extensions.clients.host import VARIABLES

On = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home of a person who uses no agent."""
    (tmp_path / "person").mkdir()
    return tmp_path / "person"


@pytest.fixture
def variables(home: Path) -> dict[str, str]:
    """What makes this machine that of the person: no program on the search path, no other folder of settings."""
    nowhere = dict.fromkeys((*VARIABLES, "CLAUDE_CONFIG_DIR", "OPENCLAW_STATE_DIR"), "")
    return {"HOME": str(home), "USERPROFILE": str(home), "APPDATA": str(home), "PATH": str(home), **nowhere}


@pytest.fixture
def run(memoriter: Run, variables: dict[str, str], home: Path) -> On:
    return lambda *arguments, **more: memoriter(*arguments, cwd=home, **variables, **more)


def shown(run: On) -> dict[str, Any]:
    """Return the hosts by name."""
    listed: dict[str, Any] = json.loads(run("hosts", "--json").stdout)
    return {one["host"]: one for one in listed["hosts"]}


def test_a_machine_without_an_agent_says_how_to_connect_one(run: On) -> None:
    assert run("hosts").stdout == (
        "No agent was found on this machine. `memoriter install HOST` connects one.\n"
    )
    assert run("install").stdout == (
        "No agent was found that could be connected. `memoriter hosts` shows those on this machine.\n"
    )


def test_the_agents_of_a_machine_are_found_offered_and_shown(run: On, home: Path) -> None:
    for folder in (".codex", ".cursor"):
        (home / folder).mkdir()
    offered = run("install")
    assert offered.returncode == 2
    found = "Name one. Found on this machine: `memoriter install codex`, `memoriter install cursor`."
    assert found in " ".join(offered.stderr.split())
    assert run("install", "codex").returncode == 0
    states = {name: (one["state"], one["recalled"], one["captured"]) for name, one in shown(run).items()}
    assert states == {"codex": ("connected", None, None), "cursor": ("not connected", None, None)}

    event = {"session_id": "s", "cwd": str(home), "prompt": "Do I prefer tabs?"}
    hook = ("hook", "codex", "UserPromptSubmit", "--deadline", "120")
    assert run(*hook, stdin=json.dumps(event).encode()).returncode == 0
    codex = shown(run)["codex"]
    assert (codex["recalled"] is not None, codex["captured"]) == (True, None)
    rows = [line.split("  ") for line in run("hosts").stdout.splitlines()]
    assert [(row[0].strip(), row[-1].strip()) for row in rows[-2:]] == [("Codex", "-"), ("Cursor", "-")]


@pytest.mark.posix("a terminal that a test reads")
def test_on_a_terminal_each_agent_is_asked_about(
    home: Path, tmp_path: Path, variables: dict[str, str]
) -> None:
    import pty

    for folder in (".codex", ".cursor"):
        (home / folder).mkdir()
    ours, theirs = pty.openpty()
    environment = {**os.environ, **variables, "MEMORITER_HOME": str(tmp_path / "state")}
    command = [sys.executable, "-m", "memoriter", "--workspace", str(tmp_path), "install"]
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, env=environment, cwd=home
    ) as process:
        os.close(theirs)
        os.write(ours, b"n\ny\n")
        output = process.communicate(timeout=300)[0].decode()
    os.close(ours)
    assert process.returncode == 0
    assert [f"Connect {name} " in output for name in ("Codex", "Cursor")] == [True, True]
    assert (list((home / ".codex").iterdir()), (home / ".cursor" / "mcp.json").exists()) == ([], True)
