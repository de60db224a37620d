"""Vectors on Postgres: each once, by its embedder and the hash of its text, as in the embedding cache of SQLite.

pgvector compares every vector of a small index. The vectors of a large index are also in a graph (HNSW) of half
precision, which proposes candidates. Their exact float32 cosines decide. Small indexes stay out of the graph: it would
make them slower, and the graph of large ones too.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from psycopg import errors

from memoriter import logs
from memoriter.errors import StoreError
from memoriter.extensions.postgres.connection import PostgresConnection
from memoriter.extensions.postgres.database import PostgresDatabase
from memoriter.extensions.postgres.keywords import PostgresKeywords, conditions_of
from memoriter.extensions.postgres.schema import PARTITIONS
from memoriter.extensions.postgres.server import SCHEMA, lock_number
from memoriter.extensions.postgres.vector_copy import CopyView, VectorCopies
from memoriter.records import Identity
from memoriter.store.protocol import NO_FILTER, Filter
from memoriter.store.vectors.nearest import SPARE_ROWS, encode, plausible, unit

if TYPE_CHECKING:
    from memoriter.extensions.postgres.chunks import State
    from memoriter.store.vectors import Vector

log = logs.get("store")

#: An index with more vectors is searched through the graph. Comparing one vector takes about 1 µs.
GRAPH_ROWS = 20_000
#: In an index of at most this many chunks, a snapshot computes the cosines of all of them at once and keeps them. The
#: search that follows needs many: looking one up takes as long as computing ten.
MEMO_CHUNKS = 1_500
#: The most dimensions of a graph of halfvec.
MAX_GRAPH_DIMENSIONS = 4_000
#: Candidates that the graph keeps while it searches, and one more for this many chunks. More find more of the nearest
#: rows and take longer. With 100,000 chunks, 650 find 97.6 % of the best ten, and 800 find 98.7 %.
EF_SEARCH, EF_SEARCH_CHUNKS = 400, 250
#: The most that pgvector allows.
MAX_EF_SEARCH = 1_000
#: Rows of the graph that a search may visit for rows of this index that pass its filter.
MAX_SCAN_ROWS = 60_000

_KNOWN = "select hash from index_vectors where index_name = $1 and model = $2 and hash = any($3)"
_LOAD = "select hash, vector from index_vectors where index_name = $1 and model = $2 and hash = any($3)"
_OF_ROWS = """
    select c.rowid, v.vector from index_chunks c
    cross join lateral (select vector from index_vectors
        where index_name = $1 and model = $2 and hash = c.hash offset 0) v
    where c.index_name = $1 and c.rowid = any($3) and c.model = $2"""

_SAVE = """
    insert into index_vectors(index_name, hash, vector, model, dims, in_graph, used_at)
    values($1, $2, $3::vector, $4, $5, $6, $7)
    on conflict(index_name, model, hash) do update set vector = excluded.vector, used_at = excluded.used_at"""

_USED = "select from index_chunks c where c.index_name = $1 and c.model = v.model and c.hash = v.hash"
_RELEASE = "update index_vectors set used_at = $2 where index_name = $1 and hash = any($3)"
DROP = f"""
    delete from index_vectors v where index_name = $1 and hash = any($2) and not exists({_USED})"""  # noqa: S608 - constants
_SIZE = "select coalesce(sum(dims * 4), 0)::bigint from index_vectors where index_name = $1"
_UNUSED = f"""
    select model, hash, dims from index_vectors v where index_name = $1 and not exists({_USED})
    order by used_at"""  # noqa: S608 - constants

# A subquery converts the text of the query once. In a generic plan, a cast alone would run for every row.
# Vectors first: the few nearest are looked up among the chunks afterwards, one by one. A join would read all chunks.
_NEAREST = """
    with near as materialized (
        select hash, vector <=> (select $3::vector) as distance from index_vectors
        where index_name = $1 and model = $2 order by 2 limit $4)
    select c.rowid, 1 - n.distance from near n
    cross join lateral (select rowid from index_chunks
        where index_name = $1 and model = $2 and hash = n.hash offset 0) c
    order by n.distance, c.rowid"""

# The chunks and their vectors are joined here: the server would look up each vector by its hash.
_ALL_CHUNKS = "select rowid, hash from index_chunks where index_name = $1 and model = $2"
_ALL_COSINES = """
    select hash, 1 - (vector <=> (select $3::vector)) from index_vectors where index_name = $1 and model = $2"""

_NEAREST_FILTERED = """
    select c.rowid, 1 - (v.vector <=> (select $3::vector)) from index_chunks c
    join index_vectors v on v.index_name = $1 and v.model = $2 and v.hash = c.hash
    where c.index_name = $1 and c.model = $2{conditions} order by v.vector <=> (select $3::vector), c.rowid limit $4"""

# The graph orders by half precision. The outer query orders by the exact distance.
_GRAPH = """
    with near as materialized (
        select hash, vector from index_vectors where index_name = $1 and model = $2 and in_graph and dims = {dims}
        order by (vector::halfvec({dims})) <=> (select $3::halfvec({dims})) limit $4)
    select c.rowid, 1 - (n.vector <=> (select $3::vector)) as cosine from near n
    cross join lateral (select rowid from index_chunks
        where index_name = $1 and model = $2 and hash = n.hash offset 0) c
    order by cosine desc, c.rowid"""
_GRAPH_FILTERED = """
    with near as materialized (
        select c.rowid, v.vector from index_vectors v
        join index_chunks c on c.index_name = $1 and c.model = $2 and c.hash = v.hash
        where v.index_name = $1 and v.model = $2 and v.in_graph and v.dims = {dims}{conditions}
        order by (v.vector::halfvec({dims})) <=> (select $3::halfvec({dims})) limit $4)
    select rowid, 1 - (vector <=> (select $3::vector)) as cosine from near order by cosine desc, rowid"""
_GRAPH_SETTINGS = f"""
    select set_config('hnsw.iterative_scan', 'relaxed_order', true),
    set_config('hnsw.ef_search', $1, true), set_config('hnsw.max_scan_tuples', '{MAX_SCAN_ROWS}', true)"""

_COUNT_FEW = """
    select count(*) from (select from index_chunks c where c.index_name = $1 and c.model = $2{conditions} limit $3) f"""

_COSINES = """
    select c.rowid, 1 - (v.vector <=> (select $3::vector)) from unnest($4::text::bigint[]) wanted(rowid)
    cross join lateral (select rowid, model, hash from index_chunks
        where index_name = $1 and rowid = wanted.rowid offset 0) c
    cross join lateral (select vector from index_vectors
        where index_name = $1 and model = $2 and hash = c.hash offset 0) v
    where c.model = $2"""


class PostgresVectors(PostgresKeywords):
    """The vectors of one index."""

    vector_problem: str | None = None

    def __init__(self, database: PostgresDatabase, name: str) -> None:
        super().__init__(database, name)
        self._copies = VectorCopies(database, name, self._state)

    # ---- the embedding cache ---------------------------------------------------------------------------------

    def known(self, identity: Identity, hashes: Iterable[str]) -> set[str]:
        return {row[0].hex() for row in self._fetch(_KNOWN, str(identity), keys(hashes))}

    def load(self, identity: Identity, hashes: Iterable[str]) -> dict[str, Vector]:
        rows = self._fetch(_LOAD, str(identity), keys(hashes))
        return {hash_.hex(): _decode(vector) for hash_, vector in rows}

    def vectors_of(self, rowids: Iterable[int], identity: Identity) -> dict[int, Vector]:
        rows = self._fetch(_OF_ROWS, str(identity), list(rowids))
        return {rowid: _decode(vector) for rowid, vector in rows}

    def save(self, identity: Identity, vectors: Mapping[str, Vector]) -> None:
        if not vectors:
            return
        with self._database.write() as connection:
            same = (str(identity), identity.dimensions, self._state().in_graph, time.time())
            connection.executemany(
                _SAVE,
                (
                    (self.name, bytes.fromhex(hash_), _as_text(vector, identity.dimensions), *same)
                    for hash_, vector in vectors.items()
                ),
            )

    def _release(self, hashes: Iterable[str]) -> None:
        """Record that chunks no longer use these vectors. They age from now on."""
        if wanted := keys(hashes):
            self._change(_RELEASE, time.time(), wanted)

    def prune(self, limit_bytes: int) -> int:
        with self._database.write() as connection:
            excess = int(self._read(_SIZE)[0][0]) - limit_bytes
            unused = []
            for model, hash_, dims in self._read(_UNUSED) if excess > 0 else ():
                if excess <= 0:
                    break
                unused.append((self.name, model, hash_))
                excess -= dims * 4
            connection.executemany(
                "delete from index_vectors where index_name = $1 and model = $2 and hash = $3", unused
            )
        return len(unused)

    # ---- searching -------------------------------------------------------------------------------------------

    def nearest(
        self, vector: Vector, identity: Identity, *, limit: int, where: Filter = NO_FILTER
    ) -> list[tuple[int, float]]:
        query = unit(vector, identity.dimensions)
        if query is None or limit <= 0:
            return []
        with self._database.snapshot() as connection:
            if where == NO_FILTER:
                if copy := self._copy(connection, identity):
                    return copy.nearest(query, limit)
                if _is_copied(self._state()):
                    self._copies.count_search(self._state(), identity)
            return list(plausible(self._nearest(connection, query, identity, limit, where)))[:limit]

    def _nearest(
        self, connection: PostgresConnection, query: Vector, identity: Identity, limit: int, where: Filter
    ) -> list[tuple[int, float]]:
        """Let the server compare vectors. Return the nearest rows, and some more than requested."""
        state, (conditions, bound) = self._state(), conditions_of(where, 5)
        if not conditions and connection.memo is not None and state.chunks <= MEMO_CHUNKS:
            known = self._all_cosines(connection.memo, query, identity)
            return sorted(known.items(), key=lambda found: (-found[1], found[0]))[:limit]
        values = (str(identity), _as_text(query, identity.dimensions), limit + SPARE_ROWS, *bound)
        if state.in_graph and not (conditions and self._is_small(identity, where)):
            candidates = min(MAX_EF_SEARCH, EF_SEARCH + state.chunks // EF_SEARCH_CHUNKS)
            connection.execute(_GRAPH_SETTINGS, (str(candidates),))
            statement = _GRAPH_FILTERED if conditions else _GRAPH
            connection.execute("set local enable_sort = off")  # or the server would sort all vectors instead
            found = self._fetch(
                statement.format(dims=int(identity.dimensions), conditions=conditions), *values
            )
            connection.execute("set local enable_sort = on")
            return found
        if not conditions:
            found = self._fetch(_NEAREST, *values)
            if len(found) >= min(limit, state.chunks):
                return found
        # Vectors that no chunk uses were among the nearest, or there is a filter.
        return self._fetch(_NEAREST_FILTERED.format(conditions=conditions), *values)

    def _all_cosines(self, memo: dict[object, Any], query: Vector, identity: Identity) -> dict[int, float]:
        """Return the cosines of all chunks by row, and keep them for this snapshot."""
        model, text = str(identity), _as_text(query, identity.dimensions)
        by_hash: dict[bytes, float] = dict(self._fetch(_ALL_COSINES, model, text))
        rows = self._fetch(_ALL_CHUNKS, model)
        found = dict(plausible([(row, by_hash[hash_]) for row, hash_ in rows if hash_ in by_hash]))
        memo["cosines", self.name, model, query.tobytes()] = found
        return found

    def _is_small(self, identity: Identity, where: Filter = NO_FILTER) -> bool:
        """Return whether so few rows pass the filter that all of them are compared."""
        conditions, bound = conditions_of(where, 4)
        rows = self._read(_COUNT_FEW.format(conditions=conditions), str(identity), GRAPH_ROWS, *bound)
        return int(rows[0][0]) < GRAPH_ROWS

    def cosines(self, rowids: Iterable[int], vector: Vector, identity: Identity) -> dict[int, float]:
        query, rows = unit(vector, identity.dimensions), list(set(rowids))
        if query is None or not rows:
            return {}
        with self._database.read() as connection:
            if copy := self._copy(connection, identity):
                return copy.cosines(query, rows)
            known = (connection.memo or {}).get(("cosines", self.name, str(identity), query.tobytes()))
        if known is not None:
            return {row: max(0.0, known[row]) for row in rows if row in known}
        found = self._fetch(_COSINES, str(identity), _as_text(query, identity.dimensions), _as_array(rows))
        return {row: max(0.0, cosine) for row, cosine in plausible(found)}

    # ---- copies ----------------------------------------------------------------------------------------------

    def copy_vectors(self, identity: Identity) -> None:
        """Copy the vectors into this process now. Searches do so in the background."""
        self._copies.copy(identity, self.total())

    def _copy(self, connection: PostgresConnection, identity: Identity) -> CopyView | None:
        """Return the vectors as this process has copied them. A transaction that writes uses none."""
        if connection.memo is None:
            return None
        key = ("copy", self.name, identity)
        if key not in connection.memo:
            state = self._state()
            is_copied = _is_copied(state)
            connection.memo[key] = self._copies.view(connection, state, identity) if is_copied else None
        found: CopyView | None = connection.memo[key]
        return found

    # ---- the graph -------------------------------------------------------------------------------------------

    def refresh(self, identity: Identity) -> None:
        """Add the vectors to the graph once there are many. Build the graph if there is none for their dimensions."""
        if identity.dimensions > MAX_GRAPH_DIMENSIONS or self._state().in_graph or self._is_small(identity):
            return
        try:
            self._build_graph(identity.dimensions)
        except errors.InsufficientPrivilege as error:
            self.vector_problem = f"Every vector is compared, because no graph can be built: {error}"
            log.warning("%s: %s", self.place, self.vector_problem)
            return
        self.vector_problem = None
        with self._database.write():
            self._change("update index_state set in_graph = true where index_name = $1")
            self._change("update index_vectors set in_graph = true where index_name = $1 and not in_graph")

    def _build_graph(self, dimensions: int) -> None:
        """Build the graph of vectors with these dimensions for all agents, unless it exists."""
        with contextlib.closing(self._database.server.connect()) as connection, connection.transaction():
            connection.execute(f"set local search_path = {SCHEMA}, public")
            exists = connection.execute("select to_regclass(%s)", (f"{_graph_name(dimensions)}_0",))
            if exists.fetchone() != (None,):
                return
            connection.execute("select pg_advisory_xact_lock(%s)", (lock_number(SCHEMA, "graph"),))
            for statement in graph_statements(dimensions):
                connection.execute(statement.encode())


def _is_copied(state: State) -> bool:
    """Return whether the vectors of an index are worth copying once it is searched often."""
    return state.in_graph or state.chunks > MEMO_CHUNKS


def _graph_name(dimensions: int) -> str:
    """Return the name of the graph of vectors with these dimensions."""
    return f"index_vectors_graph_{int(dimensions)}"


def graph_statements(dimensions: int) -> Iterator[str]:
    """Yield the statements that build a graph on every partition."""
    for number in range(PARTITIONS):
        yield (
            f"create index if not exists {_graph_name(dimensions)}_{number} on index_vectors_{number}"
            f" using hnsw ((vector::halfvec({int(dimensions)})) halfvec_cosine_ops) with (ef_construction = 128)"
            f" where in_graph and dims = {int(dimensions)}"
        )


def keys(hashes: Iterable[str]) -> list[bytes]:
    """Return hashes as they are stored."""
    return [bytes.fromhex(hash_) for hash_ in hashes]


def _as_text(vector: Vector, dimensions: int) -> str:
    """Return a vector as pgvector reads it. Nine digits are exact for float32."""
    values = np.frombuffer(encode(vector, dimensions), dtype="<f4")
    return f"[{','.join(map('%.9g'.__mod__, values.tolist()))}]"


def _as_array(rows: Iterable[int]) -> str:
    """Return numbers as the text of an array. psycopg takes ten times as long to convert a list."""
    return f"{{{','.join(map(str, rows))}}}"


def _decode(stored: Any) -> Vector:
    """Return a vector from the binary form of pgvector: two numbers of 16 bits, then float32, big-endian."""
    if len(stored) < 4:
        raise StoreError("A vector of the index cannot be read.")
    return np.frombuffer(stored, dtype=">f4", offset=4).astype(np.float32)
