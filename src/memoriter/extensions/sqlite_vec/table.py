"""The engine inside the database: the sqlite-vec table ``chunks_vec``, which is part of every transaction.

The table has the vectors of one identity, copied from the embedding cache. ``meta`` records the identity and the last
row, so that rows written with another engine are added later.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from memoriter.errors import StoreError, install_command
from memoriter.records import Identity
from memoriter.store import cache
from memoriter.store.database import Database
from memoriter.store.protocol import value
from memoriter.store.vectors import VectorEngine
from memoriter.store.vectors.nearest import VectorIndex

if TYPE_CHECKING:
    from memoriter.store.vectors import Rows, Vector

#: The meta key with the identity and the last row of the table.
POINTER = "chunks_vec"
#: The limit of a KNN query in sqlite-vec.
MAX_K = 4096
#: The table is rebuilt above this share of deleted rows, since single deletions leave holes.
DEAD_SHARE = 0.2

_FILL = f"insert into chunks_vec(rowid, embedding) select rowid, vector from ({cache.AFTER_ROW}) where vector <> ?"  # noqa: S608 - a constant

_DEAD = "select rowid from chunks_vec_rowids where rowid not in (select rowid from chunks)"


class SqliteVec(VectorIndex):
    """Finds the nearest vectors by the scan of vec0."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ready(self, identity: Identity) -> None:
        """Add chunks that were inserted while another engine was in use."""
        with self._database.snapshot() as connection:
            last = _last_row(connection, identity)
            is_stale = (
                last is None
                or connection.execute(
                    "select 1 from chunks where rowid > ? and model = ? limit 1", (last, str(identity))
                ).fetchall()
            )
        if is_stale:
            with self._database.write() as connection:
                self.follow(connection, identity)

    def follow(self, connection: apsw.Connection, identity: Identity) -> None:
        """Copy the vectors of new rows. Rebuild the table if it has those of another identity."""
        last = _last_row(connection, identity)
        if last is None:
            connection.execute("drop table if exists chunks_vec")
            connection.execute(
                f"create virtual table chunks_vec using vec0(embedding float[{identity.dimensions:d}]"
                " distance_metric=cosine)"
            )
        zero = bytes(4 * identity.dimensions)
        connection.execute(_FILL, (last or 0, *cache.key_of(identity), str(identity), zero))
        newest = value(connection, "select coalesce(max(rowid), 0) from chunks")
        pointer = json.dumps([*cache.key_of(identity), newest])
        connection.execute("insert or replace into meta(key, value) values(?, ?)", (POINTER, pointer))

    def search(
        self,
        connection: apsw.Connection,
        query: Vector,
        identity: Identity,
        *,
        limit: int,
        allow: Rows | None,
    ) -> list[tuple[int, float]]:
        if _last_row(connection, identity) is None:
            return []
        rows = None if allow is None else json.dumps(allow.tolist())
        among = "" if rows is None else " and rowid in (select value from json_each(:rows))"
        if limit <= MAX_K:
            statement = (
                f"select rowid, distance from chunks_vec where embedding match :query and k = :limit{among}"  # noqa: S608
            )
        else:
            statement = (
                "select rowid, vec_distance_cosine(embedding, :query) as distance from chunks_vec"  # noqa: S608
                f" where true{among} order by distance limit :limit"
            )
        bound = {"query": query.tobytes(), "limit": limit, "rows": rows}
        found = [(row, 1.0 - far) for row, far in connection.execute(statement, bound) if far is not None]
        return sorted(found, key=lambda hit: (-hit[1], hit[0]))

    def cosines(
        self, connection: apsw.Connection, query: Vector, identity: Identity, rows: Rows
    ) -> dict[int, float]:
        found = self.search(connection, query, identity, limit=len(rows), allow=rows)
        return {row: max(0.0, cosine) for row, cosine in found}

    def refresh(self, identity: Identity) -> None:
        """Delete the vectors of deleted chunks. The database overwrites what it deletes."""
        self.ready(identity)
        with self._database.write() as connection:
            dead = connection.execute(_DEAD).fetchall()
            held = value(connection, "select count(*) from chunks_vec_rowids")
            if len(dead) > DEAD_SHARE * held:
                connection.execute("delete from meta where key = ?", (POINTER,))
                self.follow(connection, identity)
            else:
                connection.executemany("delete from chunks_vec where rowid = ?", dead)


def _last_row(connection: apsw.Connection, identity: Identity) -> int | None:
    """Return the last row in the table, or None if there is no table for this identity."""
    pointer = value(connection, "select value from meta where key = ?", (POINTER,))
    if pointer is None:
        return None
    *key, last = json.loads(pointer)
    return int(last) if tuple(key) == cache.key_of(identity) else None


def load_vec0(connection: apsw.Connection) -> None:
    """Load vec0 into a connection. Extensions can be loaded only during this call."""
    library = _library()
    connection.enable_load_extension(True)
    try:
        connection.load_extension(library)
    except apsw.ExtensionLoadingError as error:
        raise StoreError(f"Cannot load sqlite-vec: {error}. Use the vector engine `scan`.") from error
    finally:
        connection.enable_load_extension(False)


def _library() -> str:
    # Importing sqlite_vec would import numpy, and only its path is needed.
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or spec.origin is None:
        raise StoreError(f"sqlite-vec is not installed. Run: {install_command('sqlite-vec')}")
    return str(Path(spec.origin).parent / "vec0")


engine = VectorEngine(
    open=lambda context: SqliteVec(context.database), label="sqlite-vec", on_connect=load_vec0
)
