"""Vectors on Postgres: each once, by its embedder and the hash of its text, as in the embedding cache of SQLite.

pgvector compares every vector of a small index. The vectors of a large index are also in a graph (HNSW) of half
precision, which proposes candidates. Their exact float32 cosines decide. Small indexes stay out of the graph: it would
make them slower, and the graph of large ones too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from memoriter.errors import StoreError
from memoriter.extensions.postgres.chunks import State
from memoriter.extensions.postgres.connection import PostgresConnection
from memoriter.extensions.postgres.keywords import conditions_of
from memoriter.extensions.postgres.schema import PARTITIONS
from memoriter.records import Identity
from memoriter.store.protocol import Filter
from memoriter.store.vectors.nearest import SPARE_ROWS, encode, plausible, unit

if TYPE_CHECKING:
    from memoriter.store.vectors import Vector

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
    insert into index_vectors(index_name, model, hash, dims, in_graph, vector, used_at)
    values($1, $2, $3, $4, $5, $6::vector, $7)
    on conflict(index_name, model, hash) do update set vector = excluded.vector, used_at = excluded.used_at"""

_USED = "select from index_chunks c where c.index_name = $1 and c.model = v.model and c.hash = v.hash"
_RELEASE = "update index_vectors set used_at = $2 where index_name = $1 and hash = any($3)"
_DROP = f"""
    delete from index_vectors v where index_name = $1 and hash = any($2) and not exists({_USED})"""  # noqa: S608 - constants
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

_COSINES = """
    select c.rowid, 1 - (v.vector <=> (select $3::vector)) from index_chunks c
    cross join lateral (select vector from index_vectors
        where index_name = $1 and model = $2 and hash = c.hash offset 0) v
    where c.index_name = $1 and c.rowid = any($4::text::bigint[]) and c.model = $2"""


# ---- the embedding cache ------------------------------------------------------------------------------------------


def known(connection: PostgresConnection, index: str, identity: Identity, hashes: Iterable[str]) -> set[str]:
    """Return the hashes that have a vector of this identity."""
    return {row[0].hex() for row in connection.fetch(_KNOWN, (index, model_of(identity), keys(hashes)))}


def load(
    connection: PostgresConnection, index: str, identity: Identity, hashes: Iterable[str]
) -> dict[str, Vector]:
    """Return the cached vectors of this identity by hash."""
    rows = connection.fetch(_LOAD, (index, model_of(identity), keys(hashes)))
    return {hash_.hex(): _decode(vector) for hash_, vector in rows}


def of_rows(
    connection: PostgresConnection, index: str, identity: Identity, rowids: Iterable[int]
) -> dict[int, Vector]:
    """Return the vectors of these rows. Rows without one are left out."""
    rows = connection.fetch(_OF_ROWS, (index, model_of(identity), list(rowids)))
    return {rowid: _decode(vector) for rowid, vector in rows}


def save(
    connection: PostgresConnection,
    index: str,
    identity: Identity,
    vectors: Mapping[str, Vector],
    *,
    in_graph: bool,
) -> None:
    """Store the vectors, and replace existing ones."""
    now, model, dims = time.time(), model_of(identity), identity.dimensions
    connection.executemany(
        _SAVE,
        (
            (index, model, bytes.fromhex(hash_), dims, in_graph, as_text(vector, dims), now)
            for hash_, vector in vectors.items()
        ),
    )


def release(connection: PostgresConnection, index: str, hashes: Iterable[str]) -> None:
    """Record that chunks no longer use these vectors. They age from now on."""
    if wanted := keys(hashes):
        connection.execute(_RELEASE, (index, time.time(), wanted))


def drop(connection: PostgresConnection, index: str, hashes: Iterable[str]) -> None:
    """Delete the vectors of these hashes, of any embedder, unless chunks use them."""
    if wanted := keys(hashes):
        connection.execute(_DROP, (index, wanted))


def size(connection: PostgresConnection, index: str) -> int:
    """Return the bytes of all vectors."""
    rows = connection.execute(
        "select coalesce(sum(dims * 4), 0)::bigint from index_vectors where index_name = $1", (index,)
    )
    return int(rows[0][0])


def prune(connection: PostgresConnection, index: str, limit_bytes: int) -> int:
    """Delete vectors that no chunk uses, longest unused first, until the cache fits. Return how many."""
    excess = size(connection, index) - limit_bytes
    unused = []
    for model, hash_, dims in connection.execute(_UNUSED, (index,)) if excess > 0 else ():
        if excess <= 0:
            break
        unused.append((index, model, hash_))
        excess -= dims * 4
    connection.executemany(
        "delete from index_vectors where index_name = $1 and model = $2 and hash = $3", unused
    )
    return len(unused)


# ---- searching ----------------------------------------------------------------------------------------------------


def nearest(
    connection: PostgresConnection,
    index: str,
    state: State,
    vector: Vector,
    identity: Identity,
    *,
    limit: int,
    where: Filter,
) -> list[tuple[int, float]]:
    """Return the nearest rows that pass the filter, as (rowid, cosine), best first."""
    query = unit(vector, identity.dimensions)
    if query is None or limit <= 0:
        return []
    conditions, bound = conditions_of(where, 5)
    if not conditions and connection.memo is not None and state.chunks <= MEMO_CHUNKS:
        known = _all_cosines(connection, index, query, identity)
        rows, cosines = np.array(list(known), dtype=np.int64), np.array(list(known.values()))
        order = np.lexsort((rows, -cosines))[:limit]
        return list(zip(rows[order].tolist(), cosines[order].tolist(), strict=True))
    wanted = limit + SPARE_ROWS
    values = (index, model_of(identity), as_text(query, identity.dimensions), wanted, *bound)
    if state.in_graph and not (conditions and _is_small(connection, index, identity, where)):
        candidates = min(MAX_EF_SEARCH, EF_SEARCH + state.chunks // EF_SEARCH_CHUNKS)
        connection.execute(_GRAPH_SETTINGS, (str(candidates),))
        statement = _GRAPH_FILTERED if conditions else _GRAPH
        statement = statement.format(dims=int(identity.dimensions), conditions=conditions)
        return list(plausible(connection.fetch(statement, values)))[:limit]
    if not conditions:
        found = connection.fetch(_NEAREST, values)
        if len(found) >= min(limit, state.chunks):
            return list(plausible(found))[:limit]
    # Vectors that no chunk uses were among the nearest, or there is a filter.
    return list(plausible(connection.fetch(_NEAREST_FILTERED.format(conditions=conditions), values)))[:limit]


def _all_cosines(
    connection: PostgresConnection, index: str, query: Vector, identity: Identity
) -> dict[int, float]:
    """Return the cosines of all chunks by row, and keep them for this snapshot."""
    model, text = model_of(identity), as_text(query, identity.dimensions)
    by_hash: dict[bytes, float] = dict(connection.fetch(_ALL_COSINES, (index, model, text)))
    rows = connection.fetch(_ALL_CHUNKS, (index, model))
    found = dict(plausible([(row, by_hash[hash_]) for row, hash_ in rows if hash_ in by_hash]))
    assert connection.memo is not None
    connection.memo["cosines", index, model, query.tobytes()] = found
    return found


def _is_small(connection: PostgresConnection, index: str, identity: Identity, where: Filter) -> bool:
    """Return whether so few rows pass the filter that all of them are compared."""
    conditions, bound = conditions_of(where, 4)
    statement = f"""
        select count(*) from (select from index_chunks c
        where c.index_name = $1 and c.model = $2{conditions} limit $3) passing"""  # noqa: S608 - constants
    rows = connection.execute(statement, (index, model_of(identity), GRAPH_ROWS, *bound))
    return int(rows[0][0]) < GRAPH_ROWS


def cosines(
    connection: PostgresConnection, index: str, vector: Vector, identity: Identity, rowids: Iterable[int]
) -> dict[int, float]:
    """Return the cosines of these rows, at least 0. Rows without a vector are left out."""
    query, rows = unit(vector, identity.dimensions), list(set(rowids))
    if query is None or not rows:
        return {}
    known = (connection.memo or {}).get(("cosines", index, model_of(identity), query.tobytes()))
    if known is not None:
        return {row: max(0.0, known[row]) for row in rows if row in known}
    values = (index, model_of(identity), as_text(query, identity.dimensions), as_array(rows))
    found = connection.fetch(_COSINES, values)
    return {row: max(0.0, cosine) for row, cosine in plausible(found)}


# ---- the graph ----------------------------------------------------------------------------------------------------


def graph_name(dimensions: int) -> str:
    """Return the name of the graph of vectors with these dimensions."""
    return f"index_vectors_graph_{int(dimensions)}"


def graph_statements(dimensions: int) -> Iterator[str]:
    """Yield the statements that build a graph on every partition."""
    for number in range(PARTITIONS):
        yield (
            f"create index if not exists {graph_name(dimensions)}_{number} on index_vectors_{number}"
            f" using hnsw ((vector::halfvec({int(dimensions)})) halfvec_cosine_ops) with (ef_construction = 128)"
            f" where in_graph and dims = {int(dimensions)}"
        )


def needs_graph(connection: PostgresConnection, index: str, identity: Identity) -> bool:
    """Return whether the index has so many vectors that the graph should have them."""
    if identity.dimensions > MAX_GRAPH_DIMENSIONS:
        return False
    rows = connection.execute(
        """select count(*) from (select from index_chunks
        where index_name = $1 and model = $2 limit $3) found""",
        (index, model_of(identity), GRAPH_ROWS),
    )
    return int(rows[0][0]) >= GRAPH_ROWS


def add_to_graph(connection: PostgresConnection, index: str) -> None:
    """Add the vectors of an index to the graph, and all that are stored later."""
    connection.execute("update index_state set in_graph = true where index_name = $1", (index,))
    connection.execute(
        "update index_vectors set in_graph = true where index_name = $1 and not in_graph", (index,)
    )


# ---- encoding -----------------------------------------------------------------------------------------------------


def model_of(identity: Identity) -> str:
    """Return the name under which vectors of an identity are stored."""
    return str(identity)


def keys(hashes: Iterable[str]) -> list[bytes]:
    """Return hashes as they are stored."""
    return [bytes.fromhex(hash_) for hash_ in hashes]


def as_text(vector: Vector, dimensions: int) -> str:
    """Return a vector as pgvector reads it. Nine digits are exact for float32."""
    values = np.frombuffer(encode(vector, dimensions), dtype="<f4")
    return f"[{','.join(map('%.9g'.__mod__, values.tolist()))}]"


def as_array(rows: Iterable[int]) -> str:
    """Return numbers as the text of an array. psycopg takes ten times as long to convert a list."""
    return f"{{{','.join(map(str, rows))}}}"


def _decode(stored: Any) -> Vector:
    """Return a vector from the binary form of pgvector: two numbers of 16 bits, then float32, big-endian."""
    if len(stored) < 4:
        raise StoreError("A vector of the index cannot be read.")
    return np.frombuffer(stored, dtype=">f4", offset=4).astype(np.float32)
