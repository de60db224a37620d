"""One search over any engine: the query is made fit, filters become a list of rows, dead rows are dropped."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np

from memoriter.records import Identity
from memoriter.store.database import Database
from memoriter.store.keywords import Filter
from memoriter.store.vectors import VectorIndex, codec
from memoriter.store.vectors.allowed import AllowLists, allowed

if TYPE_CHECKING:
    from memoriter.store.vectors import Vector

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
        query = codec.unit(vector, identity.dimensions)
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
        query = codec.unit(vector, identity.dimensions)
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
