"""The engine inside the database: sqlite-vec's ``chunks_vec``, which takes part in every transaction.

The table holds one identity's vectors, copied from the embedding cache. ``meta`` says whose they are and how far
they have followed the chunks, so that rows written under another engine are caught up with.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from memoriter.errors import StoreError
from memoriter.records import Identity
from memoriter.store import cache
from memoriter.store.connection import value
from memoriter.store.database import Database

if TYPE_CHECKING:
    from memoriter.store.vectors import Rows, Vector

POINTER = "chunks_vec"  #: the meta key that says whose vectors the table holds, and up to which row
MAX_K = 4096  #: of one KNN query in sqlite-vec
DEAD_SHARE = 0.2  #: of the rows, above which the table is made anew: single deletions leave holes

_FILL = f"insert into chunks_vec(rowid, embedding) select rowid, vector from ({cache.AFTER_ROW}) where vector <> ?"  # noqa: S608 - a constant

_DEAD = "select rowid from chunks_vec_rowids where rowid not in (select rowid from chunks)"


class SqliteVec:
    """Nearest vectors by vec0's own scan."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ready(self, identity: Identity) -> None:
        """Catch up with chunks that came while another engine was in use."""
        with self._database.snapshot() as connection:
            last = _followed(connection, identity)
            behind = (
                last is None
                or connection.execute(
                    "select 1 from chunks where rowid > ? and model = ? limit 1", (last, str(identity))
                ).fetchall()
            )
        if behind:
            with self._database.write() as connection:
                self.follow(connection, identity)

    def follow(self, connection: apsw.Connection, identity: Identity) -> None:
        """Copy the vectors of rows that are new; begin anew when the table holds another identity's."""
        last = _followed(connection, identity)
        if last is None:
            connection.execute("drop table if exists chunks_vec")
            connection.execute(
                f"create virtual table chunks_vec using vec0(embedding float[{identity.dimensions:d}]"
                " distance_metric=cosine)"
            )
        nothing = bytes(4 * identity.dimensions)
        connection.execute(_FILL, (last or 0, *cache.key_of(identity), str(identity), nothing))
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
        """The nearest rows as (rowid, cosine), best first."""
        if _followed(connection, identity) is None:
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
        """How near these rows are, of those that have a vector: the cosine, 0 where it is negative."""
        found = self.search(connection, query, identity, limit=len(rows), allow=rows)
        return {row: max(0.0, cosine) for row, cosine in found}

    def refresh(self, identity: Identity) -> None:
        """Drop the vectors of chunks that are gone."""
        self.ready(identity)
        with self._database.write() as connection:
            dead = connection.execute(_DEAD).fetchall()
            held = value(connection, "select count(*) from chunks_vec_rowids")
            if len(dead) > DEAD_SHARE * held:
                connection.execute("delete from meta where key = ?", (POINTER,))
                self.follow(connection, identity)
            else:
                connection.executemany("delete from chunks_vec where rowid = ?", dead)

    def purge(self, identity: Identity) -> None:
        """Drop them: the database overwrites what it deletes."""
        self.refresh(identity)


def _followed(connection: apsw.Connection, identity: Identity) -> int | None:
    """The last row that the table has taken in; None when it is not there, or holds another's vectors."""
    pointer = value(connection, "select value from meta where key = ?", (POINTER,))
    if pointer is None:
        return None
    *key, last = json.loads(pointer)
    return int(last) if tuple(key) == cache.key_of(identity) else None


def load_vec0(connection: apsw.Connection) -> None:
    """Give a connection the vec0 tables. Extensions can be loaded during this call only."""
    library = _library()
    connection.enable_load_extension(True)
    try:
        connection.load_extension(library)
    except apsw.ExtensionLoadingError as error:
        raise StoreError(f"sqlite-vec cannot be loaded ({error}); use the vector engine 'scan'") from error
    finally:
        connection.enable_load_extension(False)


def _library() -> str:
    # Importing sqlite_vec would import numpy with it; only its place is wanted.
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or spec.origin is None:
        raise StoreError("the vector engine sqlite-vec is not installed: pip install 'memoriter[sqlite-vec]'")
    return str(Path(spec.origin).parent / "vec0")
