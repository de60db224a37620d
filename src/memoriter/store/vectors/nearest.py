"""Vector search over any engine, and what the engines share: encoding of vectors, and lists of allowed rows."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np

from memoriter.errors import StoreError
from memoriter.records import Identity
from memoriter.store.connection import value
from memoriter.store.database import Database
from memoriter.store.keywords import Filter

if TYPE_CHECKING:
    from memoriter.store.vectors import Rows, Vector, VectorIndex

# FTS5 keeps the length of every chunk, in a table so small that it stays in memory: few rows are looked up further.
_GONE = """
    select w.value from json_each(?) w
    where not exists (select 1 from chunks_fts_docsize d where d.id = w.value)
    and not exists (select 1 from chunks c where c.rowid = w.value)"""

SPARE = 50  #: rows asked for beyond the limit, since some may be gone


class Nearest:
    """Finds the live rows nearest to a vector."""

    def __init__(self, engine: VectorIndex, database: Database) -> None:
        self.engine = engine
        self._database = database
        self._lists = AllowLists()

    def search(
        self, vector: Vector, identity: Identity, *, limit: int, where: Filter
    ) -> list[tuple[int, float]]:
        """The nearest rows that pass the filter, as (rowid, cosine), best first."""
        query = unit(vector, identity.dimensions)
        if query is None or limit <= 0:
            return []
        self.engine.ready(identity)
        wanted = limit + SPARE
        with self._database.snapshot() as connection:
            filtered = where.source is not None or bool(where.path_prefix)
            allow = self._lists.rows(connection, identity, where) if filtered else None
            found = self.engine.search(connection, query, identity, limit=wanted, allow=allow)
            gone = _gone(connection, [row for row, _ in found])
            alive = [hit for hit in found if hit[0] not in gone] if gone else found
            if len(alive) < limit and len(found) == wanted:
                # More rows have gone than there were to spare: ask again, among the living.
                allow = allowed(connection, identity, where)
                return self.engine.search(connection, query, identity, limit=limit, allow=allow)
            return alive[:limit]

    def cosines(self, rowids: Iterable[int], vector: Vector, identity: Identity) -> dict[int, float]:
        """How near these rows are, of those that have a vector: the cosine, 0 where it is negative."""
        query = unit(vector, identity.dimensions)
        rows = np.sort(np.fromiter(set(rowids), dtype=np.int64))
        if query is None or not len(rows):
            return {}
        self.engine.ready(identity)
        with self._database.snapshot() as connection:
            return self.engine.cosines(connection, query, identity, rows)


def _gone(connection: apsw.Connection, rows: list[int]) -> set[int]:
    """Those of the rows that are no longer there."""
    found: Any = connection.execute(_GONE, (json.dumps(rows),))
    return {row[0] for row in found}


# ---- encoding -----------------------------------------------------------------------------------------------------

BLOCK = 4096  #: rows that are decoded at once


def encode(vector: Vector, dimensions: int) -> bytes:
    """A vector as it is stored: float32, little-endian."""
    values = np.asarray(vector, dtype="<f4")
    if values.shape != (dimensions,):
        raise StoreError(f"a vector of shape {values.shape} cannot be kept where {dimensions} dimensions are")
    if not np.isfinite(values).all():
        raise StoreError("a vector with NaN or infinity cannot be kept")
    return (values + np.float32(0)).tobytes()  # -0.0 becomes 0.0, so that a zero vector has one form


def decode(blob: bytes) -> Vector:
    """A stored vector."""
    return np.frombuffer(blob, dtype="<f4").astype(np.float32, copy=False)


def unit(vector: Vector, dimensions: int) -> Vector | None:
    """The vector at length 1; None when it points nowhere."""
    values = np.asarray(vector, dtype=np.float32)
    if values.shape != (dimensions,):
        raise StoreError(f"a query of shape {values.shape} cannot be compared with {dimensions} dimensions")
    length = float(np.linalg.norm(values))
    return values / np.float32(length) if np.isfinite(length) and length > 0 else None


def blocks(rows: Iterable[tuple[int, bytes]], dimensions: int) -> Iterator[tuple[int, Rows, Vector]]:
    """Rows of (rowid, blob) as (last rowid, rowids, matrix); vectors that point nowhere are left out."""
    wanted = dimensions * 4
    source = iter(rows)
    while taken := list(islice(source, BLOCK)):
        whole = [row for row in taken if len(row[1]) == wanted]
        ids = np.fromiter((row[0] for row in whole), dtype=np.int64, count=len(whole))
        matrix = np.frombuffer(b"".join(row[1] for row in whole), dtype="<f4").reshape(-1, dimensions)
        lengths = np.einsum("ij,ij->i", matrix, matrix)
        good = np.isfinite(lengths) & (lengths > 0)
        yield taken[-1][0], ids[good], matrix[good].astype(np.float32, copy=False)


# ---- filters ------------------------------------------------------------------------------------------------------

KEPT = 8  #: lists; one of a million rows is 8 MB


class AllowLists:
    """The lists of the last filters, kept until a row comes. Rows that have gone since may still be in them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, int, Identity, Filter], Rows] = {}

    def rows(self, connection: apsw.Connection, identity: Identity, where: Filter) -> Rows:
        """The rows with a vector of this identity that pass the filter."""
        if connection.txn_state() == apsw.SQLITE_TXN_WRITE:
            return allowed(connection, identity, where)  # rows that may be rolled back are not for keeping
        store = value(connection, "select value from meta where key = 'store'")
        newest = value(connection, "select coalesce(max(rowid), 0) from chunks")
        key = (store, newest, identity, where)
        with self._lock:
            found = self._kept.pop(key, None)
            if found is None:
                found = allowed(connection, identity, where)
            self._kept[key] = found  # the last used stands last
            while len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
            return found


def allowed(connection: apsw.Connection, identity: Identity, where: Filter) -> Rows:
    """The rows with a vector of this identity that pass the filter now."""
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
    # One text of all numbers: a third of the cost of a Python object for each row.
    statement = f"select group_concat(rowid, ' ') from chunks where {' and '.join(clauses)}"  # noqa: S608 - constants
    numbers = value(connection, statement, tuple(bound)) or ""
    return np.sort(np.fromstring(numbers, dtype=np.int64, sep=" "))


def after_prefix(prefix: str) -> str | None:
    """The first text after all that begin with the prefix, by code points; None when there is none."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(0xE000 if following == 0xD800 else following)  # surrogates are no text
