"""The short form of each part of the soak: one small round without a failure, and a control that fails."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab.soak import faults
from lab.soak.__main__ import PARTS, load
from lab.soak.kills import WRITERS
from lab.soak.writers import INTERFACES, Home
from memoriter import Memory
from memoriter.testing import HashEmbedder

ROOT = Path(__file__).parents[3]


@pytest.mark.integration
@pytest.mark.parametrize("name", PARTS)
def test_a_short_round_finds_nothing_and_its_control_fails(name: str, tmp_path: Path) -> None:
    if reason := load(name).unavailable():
        pytest.skip(reason)
    command = [sys.executable, "-m", "lab.soak", name, "--short", "--state", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    if name == "kills":
        (counts,) = re.findall(r"^kills: round 7: (\{.*\}), ", ended.stderr, re.MULTILINE)
        kills = {key: count for key, count in ast.literal_eval(counts).items() if key.startswith("kills ")}
        assert kills == {f"kills {interface}": WRITERS for interface in INTERFACES}


@pytest.mark.parametrize("write", ["save to the log", "flush before compaction", "summarise a session"])
def test_a_fault_run_compares_notes_without_their_time(write: str, tmp_path: Path) -> None:
    """A write path runs many times. The minute or the day may change between two of them."""
    snapshots = []
    for zone in ("Asia/Tokyo", "America/Lima"):  # another hour and, for half of the day, another date
        home = Home(tmp_path / zone).create()
        with Memory.open(
            home.workspace, home=home.home, embedder=HashEmbedder(), overrides={"writing.timezone": zone}
        ) as memory:
            faults.PATHS[write](memory)
        snapshots.append(faults.snapshot(home)["notes"])
    assert len(snapshots[0]) == 1
    assert snapshots[0] == snapshots[1]


@pytest.mark.integration
def test_killed_writers_of_the_python_api_lose_nothing(tmp_path: Path) -> None:
    """The part that needs no program and little time runs with every test run."""
    script = (
        "import random, sys; from pathlib import Path; from lab.soak import kills, writers;"
        "from lab.soak.part import Round, Task; task = Task(Path(sys.argv[1]), random.Random(7)); done = Round();"
        "home = writers.Home(task.folder / 'home').create();"
        "kills.kill(done, task, home, writers.python, 'python', 30);"
        "assert not done.failures, done.failures; assert done.counts['acknowledged'] >= 60, done.counts;"
        "assert kills.control(task).failures"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
