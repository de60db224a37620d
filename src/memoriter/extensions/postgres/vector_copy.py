"""Copies of the vectors of indexes, in the memory of a process.

Comparing vectors takes the server longer than everything else in a search. A process that searches an index
often therefore copies its vectors, in the background, and compares them as the engine `scan` does. The server says in
every search how many chunks there are and which row comes next. If neither has changed, the copy is current. Otherwise
the new rows are fetched, and the deleted ones are dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memoriter import logs
from memoriter.background import Rejected, Workers
from memoriter.errors import StoreError
from memoriter.store.vectors.nearest import SPARE_ROWS, positions, products
from memoriter.store.vectors.scan import LIMITS
from memoriter.store.vectors.sidefiles import SideFiles, quantised

if TYPE_CHECKING:
    from memoriter.extensions.postgres.chunks import State
    from memoriter.extensions.postgres.connection import PostgresConnection
    from memoriter.extensions.postgres.database import PostgresDatabase
    from memoriter.records import Identity
    from memoriter.store.vectors import Rows, Vector

log = logs.get("store")

#: Searches of an index in this process before its vectors are copied. Copying them takes as long as 10 to 50 searches.
SEARCHES = 12
#: The most bytes of all copies of a process. An index that does not fit is searched by the server.
MAX_BYTES = 512 * 2**20
#: New and deleted rows, as a share of all, from which the copy is made again.
MAX_CHANGED = 0.05
#: Rows that are fetched together.
BLOCK_ROWS = 4_096

# Every row from one on, so that deleted rows can be counted. The vector is null if there is none of this model.
_ROWS = """
    select c.rowid, v.vector from index_chunks c
    left join lateral (select vector from index_vectors
        where index_name = $1 and model = $2 and hash = c.hash and c.model = $2 offset 0) v on true
    where c.index_name = $1 and c.rowid >= $3 order by c.rowid limit $4"""
_LIVING = """
    select string_agg(int8send(rowid), ''::bytea order by rowid) from index_chunks where index_name = $1"""

_workers = Workers("memoriter-vectors")
_lock = threading.Lock()
_reserved = 0


def _reserve(size: int) -> bool:
    """Reserve bytes for a copy, or release them. Return False if there is no room."""
    global _reserved  # noqa: PLW0603 - all copies of a process share the memory
    with _lock:
        if size > 0 and _reserved + size > MAX_BYTES:
            return False
        _reserved += size
        return True


class VectorCopy:
    """The vectors of one index and one embedder."""

    def __init__(self, identity: Identity, rows: Rows, matrix: Vector, version: tuple[int, int]) -> None:
        self._dimensions = identity.dimensions
        self._model = str(identity)
        self._files = quantised(rows, matrix)
        self._rows, self._matrix = rows[:0], matrix[:0]
        self._deleted: Rows = rows[:0]
        #: The number of chunks, and the next row.
        self._version = version
        self._mutex = threading.Lock()

    def view(self, connection: PostgresConnection, index: str, state: State) -> CopyView | None:
        """Return the vectors that a snapshot sees, or None if they cannot be told apart from later ones."""
        with self._mutex:
            version = (state.chunks, state.next_row)
            if version != self._version and not self._catch_up(connection, index, version):
                return None
            return CopyView(self._files, self._rows, self._matrix, self._deleted)

    def _catch_up(self, connection: PostgresConnection, index: str, version: tuple[int, int]) -> bool:
        (before, first), (chunks, next_row) = self._version, version
        allowed = max(1_000, int(MAX_CHANGED * self._files.count))
        if next_row < first or next_row - first + len(self._rows) > allowed:
            return False  # an older snapshot, or so many new rows that all are copied again
        found = connection.fetch(_ROWS, (index, self._model, first, allowed + 1))
        rows, matrix = decode(found, self._dimensions)
        self._rows = np.concatenate([self._rows, rows])
        self._matrix = np.concatenate([self._matrix, matrix])
        if before + len(found) != chunks:
            living = np.frombuffer(connection.fetch(_LIVING, (index,))[0][0] or b"", dtype=">i8").astype(
                np.int64
            )
            known = np.concatenate([self._files.ids, self._rows])
            self._deleted = np.setdiff1d(known, living, assume_unique=True)
        self._version = version
        return len(self._deleted) <= allowed


class CopyView:
    """The vectors that one search sees."""

    def __init__(self, files: SideFiles, rows: Rows, matrix: Vector, deleted: Rows) -> None:
        self._files = files
        self._rows, self._matrix = rows, matrix
        self._deleted = deleted

    def nearest(self, query: Vector, limit: int) -> list[tuple[int, float]]:
        """Return the nearest rows as (rowid, cosine), best first."""
        wanted = limit + SPARE_ROWS + len(self._deleted)
        wide, last = LIMITS.candidates, LIMITS.rescored
        far = self._files.search(query, limit=wanted, allow=None, candidates=wide, rescored=last)
        rows = np.concatenate([far[0], self._rows])
        scores = np.concatenate([far[1], products(self._matrix, query)])
        if len(self._deleted):
            is_living = ~np.isin(rows, self._deleted, assume_unique=True)
            rows, scores = rows[is_living], scores[is_living]
        order = np.lexsort((rows, -scores))[:limit]
        return list(zip(rows[order].tolist(), scores[order].astype(float).tolist(), strict=True))

    def cosines(self, query: Vector, rows: Sequence[int]) -> dict[int, float]:
        """Return the cosines of these rows, at least 0. Rows without a vector are left out."""
        wanted = np.setdiff1d(np.array(rows, dtype=np.int64), self._deleted)
        found: dict[int, float] = {}
        for ids, matrix in ((self._files.ids, self._files.full), (self._rows, self._matrix)):
            at = positions(ids, wanted)
            values = np.clip(products(matrix[at], query), 0.0, 1.0)
            found.update(zip(ids[at].tolist(), values.tolist(), strict=True))
        return found


class VectorCopies:
    """The copies of one index, by embedder: made in the background once they are worth it."""

    def __init__(self, database: PostgresDatabase, index: str, read_state: Callable[[], State]) -> None:
        self._database = database
        self._index = index
        self._read_state = read_state
        self._mutex = threading.Lock()
        self._searches: dict[str, int] = {}
        self._copies: dict[str, tuple[VectorCopy, int]] = {}

    def view(self, connection: PostgresConnection, state: State, identity: Identity) -> CopyView | None:
        """Return the copy as a snapshot sees it, if there is one."""
        with self._mutex:
            copy, _ = self._copies.get(str(identity), (None, 0))
        if copy is None:
            return None
        found = copy.view(connection, self._index, state)
        if found is None:
            self.drop()
        return found

    def count_search(self, state: State, identity: Identity) -> None:
        """Count a search without a copy. After some, the vectors are copied."""
        with self._mutex:
            count = self._searches[str(identity)] = self._searches.get(str(identity), 0) + 1
        if count == SEARCHES:
            try:
                _workers.submit(lambda: self.copy(identity, state.chunks))
            except Rejected:
                self._searches.clear()

    def copy(self, identity: Identity, chunks: int) -> None:
        """Copy the vectors, unless there is no room."""
        # float32, int8 and one bit for each dimension
        size = int(chunks * identity.dimensions * 5.125)
        if not _reserve(size):
            return
        try:
            with self._database.snapshot() as connection:
                copy = read_copy(connection, self._index, identity, self._read_state())
        except StoreError as error:
            log.info("the vectors of %s are not copied: %s", self._index, error)
            _reserve(-size)
            self._searches.clear()
            return
        with self._mutex:
            self._copies[str(identity)] = copy, size

    def drop(self) -> None:
        """Release the memory. Later searches make a new copy."""
        with self._mutex:
            for _, size in self._copies.values():
                _reserve(-size)
            self._copies.clear()
            self._searches.clear()


def read_copy(connection: PostgresConnection, index: str, identity: Identity, state: State) -> VectorCopy:
    """Copy the vectors that a snapshot sees."""
    parts, first = [], 0
    while found := connection.fetch(_ROWS, (index, str(identity), first, BLOCK_ROWS)):
        parts.append(decode(found, identity.dimensions))
        first = found[-1][0] + 1
    rows = np.concatenate([part[0] for part in parts] or [np.empty(0, dtype=np.int64)])
    empty = np.empty((0, identity.dimensions), dtype=np.float32)
    matrix = np.concatenate([part[1] for part in parts] or [empty])
    return VectorCopy(identity, rows, matrix, (state.chunks, state.next_row))


def decode(found: Sequence[tuple[int, Any]], dimensions: int) -> tuple[Rows, Vector]:
    """Return rows and their vectors at length 1, without those that have none."""
    size = 4 + 4 * dimensions
    whole = [row for row in found if row[1] is not None and len(row[1]) == size]
    rows = np.array([row[0] for row in whole], dtype=np.int64)
    joined = np.frombuffer(b"".join(bytes(row[1]) for row in whole), dtype=np.uint8)
    numbers = joined.reshape(-1, size)[:, 4:].copy().view(">f4")
    matrix = numbers.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    is_good = np.isfinite(lengths) & (lengths > 0)
    return rows[is_good], matrix[is_good] / lengths[is_good, None]
