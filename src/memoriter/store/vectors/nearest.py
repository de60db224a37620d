"""What a vector engine is, vector search over any of them, and what they share: arithmetic, encoding, allowed rows."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import apsw
import numpy as np

from memoriter.errors import StoreError
from memoriter.records import Identity
from memoriter.store.database import Database
from memoriter.store.protocol import Filter, value

if TYPE_CHECKING:
    import numpy.typing as npt

    from memoriter.store.vectors import Rows, Vector

# FTS5 stores the length of every chunk in a small table that stays in memory, so few rows need the second lookup.
# For 250 rows of 100,000 that takes 0.26 ms instead of 0.82 ms.
_DELETED = """
    select w.value from json_each(?) w
    where not exists (select 1 from chunks_fts_docsize d where d.id = w.value)
    and not exists (select 1 from chunks c where c.rowid = w.value)"""

#: Largest cosine that rounding can produce.
MAX_COSINE = 1.01
#: Rows requested beyond the limit, since some may be deleted.
SPARE_ROWS = 50


class VectorIndex(Protocol):
    """Finds the rows whose vectors are nearest to a query. An engine that inherits it implements what it needs."""

    @property
    def problem(self) -> str | None:
        """The reason why the engine does not work as intended, in a sentence."""
        return None

    def ready(self, identity: Identity) -> None:
        """Prepare for a search with this identity."""
        del identity

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
        del connection, identity
        return 0

    def follow(self, connection: apsw.Connection, identity: Identity) -> None:
        """Add new rows, inside the write transaction that has inserted them."""
        del connection, identity

    def refresh(self, identity: Identity) -> None:
        """Delete removed rows and tidy the files or tables of the engine, after a sync."""

    def purge(self, identity: Identity) -> None:
        """Erase every byte of vectors of deleted rows, in all files, tables and older versions.

        Raises `StoreUnavailable` if the vectors are on another machine that does not answer.
        """
        self.refresh(identity)

    def close(self) -> None:
        """Close connections and files outside the database."""
        return


class Nearest:
    """Finds the existing rows nearest to a vector."""

    def __init__(self, engine: VectorIndex, database: Database) -> None:
        self.engine = engine
        self._database = database
        self._lists = AllowLists()
        #: The last vector and its form at length 1: a search asks for the nearest rows, and then for cosines of others.
        self._last: tuple[Vector, Vector] | None = None

    def search(
        self, vector: Vector, identity: Identity, *, limit: int, where: Filter
    ) -> list[tuple[int, float]]:
        """Return the nearest rows that pass the filter, as (rowid, cosine), best first."""
        query = self._unit(vector, identity.dimensions)
        if query is None or limit <= 0:
            return []
        self.engine.ready(identity)
        wanted = limit + SPARE_ROWS
        with self._database.snapshot() as connection:
            filtered = where.source is not None or bool(where.path_prefix)
            allow = self._lists.rows(connection, identity, where) if filtered else None
            sound = self.engine.sound_until(connection, identity)
            found = self.engine.search(connection, query, identity, limit=wanted, allow=allow)
            unsure = [row for row, _ in found if row > sound]
            deleted = _find_deleted(connection, unsure) if unsure else ()
            alive = plausible(found)
            if deleted:
                alive = [pair for pair in alive if pair[0] not in deleted]
            if len(alive) < limit and len(found) == wanted:
                # More rows are deleted than were spare: search again among the existing ones.
                allow = allowed_rows(connection, identity, where)
                found = self.engine.search(connection, query, identity, limit=limit, allow=allow)
                return plausible(found)
            return alive[:limit]

    def cosines(self, rowids: Iterable[int], vector: Vector, identity: Identity) -> dict[int, float]:
        """Return the cosines of these rows, at least 0. Rows without a vector are left out."""
        query = self._unit(vector, identity.dimensions)
        rows = np.fromiter(set(rowids), dtype=np.int64)
        rows.sort()
        if query is None or not len(rows):
            return {}
        self.engine.ready(identity)
        with self._database.snapshot() as connection:
            found = self.engine.cosines(connection, query, identity, rows)
            cosines = found.values()
            # The sum of cosines with a NaN is NaN, which is not at least 0.
            if sum(cosines) >= 0.0 and min(cosines, default=0.0) >= 0.0 and max(cosines, default=0.0) <= 1.0:
                return found
            return dict(plausible(list(found.items())))

    def _unit(self, vector: Vector, dimensions: int) -> Vector | None:
        last = self._last
        if last is not None and last[0] is vector and len(vector) == dimensions:
            return last[1]
        query = unit(vector, dimensions)
        if query is not None and isinstance(vector, np.ndarray) and not vector.flags.writeable:
            self._last = (vector, query)
        return query


def plausible(found: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return the rows whose cosines are possible. Damaged vectors have others, which must not outweigh keywords."""
    certain = [pair for pair in found if -1.0 <= pair[1] <= 1.0]
    if len(certain) == len(found):
        return found
    # Rounding goes a little beyond 1. The comparison is false for NaN.
    return [(row, max(-1.0, min(1.0, cosine))) for row, cosine in found if abs(cosine) <= MAX_COSINE]


def _find_deleted(connection: apsw.Connection, rows: list[int]) -> set[int]:
    """Return the rows that no longer exist."""
    found: Any = connection.execute(_DELETED, (json.dumps(rows),))
    return {row[0] for row in found}


# ---- arithmetic ----------------------------------------------------------------------------------------------------

#: Numbers that are multiplied together. For more, the BLAS library starts threads, which cost a busy machine ten times
#: the time of the work.
PRODUCT_BLOCK = 2**18


def positions(ids: Rows, allow: Rows) -> npt.NDArray[np.intp]:
    """Return the positions of the allowed rows in ``ids``. Both ascend."""
    if not len(ids):
        return np.empty(0, dtype=np.intp)
    at: npt.NDArray[np.intp] = np.searchsorted(ids, allow)
    at[at == len(ids)] = 0
    present: npt.NDArray[np.intp] = at[ids[at] == allow]
    return present


def best(ids: Rows, scores: Vector, limit: int) -> tuple[Rows, Vector]:
    """Return the rows with the largest scores, unordered."""
    ids, scores = plausible_rows(ids, scores)
    top = largest(scores, limit)
    return ids[top], scores[top]


def products(matrix: Vector, query: Vector) -> Vector:
    """Multiply rows with a query. Damaged rows may overflow."""
    rows = max(1, PRODUCT_BLOCK // max(1, len(query)))
    scores = np.empty(len(matrix), dtype=np.float32)
    with np.errstate(all="ignore"):
        for start in range(0, len(matrix), rows):
            scores[start : start + rows] = matrix[start : start + rows] @ query
    return scores


def plausible_rows(ids: Rows, scores: Vector) -> tuple[Rows, Vector]:
    """Return the rows whose scores are possible. Those of damaged vectors are not finite, or beyond 1."""
    good = np.abs(scores) <= MAX_COSINE
    return (ids, scores) if good.all() else (ids[good], scores[good])


def largest(scores: Vector, wanted: int) -> npt.NDArray[np.intp]:
    """Return the positions of the largest scores."""
    if len(scores) <= wanted:
        return np.arange(len(scores))
    order: npt.NDArray[np.intp] = np.argpartition(scores, len(scores) - wanted)
    return order[len(scores) - wanted :]


# ---- encoding -----------------------------------------------------------------------------------------------------

#: How many rows are decoded together.
BLOCK_ROWS = 4096


def encode(vector: Vector, dimensions: int) -> bytes:
    """Return the stored form of a vector: float32, little-endian."""
    values = np.asarray(vector, dtype="<f4")
    if values.shape != (dimensions,):
        raise StoreError(f"A vector of shape {values.shape} does not have {dimensions} dimensions.")
    if not np.isfinite(values).all():
        raise StoreError("A vector contains NaN or infinity.")
    return (values + np.float32(0)).tobytes()  # -0.0 becomes 0.0, so that a zero vector has one stored form


def decode(blob: bytes) -> Vector:
    """Return the vector of a stored form."""
    return np.frombuffer(blob, dtype="<f4").astype(np.float32, copy=False)


def unit(vector: Vector, dimensions: int) -> Vector | None:
    """Return the vector at length 1, or None for a zero vector."""
    values = np.asarray(vector, dtype=np.float32)
    if values.shape != (dimensions,):
        raise StoreError(f"A query of shape {values.shape} does not have {dimensions} dimensions.")
    length = float(np.linalg.norm(values))
    return values / np.float32(length) if np.isfinite(length) and length > 0 else None


def blocks(rows: Iterable[tuple[int, bytes]], dimensions: int) -> Iterator[tuple[int, Rows, Vector]]:
    """Yield rows of (rowid, blob) as (last rowid, rowids, matrix), without zero vectors."""
    wanted = dimensions * 4
    source = iter(rows)
    while taken := list(islice(source, BLOCK_ROWS)):
        whole = [row for row in taken if len(row[1]) == wanted]
        ids = np.fromiter((row[0] for row in whole), dtype=np.int64, count=len(whole))
        matrix = np.frombuffer(b"".join(row[1] for row in whole), dtype="<f4").reshape(-1, dimensions)
        lengths = np.einsum("ij,ij->i", matrix, matrix)
        good = np.isfinite(lengths) & (lengths > 0)
        yield taken[-1][0], ids[good], matrix[good].astype(np.float32, copy=False)


# ---- filters ------------------------------------------------------------------------------------------------------

#: One list of a million rows takes 8 MB.
MAX_LISTS = 8


class AllowLists:
    """The lists of recent filters, cached until a row is added. They may contain rows that were deleted since."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lists: dict[tuple[str, int, Identity, Filter], Rows] = {}

    def rows(self, connection: apsw.Connection, identity: Identity, where: Filter) -> Rows:
        """Return the rows with a vector of this identity that pass the filter."""
        if connection.txn_state() == apsw.SQLITE_TXN_WRITE:
            return allowed_rows(connection, identity, where)  # rows that may be rolled back are not cached
        store = value(connection, "select value from meta where key = 'store'")
        newest = value(connection, "select coalesce(max(rowid), 0) from chunks")
        key = (store, newest, identity, where)
        with self._lock:
            found = self._lists.pop(key, None)
            if found is None:
                found = allowed_rows(connection, identity, where)
            self._lists[key] = found  # most recently used last
            while len(self._lists) > MAX_LISTS:
                del self._lists[next(iter(self._lists))]
            return found


def allowed_rows(connection: apsw.Connection, identity: Identity, where: Filter) -> Rows:
    """Return the rows with a vector of this identity that pass the filter now."""
    bound: list[str] = [str(identity)]
    clauses = ["model = ?"]
    if where.path_prefix:
        clauses.append("path >= ?")
        bound.append(where.path_prefix)
        if (end := after_prefix(where.path_prefix)) is not None:
            clauses.append("path < ?")
            bound.append(end)
    if where.source is not None:
        clauses.append("source = ?")
        bound.append(where.source)
    # One text of all numbers costs a third of a Python object for each row.
    statement = f"select group_concat(rowid, ' ') from chunks where {' and '.join(clauses)}"  # noqa: S608 - constants
    numbers = value(connection, statement, tuple(bound)) or ""
    return np.sort(np.fromstring(numbers, dtype=np.int64, sep=" "))


def after_prefix(prefix: str) -> str | None:
    """Return the first text after all that start with the prefix, by code points, or None if there is none."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(0xE000 if following == 0xD800 else following)  # surrogates are not text
