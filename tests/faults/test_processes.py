"""Several processes share one index: none is locked out or sees half of a change."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SEARCHER = """
import json, sys
from memoriter import Memory
from memoriter.testing import HashEmbedder
seen, problems = set(), []
with Memory.open(sys.argv[1], home=sys.argv[2], embedder=HashEmbedder()) as memory:
    for _ in range(60):
        answer = memory.search("generation marker", max_results=100, min_score=0)
        if answer.degraded and "locked" in answer.degraded:
            problems.append(answer.degraded)
        for hit in answer.hits:
            for line in hit.snippet.splitlines():
                if line.startswith("generation"):
                    seen.add(line.split()[2])
        if len({hit.chunk_id for hit in answer.hits}) != len(answer.hits):
            problems.append("one chunk twice")
print(json.dumps([sorted(seen), problems]))
"""

INDEXER = """
import sys
from pathlib import Path
from memoriter import Memory
from memoriter.testing import HashEmbedder
root = Path(sys.argv[1])
with Memory.open(root, home=sys.argv[2], embedder=HashEmbedder()) as memory:
    for generation in range(1, 9):
        for number in range(20):
            (root / f"memory/{number}.md").write_text(f"generation marker {generation}\\nnote {number}\\n")
        memory.sync(force=generation % 3 == 0)
print("done")
"""


def start(code: str, *arguments: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.integration
def test_an_indexer_and_several_searchers_work_at_the_same_time(tmp_path: Path) -> None:
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    (workspace / "memory").mkdir(parents=True)
    for number in range(20):
        (workspace / f"memory/{number}.md").write_text(f"generation marker 0\nnote {number}\n")
    running = [start(INDEXER, workspace, home), *(start(SEARCHER, workspace, home) for _ in range(3))]
    outputs = [process.communicate() for process in running]
    assert [(process.returncode, error) for process, (_, error) in zip(running, outputs, strict=True)] == [
        (0, "")
    ] * 4
    for out, _ in outputs[1:]:
        seen, problems = json.loads(out)
        assert problems == []
        assert set(seen) <= {str(generation) for generation in range(9)}


@pytest.mark.integration
def test_four_processes_can_open_a_new_home_at_the_same_time(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "MEMORY.md").write_text("generation marker 5\n")
    running = [start(SEARCHER, workspace, tmp_path / "home") for _ in range(4)]
    outputs = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0] * 4, outputs
    assert [json.loads(out) for out, _ in outputs] == [[["5"], []]] * 4
