"""The default engine: numpy compares every vector.

Below ``threshold`` rows all vectors are in memory as float32, and the result is exact. Above it most are in side
files (``sidefiles``), and only rows newer than the files are in memory. If the files are missing or invalid, all
vectors are read from the database, which is slower but correct.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np

from memoriter.errors import StoreLocked, StoreUnavailable
from memoriter.records import Identity
from memoriter.store import cache
from memoriter.store.connection import store_lock
from memoriter.store.database import Database
from memoriter.store.documents import COUNT_WITHOUT
from memoriter.store.protocol import Filter, SnapshotValue, row_set, value
from memoriter.store.vectors.nearest import (
    VectorIndex,
    allowed_rows,
    best,
    blocks,
    plausible_rows,
    positions,
    products,
)
from memoriter.store.vectors.sidefiles import SideFiles, build, open_files, remove_others

if TYPE_CHECKING:
    import numpy.typing as npt

    from memoriter.store.vectors import Rows, Vector

#: The meta key that names the current side files.
POINTER = "vectors"


@dataclass(frozen=True, slots=True)
class ScanLimits:
    """Limits at which the engine uses, rebuilds and narrows its files."""

    #: Side files are used from this many rows on.
    threshold: int = 20_000
    #: The share of all rows that may be newer than the files.
    tail_share: float = 0.05
    #: This many rows may always be newer.
    tail_rows: int = 5_000
    #: The share of the rows in the files that may be deleted.
    dead_share: float = 0.2
    #: Rows that pass the first stage, of which half reach int8. With 16,000 and a quarter of them, 97 % of the best ten
    #: in a million rows were found; with these, 99 %.
    candidates: int = 20_000
    #: Rows that pass from int8 to float32.
    rescored: int = 200


LIMITS = ScanLimits()


@dataclass(slots=True)
class _Tail:
    """Vectors in memory, appended in place, so that earlier views stay valid."""

    ids: Rows
    matrix: Vector
    count: int = 0
    _view: tuple[Rows, Vector] | None = None

    def view(self) -> tuple[Rows, Vector]:
        """Return the rows, the same arrays until they change."""
        if self._view is None:
            self._view = self.ids[: self.count], self.matrix[: self.count]
        return self._view

    def append(self, ids: Rows, matrix: Vector) -> None:
        end = self.count + len(ids)
        if end > len(self.ids):
            room = max(end, 2 * len(self.ids), 256)
            self.ids = _grown(self.ids, self.count, room)
            self.matrix = _grown(self.matrix, self.count, room)
        self.ids[self.count : end] = ids
        self.matrix[self.count : end] = matrix
        self.count, self._view = end, None

    def keep(self, rows: Rows) -> None:
        kept = np.isin(self.ids[: self.count], rows, assume_unique=True)
        self.ids, self.matrix = self.ids[: self.count][kept], self.matrix[: self.count][kept]
        self.count, self._view = len(self.ids), None


@dataclass(slots=True)
class _State:
    """The vectors of one index and one identity in this process."""

    #: The index.db, the side files and the embedder.
    key: tuple[str, str | None, Identity]
    files: SideFiles | None
    tail: _Tail
    #: The greatest rowid seen.
    last: int
    #: Deleted rows are dropped when the tail has more rows than this.
    room: int = 1_000
    #: The newest row and the number of rows of the index in which no row of these vectors is deleted. Rows get new
    #: numbers, so no other rows have the same two.
    sound_in: tuple[int, int] | None = None

    @property
    def count(self) -> int:
        """The number of rows, including deleted ones."""
        return self.tail.count + (self.files.count if self.files else 0)

    def views(self) -> tuple[SideFiles | None, Rows, Vector]:
        """Return what a search reads. Later appends do not change it."""
        return self.files, *self.tail.view()


class VectorScan(VectorIndex):
    """Compares every vector. Threads can share one, since the data of a search never changes."""

    def __init__(self, database: Database, folder: Path, limits: ScanLimits | None = None) -> None:
        self._database = database
        self._folder = folder
        self._limits = limits or LIMITS
        self._lock = threading.Lock()
        self._state: _State | None = None
        #: The last query, the rows in memory, and all their scores.
        self._scored: tuple[Vector, Rows, Vector] | None = None

    def search(
        self,
        connection: apsw.Connection,
        query: Vector,
        identity: Identity,
        *,
        limit: int,
        allow: Rows | None,
    ) -> list[tuple[int, float]]:
        files, ids, matrix = self._load(connection, identity)
        if allow is None:
            scores = products(matrix, query)
            self._scored = (query, ids, scores)
            near = best(ids, scores, limit)
        else:
            at = positions(ids, allow)
            near = best(ids[at], _scores(matrix, query, at), limit)
        if files is None:
            return _ordered(*near)
        wide, last = self._limits.candidates, self._limits.rescored
        far = files.search(query, limit=limit, allow=allow, candidates=wide, rescored=last)
        return _ordered(np.concatenate([near[0], far[0]]), np.concatenate([near[1], far[1]]))[:limit]

    def cosines(
        self, connection: apsw.Connection, query: Vector, identity: Identity, rows: Rows
    ) -> dict[int, float]:
        files, ids, matrix = self._load(connection, identity)
        at = positions(ids, rows)
        scored = self._scored
        known = scored is not None and scored[0] is query and scored[1] is ids
        found = _by_row(ids[at], scored[2][at] if scored and known else _scores(matrix, query, at))
        if files is not None:
            at = positions(files.ids, rows)
            found |= _by_row(files.ids[at], products(files.full[at], query))
        return found

    def sound_until(self, connection: apsw.Connection, identity: Identity) -> int:
        """Return the newest row if no row of the vectors was deleted, else 0.

        Rows that another thread adds meanwhile have greater numbers.
        """
        if connection.txn_state() == apsw.SQLITE_TXN_WRITE:
            return 0
        self._load(connection, identity)
        with self._lock:
            state = self._state
            store, pointer, newest, total = _state_of(connection)
            if state is None or state.key != (store, pointer, identity) or state.last > newest:
                return 0
            if state.sound_in != (newest, total):
                living = total - int(value(connection, COUNT_WITHOUT, (str(identity),)))
                state.sound_in = (newest, total) if state.count == living else None
            return newest if state.sound_in else 0

    # ---- memory ----------------------------------------------------------------------------------------------

    def _load(self, connection: apsw.Connection, identity: Identity) -> tuple[SideFiles | None, Rows, Vector]:
        """Return the side files and the newer vectors in memory: together every row that the connection sees."""
        if connection.txn_state() == apsw.SQLITE_TXN_WRITE:
            # Uncommitted rows may be rolled back and their numbers reused, so they are not kept.
            return self._catch_up(connection, self._open(connection, identity)).views()
        with self._lock:
            store, pointer, newest, _ = _state_of(connection)
            state = self._state
            if state is None or state.key != (store, pointer, identity):
                state = self._open(connection, identity)
            if newest > state.last:
                state = self._catch_up(connection, state)
            self._state = state
            return state.views()

    def _open(self, connection: apsw.Connection, identity: Identity) -> _State:
        store, pointer, *_ = _state_of(connection)
        files = open_files(self._folder, pointer, identity)
        tail = _Tail(np.empty(0, dtype=np.int64), np.empty((0, identity.dimensions), dtype=np.float32))
        return _State((store, pointer, identity), files, tail, last=files.max_rowid if files else 0)

    def _catch_up(self, connection: apsw.Connection, state: _State) -> _State:
        identity = state.key[2]
        rows: Any = connection.execute(cache.AFTER_ROW, (state.last, *cache.key_of(identity), str(identity)))
        for last, ids, matrix in blocks(rows, identity.dimensions):
            state.tail.append(ids, matrix)
            state.last = last
        if state.tail.count > state.room:
            # Replaced rows get new numbers, so where rows were added, others were deleted.
            self._compact(state, allowed_rows(connection, identity, Filter()))
        return state

    def _compact(self, state: _State, live: Rows) -> None:
        state.tail.keep(live)
        state.room = int(state.tail.count * (1 + self._limits.dead_share)) + 1_000

    # ---- files -----------------------------------------------------------------------------------------------

    def refresh(self, identity: Identity) -> None:
        """Rebuild the side files if too much has changed, and drop deleted rows from memory."""
        with self._database.snapshot() as connection:
            rows = allowed_rows(connection, identity, Filter())
            store, pointer, *_ = _state_of(connection)
        if self._needs_files(rows, open_files(self._folder, pointer, identity)):
            self._rebuild(identity)
        elif pointer is not None and len(rows) < self._limits.threshold / 2:
            self._point(None)
        with self._lock:
            if self._state is not None and self._state.key == (store, pointer, identity):
                self._compact(self._state, rows)

    def purge(self, identity: Identity) -> None:
        """Delete the side files and the vectors in memory. Both are rebuilt from the existing rows."""
        self._point(None)
        if not remove_others(self._folder, None):
            raise StoreUnavailable("Another process has old files of vectors open.")
        self.refresh(identity)

    def _needs_files(self, rows: Rows, files: SideFiles | None) -> bool:
        if len(rows) < self._limits.threshold:
            return False
        if files is None:
            return True
        newer = len(rows) - int(np.searchsorted(rows, files.max_rowid, side="right"))
        deleted = files.count - (len(rows) - newer)
        max_newer = max(self._limits.tail_rows, self._limits.tail_share * len(rows))
        return newer > max_newer or deleted > self._limits.dead_share * files.count

    def _rebuild(self, identity: Identity) -> None:
        with (
            contextlib.suppress(StoreLocked),
            store_lock(self._folder, timeout_s=0),
        ):  # another process is building
            with self._database.snapshot() as connection:
                rows: Any = connection.execute(cache.AFTER_ROW, (0, *cache.key_of(identity), str(identity)))
                pointer = build(self._folder, blocks(rows, identity.dimensions), identity)
            self._point(pointer)

    def _point(self, pointer: str | None) -> None:
        """Switch to other files and delete the old ones. Processes that have them open can still read them."""
        with self._database.write() as connection:
            connection.execute("delete from meta where key = ?", (POINTER,))
            if pointer is not None:
                connection.execute("insert into meta(key, value) values(?, ?)", (POINTER, pointer))
        with self._lock:
            self._state = None
        remove_others(self._folder, pointer)


def _read_state(connection: apsw.Connection) -> tuple[str, str | None, int, int]:
    store, newest, total = row_set(connection)
    return store or "", value(connection, "select value from meta where key = ?", (POINTER,)), newest, total


_states = SnapshotValue(_read_state)


def _state_of(connection: apsw.Connection) -> tuple[str, str | None, int, int]:
    """Return the id of the index, the pointer to its side files, its newest row and the number of rows."""
    return _states.of(connection)


def _ordered(rows: Rows, scores: Vector) -> list[tuple[int, float]]:
    order = np.lexsort((rows, -scores))
    return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))


def _by_row(ids: Rows, scores: Vector) -> dict[int, float]:
    ids, scores = plausible_rows(ids, scores)
    return dict(zip(ids.tolist(), np.maximum(scores, 0).tolist(), strict=True))


def _scores(matrix: Vector, query: Vector, at: npt.NDArray[np.intp]) -> Vector:
    # Copying a row costs more than multiplying it, so from an eighth of the rows on all are multiplied.
    few = len(at) < len(matrix) / 8
    return products(matrix[at], query) if few else products(matrix, query)[at]


def _grown(array: np.ndarray, count: int, room: int) -> np.ndarray:
    larger = np.empty((room, *array.shape[1:]), dtype=array.dtype)
    larger[:count] = array[:count]
    return larger
