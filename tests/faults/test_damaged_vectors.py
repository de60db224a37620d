"""Damaged vector files are recognised by their digests, and impossible numbers never hide what keywords find."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from memoriter.store.vectors import scan


@pytest.fixture(autouse=True)
def use_files_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "LIMITS", scan.ScanLimits(threshold=50, tail_rows=10))


def damage(file: Path, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(file.read_bytes())
    if seed % 3 == 0:
        data = bytearray(chance.randbytes(len(data)))
    for _ in range(50):
        data[chance.randrange(len(data))] = chance.randrange(256)
    file.write_bytes(data)


@pytest.mark.parametrize("name", ["full", "codes", "bits", "ids"])
@pytest.mark.parametrize("seed", [0, 1])
def test_damaged_vector_files_change_no_answer_and_a_sync_replaces_them(
    name: str, seed: int, note, open_memory, tmp_path: Path
) -> None:
    for number in range(80):
        note(f"memory/{number}.md", f"The heron number {number} stands in river{number}.\n")
    memory = open_memory()
    memory.sync()
    queries = [f"heron river{number}" for number in range(0, 80, 9)]
    expected = [[hit.path for hit in memory.search(query).hits] for query in queries]
    memory.close()
    [file] = (tmp_path / "state").rglob(f"vectors/*/{name}")
    damage(file, seed)
    again = open_memory()
    assert [[hit.path for hit in again.search(query).hits] for query in queries] == expected
    again.sync(verify=True)
    [replaced] = (tmp_path / "state").rglob(f"vectors/*/{name}")
    assert replaced.parent.name != file.parent.name
    assert [[hit.path for hit in again.search(query).hits] for query in queries] == expected


def test_damage_that_leaves_the_stats_of_a_file_is_found_by_a_sync_that_verifies(
    note, open_memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(80):
        note(f"memory/{number}.md", f"The heron number {number} stands in river{number}.\n")
    memory = open_memory()
    memory.sync()
    memory.search("heron river7")
    memory.close()
    [file] = (tmp_path / "state").rglob("vectors/*/full")
    damage(file, 0)
    # As if the disk had changed the bytes: the record of the last comparison has the stats of now.
    from memoriter.store.vectors import sidefiles

    stats = [sidefiles._stat_of(file.parent / name) for name in sidefiles.FILES]
    (file.parent / "verified").write_text(str(stats).replace("'", '"'))
    again = open_memory()
    assert again.search("heron river7").hits[0].path == "memory/7.md"
    again.sync(verify=True)
    assert not file.exists()
    assert again.search("heron river7").hits[0].path == "memory/7.md"
