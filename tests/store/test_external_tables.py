"""Tables of LanceDB and Chroma are derived: after any damage the next search is correct and rebuilds them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from store_samples import ALICE, put_vector

from memoriter.errors import StoreError, StoreUnavailable
from memoriter.extensions import external_tables as external
from memoriter.extensions.chroma import tables as chroma
from memoriter.store import open_index

COUNT = 12
VECTORS = np.random.default_rng(5).normal(size=(COUNT, ALICE.dimensions)).astype(np.float32)
VECTORS /= np.linalg.norm(VECTORS, axis=1, keepdims=True)
ORDER = [f"{number}.md" for number in np.argsort(-(VECTORS @ VECTORS[3]))]
FOLDERS = {"lancedb": "lance", "chroma": "chroma"}


@pytest.fixture(params=["lancedb", pytest.param("chroma", marks=pytest.mark.integration)])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    package = {"chroma": "chromadb"}.get(request.param, request.param)
    pytest.importorskip(package, reason=f"the extra {request.param} is not installed")
    monkeypatch.setattr(external, "BATCH_ROWS", 4)
    return str(request.param)


def fill(folder: Path, engine: str, start: int, end: int) -> None:
    with open_index(folder, engine=engine) as index:
        for number in range(start, end):
            put_vector(index, f"{number}.md", VECTORS[number], ALICE)
        index.nearest(VECTORS[0], ALICE, limit=1)
        index.refresh(ALICE)


def order(folder: Path, engine: str) -> list[str]:
    with open_index(folder, engine=engine) as index:
        found = index.nearest(VECTORS[3], ALICE, limit=COUNT)
        rows = index.chunks([row for row, _ in found])
        assert index.vector_problem is None
        return [rows[row].chunk.path for row, _ in found]


def delete(folder: Path, _: Path) -> None:
    shutil.rmtree(folder)


def truncate(folder: Path, _: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("r+b") as opened:
                opened.truncate(8)


def empty(folder: Path, _: Path) -> None:
    for file in folder.rglob("*.*"):
        if file.is_file():
            file.write_bytes(b"")


def put_back(folder: Path, older: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(older, folder)


@pytest.mark.requirement("D5")
@pytest.mark.parametrize("damage", [delete, truncate, empty, put_back])
def test_a_missing_damaged_or_older_table_is_rebuilt(
    engine: str, tmp_path: Path, damage: Callable[[Path, Path], None]
) -> None:
    folder = tmp_path / FOLDERS[engine]
    fill(tmp_path, engine, 0, 6)
    shutil.copytree(folder, tmp_path / "older")
    fill(tmp_path, engine, 6, COUNT)
    assert order(tmp_path, engine) == ORDER
    [before] = folder.glob("v*")
    damage(folder, tmp_path / "older")
    assert order(tmp_path, engine) == ORDER
    assert order(tmp_path, engine) == ORDER
    [after] = folder.glob("v*")
    assert before != after, "the table was rebuilt under a new name"


def test_a_purge_erases_the_vector_bytes_of_deleted_rows(engine: str, tmp_path: Path) -> None:
    fill(tmp_path, engine, 0, COUNT)
    needle = VECTORS[7].tobytes()

    def holders() -> list[str]:
        files = [file for file in (tmp_path / FOLDERS[engine]).rglob("*") if file.is_file()]
        return [file.name for file in files if needle in file.read_bytes()]

    assert holders()
    with open_index(tmp_path, engine=engine) as index:
        index.remove(["7.md"])
        index.refresh(ALICE)
        assert holders(), "the control: a plain delete keeps the bytes in older versions"
        index.erase([], ALICE)
        assert holders() == []
        assert len(index.nearest(VECTORS[3], ALICE, limit=COUNT)) == COUNT - 1


@pytest.mark.integration
def test_chroma_does_not_write_erased_vectors_from_memory_to_disk(tmp_path: Path) -> None:
    pytest.importorskip("chromadb", reason="the extra chroma is not installed")
    for attempt in range(12):  # one attempt shows the fault in about a quarter of the runs
        test_a_purge_erases_the_vector_bytes_of_deleted_rows("chroma", tmp_path / str(attempt))


def test_an_erasure_deletes_the_files_of_an_engine_that_is_no_longer_used(
    engine: str, tmp_path: Path
) -> None:
    fill(tmp_path, engine, 0, COUNT)
    assert (tmp_path / FOLDERS[engine]).exists()
    with open_index(tmp_path, engine="scan") as index:
        index.erase([], ALICE)
        assert not (tmp_path / FOLDERS[engine]).exists()
        assert len(index.nearest(VECTORS[3], ALICE, limit=COUNT)) == COUNT


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_external_tables as tables
from memoriter.extensions.chroma import tables as chroma
from memoriter.extensions import external_tables as external
external.BATCH_ROWS = 4
tables.fill(Path(sys.argv[2]), sys.argv[3], 6, tables.COUNT)
"""


def test_an_open_index_sees_what_another_process_adds(engine: str, tmp_path: Path) -> None:
    fill(tmp_path, engine, 0, 6)
    with open_index(tmp_path, engine=engine) as index:
        assert len(index.nearest(VECTORS[3], ALICE, limit=COUNT)) == 6
        here = str(Path(__file__).parent)
        subprocess.run([sys.executable, "-c", WRITER, here, str(tmp_path), engine], check=True, timeout=600)
        found = index.nearest(VECTORS[3], ALICE, limit=COUNT)
        rows = index.chunks([row for row, _ in found])
        assert [rows[row].chunk.path for row, _ in found] == ORDER


def test_a_store_that_cannot_be_written_is_named_and_vectors_are_compared_here(
    engine: str, tmp_path: Path
) -> None:
    (tmp_path / FOLDERS[engine]).write_text("not a folder")
    with open_index(tmp_path, engine=engine) as index:
        for number in range(COUNT):
            put_vector(index, f"{number}.md", VECTORS[number], ALICE)
        index.refresh(ALICE)
        index.ready(ALICE)
        assert len(index.nearest(VECTORS[3], ALICE, limit=COUNT)) == COUNT
        assert "vectors were compared on this machine" in str(index.vector_problem)
        with pytest.raises(StoreUnavailable):
            index.erase([], ALICE)


@pytest.mark.parametrize(
    ("engine", "label", "needs"),
    [("chroma", "Chroma", "chromadb>=1.5"), ("pinecone", "Pinecone", "httpx2>=2.0")],
)
def test_without_the_package_vectors_are_compared_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, label: str, needs: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with open_index(tmp_path, engine=engine) as index:
        put_vector(index, "0.md", VECTORS[0], ALICE)
        index.refresh(ALICE)
        assert len(index.nearest(VECTORS[0], ALICE, limit=5)) == 1
        assert index.vector_problem == (
            f"{label} is not installed. Run: pip install '{needs}'. "
            f"{label} was not used: vectors were compared on this machine."
        )


def test_a_folder_of_erased_vectors_that_cannot_be_deleted_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chroma, "PAUSE_S", 0.0)
    (tmp_path / "v1-new").mkdir()
    (tmp_path / "v1-old").mkdir()
    (tmp_path / "v1-stuck").write_text("not a folder, so that it stays")
    store = chroma.ChromaStore(tmp_path, None)
    with pytest.raises(StoreError, match=r"still writes to .*v1-stuck, so it could not be deleted"):
        store.drop_others("v1-new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v1-new", "v1-stuck"]
