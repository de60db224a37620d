"""The default engine: every vector is looked at, by numpy.

Below ``threshold`` rows all vectors are in memory as float32 and the answer is exact. Above it most are in side
files (``sidefiles``), and only the rows newer than the files are in memory. When the files are missing or not to
be trusted, all vectors are read from the database again: slower, never wrong.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np

from memoriter.errors import StoreLocked
from memoriter.records import Identity
from memoriter.store import cache
from memoriter.store.connection import store_lock
from memoriter.store.database import Database
from memoriter.store.keywords import Filter
from memoriter.store.vectors.nearest import allowed, blocks
from memoriter.store.vectors.sidefiles import (
    SideFiles,
    best,
    build,
    finite,
    open_files,
    positions,
    remove_others,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from memoriter.store.vectors import Rows, Vector

POINTER = "vectors"  #: the meta key that names the side files in force

_WHERE = f"""
    select (select value from meta where key = 'store'), (select value from meta where key = '{POINTER}'),
    (select max(rowid) from chunks)"""  # noqa: S608 - a constant


@dataclass(frozen=True, slots=True)
class Limits:
    """When the engine changes its ways."""

    threshold: int = 20_000  #: rows from which side files are kept
    tail_share: float = 0.05  #: of all rows, that may be newer than the files
    tail_rows: int = 5_000  #: that may always be newer
    dead_share: float = 0.2  #: of the rows held, that may be gone
    candidates: int = (
        16_000  #: rows that pass from the sign bits to int8: 4,000 found 93 % of ten in a million, these 99 %
    )
    rescored: int = 200  #: rows that pass from int8 to float32


LIMITS = Limits()


@dataclass(slots=True)
class _Tail:
    """Vectors in memory, appended in place: a view taken earlier stays as it was."""

    ids: Rows
    matrix: Vector
    count: int = 0

    def append(self, ids: Rows, matrix: Vector) -> None:
        end = self.count + len(ids)
        if end > len(self.ids):
            room = max(end, 2 * len(self.ids), 256)
            self.ids = _grown(self.ids, self.count, room)
            self.matrix = _grown(self.matrix, self.count, room)
        self.ids[self.count : end] = ids
        self.matrix[self.count : end] = matrix
        self.count = end

    def keep(self, rows: Rows) -> None:
        kept = np.isin(self.ids[: self.count], rows, assume_unique=True)
        self.ids, self.matrix = self.ids[: self.count][kept], self.matrix[: self.count][kept]
        self.count = len(self.ids)


@dataclass(slots=True)
class _State:
    """What this process holds of one index and one identity."""

    key: tuple[str, str | None, Identity]  #: which index.db, which side files, whose vectors
    files: SideFiles | None
    tail: _Tail
    last: int  #: the greatest rowid seen
    room: int = 1_000  #: rows in the tail from which the dead are dropped

    def views(self) -> tuple[SideFiles | None, Rows, Vector]:
        """What a search works on, unmoved by whatever is appended later."""
        return self.files, self.tail.ids[: self.tail.count], self.tail.matrix[: self.tail.count]


class Scan:
    """Looks at every vector. Threads may share one: what a search works on never changes under it."""

    def __init__(self, database: Database, folder: Path, limits: Limits | None = None) -> None:
        self._database = database
        self._folder = folder
        self._limits = limits or LIMITS
        self._lock = threading.Lock()
        self._state: _State | None = None

    def ready(self, identity: Identity) -> None:
        """Nothing to do: a search reads what is new by itself."""

    def follow(self, connection: apsw.Connection, identity: Identity) -> None:
        """Nothing to do: a search reads what is new by itself."""

    def search(
        self,
        connection: apsw.Connection,
        query: Vector,
        identity: Identity,
        *,
        limit: int,
        allow: Rows | None,
    ) -> list[tuple[int, float]]:
        """The nearest rows as (rowid, cosine), best first."""
        files, ids, matrix = self._held(connection, identity)
        found = [_exact(ids, matrix, query, limit, allow)]
        if files is not None:
            wide, narrow = self._limits.candidates, self._limits.rescored
            found.append(files.search(query, limit=limit, allow=allow, candidates=wide, rescored=narrow))
        rows = np.concatenate([part[0] for part in found])
        scores = np.concatenate([part[1] for part in found])
        order = np.lexsort((rows, -scores))[:limit]
        return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))

    def cosines(
        self, connection: apsw.Connection, query: Vector, identity: Identity, rows: Rows
    ) -> dict[int, float]:
        """How near these rows are, of those that have a vector: the cosine, 0 where it is negative."""
        files, ids, matrix = self._held(connection, identity)
        at = positions(ids, rows)
        found = _by_row(ids[at], _scores(matrix, query, at))
        if files is not None:
            at = positions(files.ids, rows)
            found |= _by_row(files.ids[at], files.full[at] @ query)
        return found

    # ---- what is in memory -----------------------------------------------------------------------------------

    def _held(self, connection: apsw.Connection, identity: Identity) -> tuple[SideFiles | None, Rows, Vector]:
        """Side files and, newer than they, vectors in memory; together every row that the connection sees."""
        if connection.txn_state() == apsw.SQLITE_TXN_WRITE:
            # Rows that are not committed may be rolled back, and their numbers given again: do not keep them.
            return self._caught_up(connection, self._fresh(connection, identity)).views()
        with self._lock:
            store, pointer, newest = _where(connection)
            state = self._state
            if state is None or state.key != (store, pointer, identity):
                state = self._fresh(connection, identity)
            if newest > state.last:
                state = self._caught_up(connection, state)
            self._state = state
            return state.views()

    def _fresh(self, connection: apsw.Connection, identity: Identity) -> _State:
        store, pointer, _ = _where(connection)
        files = open_files(self._folder, pointer, identity)
        tail = _Tail(np.empty(0, dtype=np.int64), np.empty((0, identity.dimensions), dtype=np.float32))
        return _State((store, pointer, identity), files, tail, last=files.max_rowid if files else 0)

    def _caught_up(self, connection: apsw.Connection, state: _State) -> _State:
        identity = state.key[2]
        rows: Any = connection.execute(cache.AFTER_ROW, (state.last, *cache.key_of(identity), str(identity)))
        for last, ids, matrix in blocks(rows, identity.dimensions):
            state.tail.append(ids, matrix)
            state.last = last
        if state.tail.count > state.room:
            # What is replaced comes back under new numbers: where rows have come, others have gone.
            self._compact(state, allowed(connection, identity, Filter()))
        return state

    def _compact(self, state: _State, live: Rows) -> None:
        state.tail.keep(live)
        state.room = int(state.tail.count * (1 + self._limits.dead_share)) + 1_000

    # ---- what is in files ------------------------------------------------------------------------------------

    def refresh(self, identity: Identity) -> None:
        """Rebuild the side files when too much has changed since; drop dead rows from memory."""
        with self._database.snapshot() as connection:
            rows = allowed(connection, identity, Filter())
            store, pointer, _ = _where(connection)
        if self._want_files(rows, open_files(self._folder, pointer, identity)):
            self._rebuild(identity)
        elif pointer is not None and len(rows) < self._limits.threshold / 2:
            self._point(None)
        with self._lock:
            if self._state is not None and self._state.key == (store, pointer, identity):
                self._compact(self._state, rows)

    def purge(self, identity: Identity) -> None:
        """Remove the side files and what is in memory; both are made again from what is left."""
        with self._lock:
            self._state = None
        self._point(None)
        self.refresh(identity)

    def _want_files(self, rows: Rows, files: SideFiles | None) -> bool:
        if len(rows) < self._limits.threshold:
            return False
        if files is None:
            return True
        newer = len(rows) - int(np.searchsorted(rows, files.max_rowid, side="right"))
        gone = files.count - (len(rows) - newer)
        enough = max(self._limits.tail_rows, self._limits.tail_share * len(rows))
        return newer > enough or gone > self._limits.dead_share * files.count

    def _rebuild(self, identity: Identity) -> None:
        with contextlib.suppress(StoreLocked), store_lock(self._folder, timeout_s=0):  # one builder is enough
            with self._database.snapshot() as connection:
                rows: Any = connection.execute(cache.AFTER_ROW, (0, *cache.key_of(identity), str(identity)))
                pointer = build(self._folder, blocks(rows, identity.dimensions), identity)
            self._point(pointer)

    def _point(self, pointer: str | None) -> None:
        """Put other files in force and remove the rest; whoever has those open keeps them."""
        with self._database.write() as connection:
            connection.execute("delete from meta where key = ?", (POINTER,))
            if pointer is not None:
                connection.execute("insert into meta(key, value) values(?, ?)", (POINTER, pointer))
        remove_others(self._folder, pointer)


def _where(connection: apsw.Connection) -> tuple[str, str | None, int]:
    """Which index this is, which side files are in force, and the newest row."""
    rows: Any = connection.execute(_WHERE).fetchall()
    store, pointer, newest = rows[0]
    return store or "", pointer, newest or 0


def _exact(ids: Rows, matrix: Vector, query: Vector, limit: int, allow: Rows | None) -> tuple[Rows, Vector]:
    if allow is None:
        return best(ids, matrix @ query, limit)
    at = positions(ids, allow)
    return best(ids[at], _scores(matrix, query, at), limit)


def _by_row(ids: Rows, scores: Vector) -> dict[int, float]:
    ids, scores = finite(ids, scores)
    return dict(zip(ids.tolist(), np.maximum(scores, 0).tolist(), strict=True))


def _scores(matrix: Vector, query: Vector, at: npt.NDArray[np.intp]) -> Vector:
    # Copying a row costs more than multiplying it: from a few rows on, multiply all.
    scores: Vector = matrix[at] @ query if len(at) < len(matrix) / 8 else (matrix @ query)[at]
    return scores


def _grown(array: np.ndarray, count: int, room: int) -> np.ndarray:
    larger = np.empty((room, *array.shape[1:]), dtype=array.dtype)
    larger[:count] = array[:count]
    return larger
