"""`kill -9` at any moment of `memoriter index` damages nothing, and the next sync completes."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest

from memoriter.store.checksums import page_vfs

KILLS = 400 if os.environ.get("MEMORITER_SOAK") else 15

INDEX = """
import sys
from memoriter import Memory
from memoriter.testing import HashEmbedder
with Memory.open(sys.argv[1], home=sys.argv[2], embedder=HashEmbedder()) as memory:
    print("open", flush=True)
    memory.sync(force=sys.argv[3] == "force", progress=lambda p: print(p.done, flush=True))
print("done", flush=True)
"""

NAIVE = """
import sys
for n in range(2000):
    text = "".join(f"row {i} of round {n}\\n" for i in range(200))
    open(sys.argv[1], "w").write(text)
    print(n, flush=True)
"""


def write_notes(root: Path, count: int, seed: int) -> None:
    chooser = random.Random(seed)
    (root / "memory").mkdir(parents=True, exist_ok=True)
    for number in range(count):
        words = " ".join(chooser.choice(["heron", "stork", "备份", "marsh"]) for _ in range(60))
        (root / f"memory/{number}.md").write_text(f"# Note {number} of {seed}\n\n{words}\n")


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def kill_after_lines(process: subprocess.Popen[str], lines: int, extra_s: float) -> None:
    """Kill the program a moment after it has printed this many lines, inside its next step."""
    assert process.stdout is not None
    for _ in range(lines):
        if not process.stdout.readline():
            break
    end = time.perf_counter() + extra_s
    while time.perf_counter() < end:
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.communicate()


@pytest.mark.integration
@pytest.mark.timeout(1800)
def test_a_killed_indexer_damages_nothing_and_the_next_sync_completes(tmp_path: Path) -> None:
    from memoriter import Memory
    from memoriter.testing import HashEmbedder

    workspace, home = tmp_path / "workspace", tmp_path / "home"
    chooser = random.Random(7)
    kills = 0
    for round_ in itertools.count():  # an indexer that ends before its kill proves nothing
        write_notes(workspace, 40, seed=round_)
        process = start(INDEX, str(workspace), str(home), chooser.choice(["force", "plain"]))
        kill_after_lines(process, chooser.randrange(1, 45), chooser.random() * 0.01)
        kills += process.returncode == -signal.SIGKILL
        for database in home.glob("agents/main/workspaces/*/index.db"):
            check = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE, vfs=page_vfs())
            assert check.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            check.close()
        if kills == KILLS:
            break
    with Memory.open(workspace, home=home, embedder=HashEmbedder()) as memory:
        report = memory.sync()
        assert (report.files, report.pending, report.healed) == (40, 0, None)
        assert len(memory.search(f"Note of {round_}", max_results=50, min_score=0).hits) == 40
        left_over = memory.search("Note 3 of 0", max_results=50, min_score=0)
        assert all(f"of {round_}" in hit.snippet for hit in left_over.hits)


@pytest.mark.posix("signals")
def test_the_same_kills_damage_a_naive_writer(tmp_path: Path) -> None:
    """The control: the same kills damage a writer without protection, so the test above can fail."""
    target = tmp_path / "rows.txt"
    chooser = random.Random(11)
    whole = "".join(f"row {i} of round " for i in range(200))
    torn = 0
    for _ in range(200):
        process = start(NAIVE, str(target))
        kill_after_lines(process, chooser.randrange(1, 60), chooser.random() * 0.001)
        lines = target.read_text().splitlines()
        torn += len(lines) != 200 or len({line.rsplit(" ", 1)[-1] for line in lines}) != 1
        if torn:
            break
    assert torn, whole[:0]
