"""Damaged vector files are recognised by their digests, and impossible numbers never hide what keywords find."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from memoriter import Memory
from memoriter.store.vectors import scan, sidefiles
from memoriter.testing import HashEmbedder

QUERIES = [f"heron river{number}" for number in range(0, 80, 9)]
#: Vectors are in files from this number on.
LIMITS = scan.ScanLimits(threshold=50, tail_rows=10)


@pytest.fixture(autouse=True)
def use_files_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "LIMITS", LIMITS)


def opened(root: Path, home: Path) -> Memory:
    return Memory.open(root, home=home, embedder=HashEmbedder(), overrides={"search.rerank": False})


def answers(memory: Memory) -> list[list[str]]:
    return [[hit.path for hit in memory.search(query).hits] for query in QUERIES]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[list[str]]]:
    """Return a folder of notes, a closed home with its index, and its answers."""
    root, home = tmp_path_factory.mktemp("notes"), tmp_path_factory.mktemp("sound") / "home"
    (root / "memory").mkdir()
    for number in range(80):
        text = f"The heron number {number} stands in river{number}.\n"
        (root / f"memory/{number}.md").write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, opened(root, home) as memory:
        patch.setattr(scan, "LIMITS", LIMITS)
        memory.sync()
        return root, home, answers(memory)


@pytest.fixture
def home(sound: tuple[Path, Path, list[list[str]]], tmp_path: Path) -> Path:
    return shutil.copytree(sound[1], tmp_path / "state")


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
    name: str, seed: int, home: Path, sound: tuple[Path, Path, list[list[str]]]
) -> None:
    root, _, expected = sound
    [file] = home.rglob(f"vectors/*/{name}")
    damage(file, seed)
    with opened(root, home) as memory:
        assert answers(memory) == expected
        memory.sync(verify=True)
        [replaced] = home.rglob(f"vectors/*/{name}")
        assert replaced.parent.name != file.parent.name
        assert answers(memory) == expected


def test_damage_that_leaves_the_stats_of_a_file_is_found_by_a_sync_that_verifies(
    home: Path, sound: tuple[Path, Path, list[list[str]]]
) -> None:
    [file] = home.rglob("vectors/*/full")
    damage(file, 0)
    # As if the disk had changed the bytes: the record of the last comparison has the stats of now.
    stats = [sidefiles._stat_of(file.parent / name) for name in sidefiles.FILES]
    (file.parent / "verified").write_text(str(stats).replace("'", '"'))
    with opened(sound[0], home) as memory:
        assert memory.search("heron river7").hits[0].path == "memory/7.md"
        memory.sync(verify=True)
        assert not file.exists()
        assert memory.search("heron river7").hits[0].path == "memory/7.md"
