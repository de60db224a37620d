"""Collections of the extra ``chroma``: each in a Chroma database of its own, in a folder.

Chroma searches an HNSW graph, so it may miss a few of the nearest rows. An open collection does not see what another
process writes, so it is opened again whenever the pointer has changed.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import secrets
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoriter.errors import StoreError
from memoriter.extensions.external_tables import ExternalIndex
from memoriter.extensions.external_tables.tables import FolderStore, VectorTable
from memoriter.store.connection import make_private_folder
from memoriter.store.vectors import VectorEngine

if TYPE_CHECKING:
    from memoriter.store.vectors import Rows, Vector

COLLECTION = "vectors"
#: More neighbours and a wider search than Chroma's defaults (16 and 100): slower, but nearly exact.
HNSW = {"space": "cosine", "max_neighbors": 32, "ef_construction": 200, "ef_search": 400}
#: Rows in one call, below the limit of SQLite's variables.
CALL_ROWS = 1000
#: Looks at a deleted folder, the pause between two of them, and how many in a row must find nothing.
LOOKS, PAUSE_S, QUIET_LOOKS = 40, 0.05, 5

#: The option of glibc's ``mallopt`` that overwrites memory when it is freed and when it is allocated.
M_PERTURB, FILLER = -6, 0xA5

_openings = itertools.count()


class ChromaStore(FolderStore):
    """The Chroma databases in one folder."""

    label = "Chroma"
    key = "chroma"

    def create(self, prefix: str, dimensions: int) -> ChromaTable:  # noqa: ARG002 - the first vector decides
        """Create an empty collection in a new folder."""
        name = f"{prefix}-{secrets.token_hex(4)}"
        make_private_folder(self._folder / name)
        client = self._connect(name)
        collection = client.create_collection(
            COLLECTION, embedding_function=None, configuration={"hnsw": HNSW}
        )
        return ChromaTable(name, client, collection)

    def open(self, name: str, state: Mapping[str, Any]) -> ChromaTable:
        """Open a collection that has the recorded number of rows."""
        if not (self._folder / name).is_dir():
            raise StoreError(f"The folder {self._folder / name} is missing.")
        client = self._connect(name)
        table = ChromaTable(name, client, client.get_collection(COLLECTION, embedding_function=None))
        table.written = int(state["written"])
        if (found := table.state()) != state:
            raise StoreError(f"The collection has {found} instead of {dict(state)}.")
        return table

    def drop_others(self, name: str) -> None:
        """Delete the folders of all other collections. Raises `StoreError` if one of them keeps being written."""
        others = [folder for folder in self._folder.glob("v*-*") if folder.name != name]
        if left := [str(folder) for folder in others if not _remove(folder)]:
            raise StoreError(f"Chroma still writes to {', '.join(left)}, so it could not be deleted.")

    def _connect(self, name: str) -> Any:
        import chromadb
        from chromadb.config import Settings

        _overwrite_freed_memory()
        # Chroma shares one connection for all clients with the same path. A path that was never used before makes it
        # read the files again.
        path = f"{self._folder / name}/{'./' * (1 + next(_openings) % 1000)}"
        return chromadb.PersistentClient(path=path, settings=Settings(anonymized_telemetry=False))


@functools.cache
def _overwrite_freed_memory() -> None:
    """Let the C library overwrite freed memory, where it can.

    Chroma allocates its graph with spare space and writes that space to disk as it is: with what was in the memory
    before, such as an erased vector.
    """
    with contextlib.suppress(AttributeError, OSError):  # not glibc
        ctypes.CDLL(None).mallopt(M_PERTURB, FILLER)


def _remove(folder: Path) -> bool:
    """Delete a folder, and return whether it stays deleted. Chroma's threads may write into it for a moment."""
    quiet = 0
    for _ in range(LOOKS):
        quiet = 0 if folder.exists() else quiet + 1
        if quiet == QUIET_LOOKS:
            return True
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(PAUSE_S)
    return False


class ChromaTable(VectorTable):
    """One collection. The ids are row numbers."""

    def __init__(self, name: str, client: Any, collection: Any) -> None:
        self.name = name
        self._client = client
        self._collection = collection
        #: Writes so far. Another process opens the collection again when this number changes.
        self.written = 0

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._client.close()

    def state(self) -> dict[str, Any]:
        """Return the number of writes and of rows."""
        return {"written": self.written, "rows": self._collection.count()}

    def add(self, ids: Rows, matrix: Vector) -> None:
        for start in range(0, len(ids), CALL_ROWS):
            part = slice(start, start + CALL_ROWS)
            self._collection.upsert(ids=[str(row) for row in ids[part].tolist()], embeddings=matrix[part])
        self.written += 1

    def delete(self, ids: Rows) -> None:
        """Delete vectors. Their bytes stay in the files of the graph."""
        for start in range(0, len(ids), CALL_ROWS):
            self._collection.delete(ids=[str(row) for row in ids[start : start + CALL_ROWS].tolist()])
        self.written += 1

    def nearest(self, query: Vector, limit: int) -> tuple[Rows, Vector]:
        import numpy as np

        answer = self._collection.query(query_embeddings=[query], n_results=limit, include=["distances"])
        ids = np.array(answer["ids"][0], dtype=np.int64)
        return ids, 1.0 - np.array(answer["distances"][0], dtype=np.float32)


engine = VectorEngine(
    open=lambda context: ExternalIndex(context, ChromaStore(context.folder, context.missing)),
    label=ChromaStore.label,
    folder="chroma",
)
