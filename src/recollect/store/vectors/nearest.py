"""One search over any engine: the query is made fit, filters become a list of rows, dead rows are dropped."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import apsw
import numpy as np

from recollect.records import Identity
from recollect.store.database import Database
from recollect.store.keywords import Filter
from recollect.store.vectors import VectorIndex, codec
from recollect.store.vectors.allowed import AllowLists, allowed

if TYPE_CHECKING:
    from recollect.store.vectors import Vector

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
            alive = _alive(connection, found)
            if len(alive) < limit and len(found) == wanted:
                # More rows have gone than there were to spare: ask again, among the living.
                allow = allowed(connection, identity, where)
                return self.engine.search(connection, query, identity, limit=limit, allow=allow)
            return alive[:limit]

    def cosines(self, rowids: Iterable[int], vector: Vector, identity: Identity) -> dict[int, float]:
        """The nearness of these rows, of those that have a vector."""
        query = codec.unit(vector, identity.dimensions)
        rows = np.unique(np.fromiter(rowids, dtype=np.int64))
        if query is None or not len(rows):
            return {}
        self.engine.ready(identity)
        with self._database.snapshot() as connection:
            return dict(self.engine.search(connection, query, identity, limit=len(rows), allow=rows))


def _alive(connection: apsw.Connection, found: list[tuple[int, float]]) -> list[tuple[int, float]]:
    statement = "select c.rowid from json_each(?) w cross join chunks c on c.rowid = w.value"
    rows = connection.execute(statement, (json.dumps([rowid for rowid, _ in found]),))
    alive = {row[0] for row in rows}
    return [hit for hit in found if hit[0] in alive]
