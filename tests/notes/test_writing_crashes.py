"""Acknowledged saves survive kill -9 of four processes (P1), and I/O errors leave no damage (P3)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.posix("writers are forked and killed")

HERE = Path(__file__).parent
KILLS = 2000 if os.environ.get("MEMORITER_SOAK") else 200


def crash(root: Path, kind: str, kills: int = KILLS) -> list[int]:
    command = [sys.executable, str(HERE / "crashing.py"), str(root), kind, str(kills), "7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def damage(root: Path, acked: list[int]) -> list[str]:
    """Return what is wrong with the notes, given the acknowledged saves."""
    lines = [
        line
        for file in root.rglob("*.md")
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines()
    ]
    whole = Counter(
        int(found[1]) for line in lines if (found := re.fullmatch(r"fact (\d+): .* end \1", line))
    )
    torn = [line for line in lines if "fact" in line and not re.fullmatch(r"fact (\d+): .* end \1", line)]
    lost = set(acked) - whole.keys()
    twice = [number for number, count in whole.items() if count > 1]
    return [*(["torn"] if torn else []), *(["lost"] if lost else []), *(["twice"] if twice else [])]


def test_every_acknowledged_save_survives_a_killed_writer(tmp_path: Path) -> None:
    acked = crash(tmp_path, "durable")
    assert len(acked) > KILLS / 4, "the writers were killed before they could save anything"
    assert damage(tmp_path, acked) == []


def test_temporary_files_of_killed_writers_are_hidden_and_removed(tmp_path: Path) -> None:
    from memoriter.notes.notebook import Notebook

    crash(tmp_path, "durable", kills=24)
    for number in range(7):
        Notebook(tmp_path).save(f"one more {number}", f"item {number}")
    left = [file.name for file in (tmp_path / "memory").iterdir() if file.is_file() and file.suffix != ".md"]
    assert all(name.startswith(".") for name in left)
    assert not [name for name in left if re.match(r"\.\d{4}-\d\d-\d\d\.md\.", name)], "those of the day's log"


def test_control_a_plain_write_is_damaged_by_the_same_kills(tmp_path: Path) -> None:
    assert damage(tmp_path, crash(tmp_path, "naive", kills=40)) != []


# ---- system errors --------------------------------------------------------------------------------------------

SAVE = """
import sys
from pathlib import Path
from memoriter.errors import WriteError
from memoriter.files import edits
path = Path(sys.argv[1])
try:
    edits.update(path, lambda old: (old or "") + "the new line\\n" * 500)
except WriteError as error:
    print("reported", error)
else:
    print("saved")
"""


@pytest.mark.integration
@pytest.mark.skipif(not shutil.which("strace"), reason="strace injects the faults")
@pytest.mark.parametrize(
    "fault",
    [
        f"{call}:error={error}:when={when}"
        for call, error, when in [
            ("write", "EIO", 1),
            ("write", "ENOSPC", 1),
            ("fsync", "EIO", 1),
            ("fsync", "EIO", 2),
            # A pattern of strace: on ARM, renaming is `renameat`.
            ("/^rename", "EIO", 1),
            ("/^rename", "ENOSPC", 1),
        ]
    ],
)
def test_an_io_error_is_reported_and_the_old_note_is_unchanged(tmp_path: Path, fault: str) -> None:
    note = tmp_path / "note.md"
    note.write_text("# What was there\n", encoding="utf-8")
    # The interpreter does not write, sync or rename at its start, so the first call of each kind is from the package.
    command = ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"inject={fault}"]
    done = subprocess.run(
        [*command, sys.executable, "-c", SAVE, str(note)], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("reported"), done
    assert note.read_text(encoding="utf-8") == "# What was there\n"
    assert [file.name for file in tmp_path.iterdir()] == ["note.md"]
