"""A damaged index is rebuilt automatically, and the Markdown files stay unchanged."""

from __future__ import annotations

import hashlib
import random
import sqlite3
from pathlib import Path

import pytest


def fingerprint(workspace: Path) -> dict[str, str]:
    return {
        str(file.relative_to(workspace)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(workspace.rglob("*"))
        if file.is_file()
    }


def delete(index: Path) -> None:
    index.unlink()


def truncate(index: Path) -> None:
    with index.open("r+b") as opened:
        opened.truncate(index.stat().st_size // 3)


def empty(index: Path) -> None:
    index.write_bytes(b"")


def garbage(index: Path) -> None:
    index.write_bytes(random.Random(1).randbytes(100_000))


def a_text_file(index: Path) -> None:
    index.write_text("This was a shopping list.\n" * 1000)


def a_foreign_database(index: Path) -> None:
    index.unlink()
    foreign = sqlite3.connect(index)
    foreign.execute("CREATE TABLE chunks (mine TEXT)")
    foreign.commit()
    foreign.close()


def holes(index: Path) -> None:
    chooser = random.Random(2)
    content = bytearray(index.read_bytes())
    for _ in range(30):
        at = chooser.randrange(4096, len(content) - 600)
        content[at : at + 600] = chooser.randbytes(600)
    index.write_bytes(bytes(content))


DAMAGE = [delete, truncate, empty, garbage, a_text_file, a_foreign_database, holes]


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda f: f.__name__)
@pytest.mark.parametrize("way", ["sync", "search"])
def test_a_damaged_index_is_rebuilt_automatically(
    damage, way, note, open_memory, workspace, tmp_path
) -> None:
    for number in range(60):
        note(f"memory/{number}.md", f"# Note {number}\n\nThe heron number {number} stands in the water.\n")
    memory = open_memory()
    memory.sync()
    expected = [(hit.path, hit.score) for hit in memory.search("heron 17").hits]
    memory.close()
    files = fingerprint(workspace)
    (database,) = tmp_path.glob("state/agents/main/workspaces/*/index.db")
    for side in ("index.db-wal", "index.db-shm"):
        database.with_name(side).unlink(missing_ok=True)
    damage(database)

    again = open_memory()
    if way == "sync":
        report = again.sync(verify=True)
        assert (report.files, report.pending) == (60, 0)
    answer = again.search("heron 17")
    if damage is not holes or way == "sync":
        # One search may not read the damaged pages. `index` and `doctor` read all of them.
        assert [(hit.path, hit.score) for hit in answer.hits] == expected
    assert fingerprint(workspace) == files


@pytest.mark.posix("an open file is deleted")
def test_an_index_deleted_under_an_open_memory_is_rebuilt(note, open_memory, tmp_path) -> None:
    note("memory/a.md", "The heron stands in the water.")
    memory = open_memory()
    memory.sync()
    for file in tmp_path.glob("state/agents/main/workspaces/*/index.db*"):
        file.unlink()
    assert [hit.path for hit in memory.search("heron").hits] == ["memory/a.md"]
