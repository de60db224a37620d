from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from store_samples import ALICE, put_vector, units

from memoriter.errors import StoreError
from memoriter.files import platform
from memoriter.records import Identity
from memoriter.store import Filter, SqliteIndex, open_index
from memoriter.store.connection import store_lock
from memoriter.store.vectors import scan
from memoriter.store.vectors.nearest import after_prefix
from memoriter.store.vectors.sidefiles import build, open_files, remove_others

#: The number of dimensions is not a multiple of 64.
WIDE = Identity("local", "wide", 100)
LIMITS = scan.ScanLimits(threshold=50, tail_rows=10, dead_share=0.2)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteIndex:
    monkeypatch.setattr(scan, "LIMITS", LIMITS)
    return open_index(tmp_path)


def fill(index: SqliteIndex, vectors: Any, first: int = 0) -> None:
    with index.transaction():
        for number, vector in enumerate(vectors, start=first):
            put_vector(index, f"{number}.md", vector, ALICE)


def generations(index: SqliteIndex) -> list[str]:
    folder = index.path.parent / "vectors"
    return sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []


def clustered(count: int, dims: int) -> Any:
    """Return vectors in clusters with a common offset, like those of an encoder."""
    chance = np.random.default_rng(0)
    centres = chance.normal(size=(60, dims))
    vectors = centres[chance.integers(0, 60, count)] + 0.6 * chance.normal(size=(count, dims)) + 0.4
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_a_small_store_has_no_files(index: SqliteIndex) -> None:
    fill(index, units(49, 8))
    index.refresh(ALICE)
    assert (generations(index), index.meta("vectors")) == ([], None)


def test_files_are_rebuilt_when_enough_has_changed(index: SqliteIndex) -> None:
    fill(index, units(60, 8))
    index.refresh(ALICE)
    first = generations(index)
    fill(index, units(10, 8, seed=1), first=60)
    index.refresh(ALICE)  # ten newer rows are not enough
    unchanged = generations(index)
    fill(index, units(1, 8, seed=2), first=70)
    index.refresh(ALICE)
    newer = generations(index)
    index.remove([f"{number}.md" for number in range(15)])
    index.refresh(ALICE)  # fifteen of 71 are deleted
    assert (first, unchanged, newer, generations(index)) == (["1"], ["1"], ["2"], ["3"])
    assert len(index.nearest(units(1, 8)[0], ALICE, limit=100)) == 56


def test_files_are_deleted_when_the_store_becomes_small(index: SqliteIndex) -> None:
    fill(index, units(60, 8))
    index.refresh(ALICE)
    index.remove([f"{number}.md" for number in range(40)])
    index.refresh(ALICE)
    assert (generations(index), index.meta("vectors")) == ([], None)
    assert len(index.nearest(units(1, 8)[0], ALICE, limit=100)) == 20


@pytest.mark.parametrize("name", ["ids", "full", "codes", "bits", "manifest.json"])
@pytest.mark.parametrize("harm", ["delete", "shorten", "lengthen"])
def test_incomplete_files_are_not_used(index: SqliteIndex, name: str, harm: str) -> None:
    vectors = units(60, 8)
    fill(index, vectors)
    index.refresh(ALICE)
    file = index.path.parent / "vectors" / "1" / name
    content = file.read_bytes()
    file.unlink()
    if harm != "delete":
        file.write_bytes(content[:-1] if harm == "shorten" else content + b"\0")
    with open_index(index.path.parent) as other:
        assert len(other.nearest(vectors[0], ALICE, limit=100)) == 60
        other.refresh(ALICE)
        assert generations(other) == ["2"]
        assert other.nearest(vectors[0], ALICE, limit=1)[0][1] == pytest.approx(1, abs=1e-5)


def test_files_of_other_vectors_with_the_right_name_are_not_used(index: SqliteIndex, tmp_path: Path) -> None:
    fill(index, units(60, 8))
    index.refresh(ALICE)
    with open_index(tmp_path / "other") as other:
        fill(other, units(60, 8, seed=9))
        other.refresh(ALICE)
    shutil.rmtree(tmp_path / "vectors" / "1")
    shutil.copytree(tmp_path / "other" / "vectors" / "1", tmp_path / "vectors" / "1")
    with open_index(tmp_path) as again:
        assert again.nearest(units(60, 8)[0], ALICE, limit=1)[0][1] == pytest.approx(1, abs=1e-5)


def test_a_reader_keeps_its_files_while_new_ones_are_built(index: SqliteIndex) -> None:
    vectors = units(90, 8)
    fill(index, vectors[:60])
    index.refresh(ALICE)
    with open_index(index.path.parent) as other:
        assert len(other.nearest(vectors[0], ALICE, limit=100)) == 60
        fill(index, vectors[60:], first=60)
        index.refresh(ALICE)
        # Windows deletes no file that a process has mapped.
        assert generations(index) == (["2"] if platform.CAN_REPLACE_OPEN_FILES else ["1", "2"])
        assert len(other.nearest(vectors[0], ALICE, limit=100)) == 90
    assert index.erase([], ALICE)
    assert generations(index) == ["1"]


def test_a_process_replaces_the_files_that_it_has_read(index: SqliteIndex) -> None:
    vectors = units(90, 8)
    fill(index, vectors[:60])
    index.refresh(ALICE)
    assert len(index.nearest(vectors[0], ALICE, limit=100)) == 60
    fill(index, vectors[60:], first=60)
    index.refresh(ALICE)
    assert generations(index) == ["2"]
    assert len(index.nearest(vectors[0], ALICE, limit=100)) == 90


def test_only_one_process_builds_files_at_a_time(index: SqliteIndex) -> None:
    fill(index, units(60, 8))
    with store_lock(index.path.parent / "vectors", timeout_s=0):
        index.refresh(ALICE)
    assert index.meta("vectors") is None
    index.refresh(ALICE)
    assert generations(index) == ["1"]


def test_a_failed_write_of_files_is_an_error_and_leaves_nothing(
    index: SqliteIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(index, units(60, 8))

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("memoriter.store.vectors.sidefiles._quantise", full_disk)
    with pytest.raises(StoreError, match="No space left on device"):
        index.refresh(ALICE)
    assert (generations(index), len(index.nearest(units(1, 8)[0], ALICE, limit=100))) == ([], 60)


def test_side_files_are_private_under_any_umask(index: SqliteIndex) -> None:
    fill(index, units(60, 8))
    before = os.umask(0)
    try:
        index.refresh(ALICE)
    finally:
        os.umask(before)
    places = [index.path.parent / "vectors", *(index.path.parent / "vectors").rglob("*")]
    names = {"vectors", "1", "ids", "full", "codes", "bits", "manifest.json"}
    assert {place.name for place in places} == names
    # On Windows, files inherit the access list of their folder, except under Wine.
    checked = [place for place in places if place.is_dir() or sys.platform != "win32"]
    assert [place for place in checked if not platform.is_private(place)] == []


@pytest.mark.parametrize("dims", [5, 64, 100, 384])
def test_few_candidates_find_nearly_all_hits_of_an_exact_scan(tmp_path: Path, dims: int) -> None:
    vectors, queries = np.split(clustered(6_020, dims), [6_000])
    identity = Identity("local", "m", dims)
    ids = np.arange(1, 6_001) * 3
    pointer = build(tmp_path, [(18_000, ids, vectors)], identity)
    files = open_files(tmp_path, pointer, identity)
    assert files is not None
    found = 0
    for query in queries:
        rows, _ = files.search(query, limit=10, allow=None, candidates=600, rescored=100)
        exact = ids[np.argsort(-(vectors @ query))[:10]]
        found += len(set(rows) & set(exact))
    assert found / (10 * len(queries)) > (0.97 if dims > 5 else 0.4)  # five signs say little


def test_an_allow_list_is_respected_at_every_size(tmp_path: Path) -> None:
    vectors = clustered(3_000, 100)
    ids = np.arange(1, 3_001)
    files = open_files(tmp_path, build(tmp_path, [(3_000, ids, vectors)], WIDE), WIDE)
    assert files is not None
    for step in (2, 7, 100, 2_999):
        allow = ids[::step]
        rows, scores = files.search(vectors[1], limit=10, allow=allow, candidates=500, rescored=100)
        exact = allow[np.argsort(-(vectors[allow - 1] @ vectors[1]))[:10]]
        assert set(rows) <= set(allow)
        assert len(set(rows) & set(exact)) >= min(10, len(allow)) - 1
        assert scores == pytest.approx(vectors[rows - 1] @ vectors[1], abs=1e-6)


def test_many_copies_of_one_vector_do_not_widen_the_search(tmp_path: Path) -> None:
    vectors = np.repeat(units(1, 100), 5_000, axis=0)
    files = open_files(tmp_path, build(tmp_path, [(5_000, np.arange(1, 5_001), vectors)], WIDE), WIDE)
    assert files is not None
    rows, _ = files.search(vectors[0], limit=10, allow=None, candidates=100, rescored=50)
    assert len(set(rows)) == 10


def test_no_files_are_built_without_rows(tmp_path: Path) -> None:
    assert (build(tmp_path, [], WIDE), list(tmp_path.iterdir())) == (None, [])


def test_the_first_text_after_a_prefix() -> None:
    cases = {"a": "b", "a/": "a0", "数": "敱", "a\U0010ffff": "b", "\U0010ffff": None, "\ud7ff": "\ue000"}
    assert {prefix: after_prefix(prefix) for prefix in cases} == cases


def test_a_prefix_at_the_end_of_the_alphabet_is_found(index: SqliteIndex) -> None:
    for path in ("\U0010ffff/a.md", "a\U0010ffff.md", "b.md"):
        put_vector(index, path, units(1, 8)[0], ALICE)
    hits = [
        len(index.nearest(units(1, 8)[0], ALICE, limit=9, where=Filter(path_prefix=p)))
        for p in ("\U0010ffff", "a", "b")
    ]
    assert hits == [1, 1, 1]


def test_old_files_that_a_process_keeps_open_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows does not delete mapped files. An erasure says so and tries again at the next start."""
    for generation in ("3", "4"):
        (tmp_path / generation).mkdir()
    with monkeypatch.context() as windows:
        windows.setattr(shutil, "rmtree", lambda *_, **__: None)
        assert not remove_others(tmp_path, "4 digest")
    assert remove_others(tmp_path, "4 digest")
    assert [path.name for path in tmp_path.iterdir()] == ["4"]
