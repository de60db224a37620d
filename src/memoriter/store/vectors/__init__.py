"""Which vectors are nearest? Engines behind one Protocol, tested by one contract.

An engine owns no vectors: they stand in the embedding cache, and what an engine keeps can be made from it again.
Rows only ever come with greater numbers than all before. A row that is gone may stay in an engine until its next
refresh; whoever asks drops it.
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
    """Rowids, ascending."""


class VectorIndex(Protocol):
    """Finds the rows whose vectors are nearest to one."""

    def ready(self, identity: Identity) -> None:
        """Before a search: be able to answer for this identity."""

    def search(
        self,
        connection: apsw.Connection,
        query: Vector,
        identity: Identity,
        *,
        limit: int,
        allow: Rows | None,
    ) -> list[tuple[int, float]]:
        """The nearest rows as (rowid, cosine), best first, of those allowed. Zero vectors are never found."""

    def cosines(
        self, connection: apsw.Connection, query: Vector, identity: Identity, rows: Rows
    ) -> dict[int, float]:
        """How near these rows are, of those that have a vector: the cosine, 0 where it is negative."""

    def follow(self, connection: apsw.Connection, identity: Identity) -> None:
        """Inside a write transaction that has added rows."""

    def refresh(self, identity: Identity) -> None:
        """After a sync: drop what is gone and put the engine's own files or tables in order."""

    def purge(self, identity: Identity) -> None:
        """After an erasure: keep no byte of vectors whose rows are gone, in no file, table or older version."""


def open_engine(name: str, database: Database, folder: Path) -> VectorIndex:
    """The engine of this name; ``folder`` is where it may keep files."""
    if name == "sqlite-vec":
        from memoriter.store.vectors.sqlite_vec import SqliteVec

        return SqliteVec(database)
    if name == "lancedb":
        from memoriter.store.vectors.lance import Lance

        return Lance(database, folder.with_name("lance"))
    from memoriter.store.vectors.scan import Scan

    return Scan(database, folder)
