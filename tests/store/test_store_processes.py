"""Several real processes at the same time, and processes that are killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import memoriter
from memoriter.store import open_index

WORKER = Path(__file__).with_name("store_worker.py")
SOURCE = Path(memoriter.__file__).parents[1]


def start(command: str, folder: Path, number: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{WORKER.parent}"}
    return subprocess.Popen(
        [sys.executable, str(WORKER), command, str(folder), str(number)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )


def said(*processes: subprocess.Popen[str]) -> list[list[str]]:
    """Return the output of each process after all have succeeded."""
    output = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), output
    return [text.splitlines() for text in output]


def test_readers_see_complete_rounds_while_another_process_writes(tmp_path: Path) -> None:
    rounds = 60
    readers = [start("read", tmp_path, rounds) for _ in range(2)]
    written, *read = said(start("write", tmp_path, rounds), *readers)
    assert written == [str(number) for number in range(rounds)]
    assert [line for lines in read for line in lines if not line.startswith("looks:")] == []


def test_four_processes_create_one_index(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there" / "yet"
    assert said(*(start("add", folder, number) for number in range(4))) == [["done"]] * 4
    with open_index(folder) as index:
        assert (index.healed, len(index.files()), index.check(deep=True)) == (None, 80, [])
        assert index.terms([f"process{number}" for number in range(4)]) == {
            f"process{n}": 20 for n in range(4)
        }
    # Only Windows deletes a lock file that is released.
    assert {place.name for place in folder.iterdir()} - {"index.db.lock"} == {"index.db"}


def test_processes_that_create_indexes_at_the_same_moment_see_no_damage(tmp_path: Path) -> None:
    assert said(*(start("create", tmp_path, number) for number in range(3))) == [[]] * 3


@pytest.mark.posix("writers are forked and killed")
def test_a_writer_killed_at_any_moment_leaves_a_complete_round(tmp_path: Path) -> None:
    [lines] = said(start("kill", tmp_path, 24))
    assert [line for line in lines if not line.startswith("acknowledged:")] == []
    assert int(lines[-1].split()[1]) >= 24


@pytest.mark.posix("writers are forked and killed")
def test_kills_damage_a_writer_without_a_transaction(tmp_path: Path) -> None:
    """The control: it shows that the test above can fail."""
    [lines] = said(start("kill-torn", tmp_path, 24))
    assert any(line.startswith("wrong: round") for line in lines)
