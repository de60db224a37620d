"""One search over any engine: the query is made fit, filters become a list of rows, dead rows are dropped."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import apsw
import numpy as np

from recollect.records import Identity
from recollect.store.connection import value
from recollect.store.database import Database
from recollect.store.keywords import Filter
from recollect.store.vectors import VectorIndex, codec

if TYPE_CHECKING:
    from recollect.store.vectors import Rows, Vector

SPARE = 50  #: rows asked for beyond the limit, since some may be gone


def nearest(
    engine: VectorIndex, database: Database, vector: Vector, identity: Identity, *, limit: int, where: Filter
) -> list[tuple[int, float]]:
    """The live rows nearest to the vector, as (rowid, cosine), best first."""
    query = codec.unit(vector, identity.dimensions)
    if query is None or limit <= 0:
        return []
    engine.ready(identity)
    with database.snapshot() as connection:
        if where.source is not None or where.path_prefix:
            allow = allowed(connection, identity, where)
            return engine.search(connection, query, identity, limit=limit, allow=allow)
        found = engine.search(connection, query, identity, limit=limit + SPARE, allow=None)
        alive = _alive(connection, found)
        if len(alive) < limit and len(found) == limit + SPARE:
            # More rows have gone than we had to spare: ask again among the living.
            allow = allowed(connection, identity, where)
            return engine.search(connection, query, identity, limit=limit, allow=allow)
        return alive[:limit]


def allowed(connection: apsw.Connection, identity: Identity, where: Filter) -> Rows:
    """The rows with a vector of this identity that pass the filter."""
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
    # One text of all numbers: a tenth of the cost of a Python object for each row.
    statement = f"select group_concat(rowid, ' ') from chunks where {' and '.join(clauses)}"  # noqa: S608 - constants
    numbers = value(connection, statement, tuple(bound)) or ""
    return np.sort(np.array(numbers.split(), dtype=np.int64))


def after_prefix(prefix: str) -> str | None:
    """The first text after all that begin with the prefix, by code points; None when there is none."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(0xE000 if following == 0xD800 else following)  # surrogates are no text


def _alive(connection: apsw.Connection, found: list[tuple[int, float]]) -> list[tuple[int, float]]:
    statement = "select c.rowid from json_each(?) w cross join chunks c on c.rowid = w.value"
    rows = connection.execute(statement, (json.dumps([rowid for rowid, _ in found]),))
    alive = {row[0] for row in rows}
    return [hit for hit in found if hit[0] in alive]
