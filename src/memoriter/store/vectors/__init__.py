"""Vector engines: each finds the rows whose vectors are nearest to a query.

The embedding cache stores the vectors. An engine stores only what can be rebuilt from the cache. New rows always have
greater numbers than all rows before. A deleted row may stay in an engine until its next refresh, so callers drop it.
"""

from __future__ import annotations

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


class VectorIndex(Protocol):
    """Finds the rows whose vectors are nearest to a query."""

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

    def follow(self, connection: apsw.Connection, identity: Identity) -> None:
        """Add new rows, inside the write transaction that has inserted them."""

    def refresh(self, identity: Identity) -> None:
        """Delete removed rows and tidy the files or tables of the engine, after a sync."""

    def purge(self, identity: Identity) -> None:
        """Erase every byte of vectors of deleted rows, in all files, tables and older versions."""


def open_engine(name: str, database: Database, folder: Path) -> VectorIndex:
    """Open the engine with this name. ``folder`` is for its files."""
    if name == "sqlite-vec":
        from memoriter.store.vectors.sqlite_vec import SqliteVec

        return SqliteVec(database)
    if name == "lancedb":
        from memoriter.store.vectors.lance import Lance

        return Lance(database, folder.with_name("lance"))
    from memoriter.store.vectors.scan import VectorScan

    return VectorScan(database, folder)
