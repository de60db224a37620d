"""Vectors and their cache in every store of a derived index. Each test runs on SQLite and on Postgres."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_samples import ALICE, document, paths, put, put_vector, unit, units

from memoriter.errors import StoreError
from memoriter.records import Identity
from memoriter.store import Counts, Filter, Index

if TYPE_CHECKING:
    pass


BOB = Identity("local", "bob", 8)


# ---- vectors in the cache -------------------------------------------------------------------------------------


def test_a_chunk_gets_its_vector_from_the_cache(index: Index) -> None:
    note, chunks = document("a.md", "one", "two")
    index.save(ALICE, {chunks[0].hash: unit(*range(1, 9))})
    index.replace(note, chunks, identity=ALICE)
    put(index, "b.md", "three")
    stored = index.chunks([1, 2, 3])
    assert [stored[row].model for row in (1, 2, 3)] == [str(ALICE), "", ""]
    assert (index.rows_without(str(ALICE)), index.count_without(str(ALICE))) == ([2, 3], 2)
    assert index.rows_without(str(ALICE), {"b.md"}) == [3]
    assert index.counts(str(ALICE)) == Counts(files=2, chunks=3, embedded=1, bytes=12)
    assert {row: vector.tolist() for row, vector in index.vectors_of([1, 2, 3], ALICE).items()} == {
        1: unit(*range(1, 9)).tolist()
    }


def test_a_chunk_that_gets_its_vector_later_moves_to_a_new_row_and_keeps_its_words(index: Index) -> None:
    note, chunks = document("a.md", "one", "two")
    index.replace(note, chunks, identity=ALICE)
    index.save(ALICE, {chunks[0].hash: unit(*range(1, 9))})
    assert index.assign([1, 2, 99], ALICE) == 1
    assert {row: stored.chunk for row, stored in index.chunks([1, 2, 3]).items()} == {
        3: chunks[0],
        2: chunks[1],
    }
    assert [match.rowid for match in index.keyword(["one"], limit=9)] == [3]
    assert (index.rows_without(str(ALICE)), index.check(deep=True)) == ([2], [])
    assert index.around([3], reach=1)[3].all == (3, 2)


@pytest.mark.parametrize("length", [3, 20, 400])
def test_the_rows_around_a_chunk_are_the_same_in_short_and_long_documents(index: Index, length: int) -> None:
    put(index, "a.md", "before")
    put(index, "long.md", *(f"line {number}" for number in range(length)))
    put(index, "z.md", "after")
    asked = [2, 3, length // 2, length, length + 1]
    expected = {
        row: (row, *range(row - 1, max(1, row - 9), -1), *range(row + 1, min(length + 2, row + 9)))
        for row in asked
        if row > 1
    }
    for rows in ([asked[2]], asked):  # the second time some are known
        found = index.around([row for row in rows if row > 1], reach=8)
        assert {row: near.all for row, near in found.items()} == {
            row: expected[row] for row in rows if row > 1
        }


def test_without_an_embedder_no_chunk_lacks_a_vector(index: Index) -> None:
    put(index, "a.md", "one")
    assert (index.rows_without(""), index.rows_without("m")) == ([], [1])


# ---- the embedding cache --------------------------------------------------------------------------------------


def hashes(*texts: str) -> list[str]:
    """Return the hashes of chunks with these texts."""
    return [chunk.hash for chunk in document("any.md", *texts)[1]]


def test_a_vector_is_stored_exactly_and_only_under_its_identity(index: Index) -> None:
    first, second, third = hashes("one", "two", "three")
    saved = dict(zip((first, second), units(2, 8), strict=True))
    index.save(ALICE, saved)
    loaded = index.load(ALICE, [first, second, third])
    assert {hash_: vector.tobytes() for hash_, vector in loaded.items()} == {
        hash_: vector.tobytes() for hash_, vector in saved.items()
    }
    assert (index.known(ALICE, [second, third]), index.known(BOB, [first])) == ({second}, set())
    assert index.load(BOB, [first]) == {}


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=8, max_size=8))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_finite_vector_is_stored_exactly(index: Index, values: list[float]) -> None:
    vector = np.array(values, dtype=np.float32) + np.float32(0)
    [hash_] = hashes("one")
    index.save(ALICE, {hash_: vector})
    assert index.load(ALICE, [hash_])[hash_].tobytes() == vector.tobytes()


@pytest.mark.parametrize("bad", [np.full(8, np.nan), np.full(8, np.inf), np.ones(7), np.ones((1, 8))])
def test_an_invalid_vector_is_rejected(index: Index, bad: object) -> None:
    good, other = hashes("one", "two")
    with pytest.raises(StoreError, match=r"NaN or infinity|dimensions"):
        index.save(ALICE, {good: unit(*range(1, 9)), other: bad})  # type: ignore[dict-item]
    assert index.known(ALICE, [good, other]) == set()


def test_pruning_keeps_vectors_that_chunks_use(index: Index) -> None:
    put_vector(index, "a.md", unit(1, 0, 0, 0, 0, 0, 0, 0), ALICE)
    unused = hashes("one", "two", "three")
    index.save(ALICE, dict(zip(unused, units(3, 8), strict=True)))
    assert index.prune(10**9) == 0
    assert (index.prune(0), index.known(ALICE, unused)) == (3, set())
    assert (list(index.vectors_of([1], ALICE)), index.check(deep=True)) == ([1], [])


def test_moved_or_restored_text_keeps_its_vector(index: Index) -> None:
    note, chunks = document("a.md", "text")
    index.save(ALICE, {chunks[0].hash: unit(*range(1, 9))})
    index.replace(note, chunks, identity=ALICE)
    index.remove(["a.md"])
    index.replace(*document("other/place.md", "text"), identity=ALICE)
    assert index.counts(str(ALICE)).embedded == 1


# ---- vectors --------------------------------------------------------------------------------------------------


def test_the_nearest_vectors_are_found_best_first(index: Index) -> None:
    matrix = units(40, 8)
    for number, vector in enumerate(matrix):
        put_vector(index, f"{number:02}.md", vector, ALICE)
    query = units(1, 8, seed=1)[0]
    exact = matrix @ query
    hits = index.nearest(query, ALICE, limit=10)
    assert paths(index, hits) == [f"{number:02}.md" for number in np.argsort(-exact)[:10]]
    assert np.allclose([cosine for _, cosine in hits], np.sort(exact)[::-1][:10], atol=1e-5)
    rows = [row for row, _ in hits]
    assert index.cosines([*rows, 999], query, ALICE) == pytest.approx(
        {row: max(0.0, cosine) for row, cosine in hits}, abs=1e-5
    )
    assert (index.nearest(query, BOB, limit=10), index.nearest(query, ALICE, limit=0)) == ([], [])


def test_a_snapshot_gives_the_same_cosines_as_single_reads(index: Index) -> None:
    for number, vector in enumerate(units(12, 8)):
        put_vector(index, f"{number:02}.md", vector, ALICE)
    put(index, "same.md", "twice", "twice")
    query, other = units(2, 8, seed=1)
    rows = [*range(1, 15), 999]
    alone = [index.cosines(rows, vector, ALICE) for vector in (query, other)]
    with index.snapshot():
        hits = index.nearest(query, ALICE, limit=3)
        together = [index.cosines(rows, vector, ALICE) for vector in (query, other)]
    assert together == [pytest.approx(found) for found in alone]
    assert hits == [pytest.approx(pair) for pair in sorted(alone[0].items(), key=lambda pair: -pair[1])[:3]]


def test_filters_apply_to_vectors(index: Index) -> None:
    vector = unit(1, 2, 3, 4, 5, 6, 7, 8)
    put_vector(index, "memory/a.md", vector, ALICE)
    put_vector(index, "memory/sub/b.md", vector, ALICE)
    put_vector(index, "sessions/c.jsonl", vector, ALICE, source="sessions")

    def near(where: Filter) -> list[str]:
        return sorted(paths(index, index.nearest(vector, ALICE, limit=9, where=where)))

    assert near(Filter(source="sessions")) == ["sessions/c.jsonl"]
    assert near(Filter(path_prefix="memory/sub/")) == ["memory/sub/b.md"]
    assert near(Filter(source="memory", path_prefix="memory/")) == ["memory/a.md", "memory/sub/b.md"]
    assert near(Filter(path_prefix="%")) == []


def test_zero_vectors_and_deleted_rows_are_never_found(index: Index) -> None:
    put_vector(index, "zero.md", np.zeros(8, dtype=np.float32), ALICE)
    put_vector(index, "gone.md", unit(1, 0, 0, 0, 0, 0, 0, 0), ALICE)
    put_vector(index, "here.md", unit(1, 1, 0, 0, 0, 0, 0, 0), ALICE)
    index.remove(["gone.md"])
    query = unit(1, 0, 0, 0, 0, 0, 0, 0)
    assert paths(index, index.nearest(query, ALICE, limit=9)) == ["here.md"]
    assert index.nearest(np.zeros(8, dtype=np.float32), ALICE, limit=9) == []


def test_the_nearest_are_found_behind_many_vectors_that_no_chunk_uses(index: Index) -> None:
    unused = units(120, 8)
    index.save(ALICE, dict(zip(hashes(*map(str, range(120))), unused, strict=True)))
    put_vector(index, "far.md", -unused[0], ALICE)
    assert paths(index, index.nearest(unused[0], ALICE, limit=3)) == ["far.md"]
