"""LanceDB tables are derived: after any damage the next search is correct and rebuilds them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from store_samples import ALICE, put_vector

from memoriter.store import open_index
from memoriter.store.vectors import lance

pytest.importorskip("lancedb", reason="the extra lancedb is not installed")

COUNT = 12
VECTORS = np.random.default_rng(5).normal(size=(COUNT, ALICE.dimensions)).astype(np.float32)
VECTORS /= np.linalg.norm(VECTORS, axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lance, "BATCH_ROWS", 4)


def fill(folder: Path, start: int, end: int) -> None:
    with open_index(folder, engine="lancedb") as index:
        for number in range(start, end):
            put_vector(index, f"{number}.md", VECTORS[number], ALICE)
        index.nearest(VECTORS[0], ALICE, limit=1)


def order(folder: Path) -> list[str]:
    with open_index(folder, engine="lancedb") as index:
        found = index.nearest(VECTORS[3], ALICE, limit=COUNT)
        rows = index.chunks([row for row, _ in found])
        return [rows[row].chunk.path for row, _ in found]


def delete(folder: Path, _: Path) -> None:
    shutil.rmtree(folder)


def truncate(folder: Path, _: Path) -> None:
    for file in folder.rglob("data/*.lance"):
        with file.open("r+b") as opened:
            opened.truncate(8)


def empty(folder: Path, _: Path) -> None:
    for file in folder.rglob("*.*"):
        if file.is_file():
            file.write_bytes(b"")


def put_back(folder: Path, older: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(older, folder)


@pytest.mark.parametrize("damage", [delete, truncate, empty, put_back])
def test_a_missing_damaged_or_older_table_is_rebuilt(
    tmp_path: Path, damage: Callable[[Path, Path], None]
) -> None:
    fill(tmp_path, 0, 6)
    shutil.copytree(tmp_path / "lance", tmp_path / "older")
    fill(tmp_path, 6, COUNT)
    expected = [f"{number}.md" for number in np.argsort(-(VECTORS @ VECTORS[3]))]
    assert order(tmp_path) == expected
    damage(tmp_path / "lance", tmp_path / "older")
    assert order(tmp_path) == expected
    assert order(tmp_path) == expected
    engine = lance.Lance.__new__(lance.Lance)
    engine._folder = tmp_path / "lance"
    assert engine._connect().open_table(lance._table_name(ALICE)).count_rows() == COUNT


def test_a_purge_erases_the_vector_bytes_of_deleted_rows(tmp_path: Path) -> None:
    fill(tmp_path, 0, COUNT)
    needle = VECTORS[7].tobytes()

    def holders() -> list[str]:
        return [
            file.name
            for file in (tmp_path / "lance").rglob("*")
            if file.is_file() and needle in file.read_bytes()
        ]

    assert holders()
    with open_index(tmp_path, engine="lancedb") as index:
        index.remove(["7.md"])
        index.refresh(ALICE)
        assert holders(), "the control: a plain delete keeps the bytes in older versions"
        index.erase([], ALICE)
        assert holders() == []
        assert len(index.nearest(VECTORS[3], ALICE, limit=COUNT)) == COUNT - 1
