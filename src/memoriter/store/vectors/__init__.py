"""Vector engines: each finds the rows whose vectors are nearest to a query.

The embedding cache stores the vectors. An engine stores only what can be rebuilt from the cache. New rows always have
greater numbers than all rows before. A deleted row may stay in an engine until its next refresh, so callers drop it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import apsw
    import numpy as np
    import numpy.typing as npt

    from memoriter.records import Identity
    from memoriter.store.database import Database

    Vector = npt.NDArray[np.float32]
    Rows = npt.NDArray[np.int64]
    """Ascending rowids."""


#: The file that records when the digests of vector files were compared last.
VERIFIED = "verified"

ENGINES = ("scan", "sqlite-vec", "lancedb", "chroma", "pinecone")


@dataclass(frozen=True, slots=True)
class PineconeAccess:
    """Which Pinecone index to use, and how to reach it."""

    api_key: str
    index: str = "memoriter"
    #: The address of the index. Empty: ask the API, and create the index if it does not exist.
    host: str = ""
    cloud: str = "aws"
    region: str = "us-east-1"
    api_url: str = "https://api.pinecone.io"
    timeout_s: float = 4.0
    #: The start of the names of namespaces.
    namespace: str = "main"


class VectorIndex(Protocol):
    """Finds the rows whose vectors are nearest to a query."""

    @property
    def problem(self) -> str | None:
        """What prevents the engine from working as intended, in a sentence."""

    def ready(self, identity: Identity) -> None:
        """Prepare for a search with this identity."""

    def search(
        self,
        connection: apsw.Connection,
        query: Vector,
        identity: Identity,
        *,
        limit: int,
        allow: Rows | None,
    ) -> list[tuple[int, float]]:
        """Return the nearest allowed rows as (rowid, cosine), best first. Zero vectors are never found."""

    def cosines(
        self, connection: apsw.Connection, query: Vector, identity: Identity, rows: Rows
    ) -> dict[int, float]:
        """Return the cosines of these rows, at least 0. Rows without a vector are left out."""

    def sound_until(self, connection: apsw.Connection, identity: Identity) -> int:
        """Return the row up to which a later search finds no deleted rows, or 0 if that is not known."""

    def follow(self, connection: apsw.Connection, identity: Identity) -> None:
        """Add new rows, inside the write transaction that has inserted them."""

    def refresh(self, identity: Identity) -> None:
        """Delete removed rows and tidy the files or tables of the engine, after a sync."""

    def purge(self, identity: Identity) -> None:
        """Erase every byte of vectors of deleted rows, in all files, tables and older versions.

        Raises `StoreUnavailable` if the vectors are on another machine that does not answer.
        """

    def close(self) -> None:
        """Close connections and files outside the database."""


def open_engine(
    name: str, database: Database, folder: Path, pinecone: PineconeAccess | None = None
) -> VectorIndex:
    """Open the engine with this name. ``folder`` is for its files."""
    if name == "sqlite-vec":
        from memoriter.store.vectors.sqlite_vec import SqliteVec

        return SqliteVec(database)
    if name in ("lancedb", "chroma", "pinecone"):
        return _open_external(name, database, folder, pinecone)
    from memoriter.store.vectors.scan import VectorScan

    return VectorScan(database, folder)


def remove_unused(folder: Path, engine: str) -> bool:
    """Delete the files of engines that are no longer used. Return whether vectors may still be in Pinecone."""
    for other, name in _FOLDERS.items():
        if other != engine:
            shutil.rmtree(folder / name, ignore_errors=True)
    return engine != "pinecone" and (folder / "pinecone" / "owner").exists()


def distrust_files(folder: Path) -> None:
    """Let the next use of vector files compare their digests. Damage by a disk does not change the stats of files."""
    for stamp in (folder / "vectors").glob(f"*/{VERIFIED}"):
        stamp.unlink(missing_ok=True)


_FOLDERS = {"scan": "vectors", "lancedb": "lance", "chroma": "chroma"}


def _open_external(
    name: str, database: Database, folder: Path, pinecone: PineconeAccess | None
) -> VectorIndex:
    from memoriter.store.vectors.chroma import ChromaStore
    from memoriter.store.vectors.external import ExternalIndex, TableStore
    from memoriter.store.vectors.lance import LanceStore
    from memoriter.store.vectors.pinecone import PineconeStore

    own = folder.with_name(_FOLDERS.get(name, name))
    store: TableStore
    if name == "lancedb":
        store = LanceStore(own)
    elif name == "chroma":
        store = ChromaStore(own)
    else:
        store = PineconeStore(own, pinecone)
    return ExternalIndex(database, store, own)
