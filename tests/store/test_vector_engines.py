"""One contract for every vector engine, and for the default one with and without side files."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from fake_pinecone import pinecone_server, pinecone_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_samples import ALICE, by_hand, document, paths, put, put_vector, unit, units

from memoriter.errors import StoreError
from memoriter.extensions import external_tables as external
from memoriter.records import Identity
from memoriter.store import Filter, Index, open_index
from memoriter.store.vectors import scan

FILES = scan.ScanLimits(threshold=1, tail_rows=3, candidates=4_000)
BOB = Identity("local", "bob", 5)
Open = Callable[..., Index]


ENGINES = [
    "scan in memory",
    "scan over files",
    "sqlite-vec",
    "lancedb",
    pytest.param("chroma", marks=pytest.mark.integration),
    "pinecone",
    "pinecone that lags",
]


@pytest.fixture(params=ENGINES)
def open_(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Open]:
    engine = request.param.partition(" ")[0]
    if request.param == "scan over files":
        monkeypatch.setattr(scan, "LIMITS", FILES)
    if engine in ("lancedb", "chroma", "pinecone"):
        monkeypatch.setattr(external, "BATCH_ROWS", 2)
        monkeypatch.setattr(external, "SMALL_FILTER", 10)
    if package := {"lancedb": "lancedb", "chroma": "chromadb"}.get(engine):
        pytest.importorskip(package, reason=f"the extra {engine} is not installed")
    opened: list[Index] = []
    with contextlib.ExitStack() as stack:
        chosen = None
        if engine == "pinecone":
            account = stack.enter_context(pinecone_server())
            account.lag = 3 if "lags" in request.param else 0
            chosen = pinecone_settings(api_url=account.url)

        def open_one(folder: Path = tmp_path) -> Index:
            opened.append(open_index(folder, engine=engine, settings=chosen))
            return opened[-1]

        yield open_one
        for index in opened:
            index.close()


@pytest.fixture
def index(open_: Open) -> Index:
    return open_()


def fill(index: Index, vectors: Any, identity: Identity = ALICE, prefix: str = "") -> None:
    with index.transaction():
        for number, vector in enumerate(vectors):
            put_vector(index, f"{prefix}{number}.md", vector, identity)


def expected(vectors: Any, query: Any, limit: int) -> list[str]:
    order = np.argsort(-(vectors @ query), kind="stable")[:limit]
    return [f"{number}.md" for number in order]


@pytest.mark.requirement("D14")
def test_the_nearest_rows_equal_those_of_a_brute_force_search(index: Index) -> None:
    vectors = units(300, 8)
    fill(index, vectors)
    index.refresh(ALICE)
    for query in units(20, 8, seed=1):
        hits = index.nearest(query, ALICE, limit=50)
        assert paths(index, hits) == expected(vectors, query, 50)
        assert [score for _, score in hits] == pytest.approx(sorted(vectors @ query)[::-1][:50], abs=1e-5)


def test_the_length_of_the_query_does_not_matter(index: Index) -> None:
    fill(index, units(20, 8))
    query = units(1, 8, seed=1)[0]
    near, far = (index.nearest(query * scale, ALICE, limit=5) for scale in (0.001, 1000))
    assert [row for row, _ in near] == [row for row, _ in far]
    assert near[0][1] == pytest.approx(far[0][1], abs=1e-5)


def test_an_empty_index_finds_nothing(index: Index) -> None:
    index.refresh(ALICE)
    assert index.nearest(unit(*range(1, 9)), ALICE, limit=5) == []


def test_a_large_limit_returns_all_rows(index: Index) -> None:
    fill(index, units(7, 8))
    index.refresh(ALICE)
    assert len(index.nearest(unit(*range(1, 9)), ALICE, limit=10_000)) == 7
    assert index.nearest(unit(*range(1, 9)), ALICE, limit=0) == []


def test_chunks_without_a_vector_are_not_found(index: Index) -> None:
    put(index, "no.md", "no vector")
    fill(index, units(2, 8))
    put(index, "none.md", "no vector either")
    assert sorted(paths(index, index.nearest(unit(*range(1, 9)), ALICE, limit=5))) == ["0.md", "1.md"]


def test_filters_by_source_and_path_are_exact(index: Index) -> None:
    vectors = units(120, 8)
    with index.transaction():
        for number, vector in enumerate(vectors):
            folder, source = ("a", "ab", "a%")[number % 3], ("memory", "sessions")[number % 2]
            put_vector(index, f"{folder}/{number}.md", vector, ALICE, source=source)  # type: ignore[arg-type]
    index.refresh(ALICE)
    query = units(1, 8, seed=1)[0]
    order = np.argsort(-(vectors @ query))
    cases = {
        Filter(source="sessions"): [n for n in order if n % 2],
        Filter(path_prefix="a/"): [n for n in order if n % 3 == 0],
        Filter(path_prefix="a"): list(order),
        Filter(path_prefix="a%", source="memory"): [n for n in order if n % 3 == 2 and not n % 2],
        Filter(path_prefix="b"): [],
    }
    for where, numbers in cases.items():
        hits = index.nearest(query, ALICE, limit=15, where=where)
        assert [path.split("/")[1] for path in paths(index, hits)] == [f"{n}.md" for n in numbers[:15]], where


def test_deleted_documents_are_never_found_however_many(index: Index) -> None:
    vectors = units(200, 8)
    fill(index, vectors)
    index.refresh(ALICE)
    query = vectors[0]
    gone = expected(vectors, query, 120)
    index.remove(gone)
    left = expected(vectors, query, 200)[120:]
    assert paths(index, index.nearest(query, ALICE, limit=30)) == left[:30]
    index.refresh(ALICE)
    assert paths(index, index.nearest(query, ALICE, limit=100)) == left


def test_a_repeated_filter_follows_added_and_deleted_rows(index: Index) -> None:
    vectors = units(150, 8)
    fill(index, vectors)
    where = Filter(path_prefix="1")
    query = vectors[0]
    before = paths(index, index.nearest(query, ALICE, limit=10, where=where))
    index.remove(before)
    index.remove([f"1{number:02}.md" for number in range(50)])  # all but 1.md and 10.md to 19.md
    after = paths(index, index.nearest(query, ALICE, limit=10, where=where))
    put_vector(index, "1-new.md", query, ALICE)
    assert set(before).isdisjoint(after)
    assert set(after) <= {f"{n}.md" for n in (1, *range(10, 20))}
    assert paths(index, index.nearest(query, ALICE, limit=1, where=where)) == ["1-new.md"]


def test_later_documents_are_found_before_and_after_a_refresh(index: Index) -> None:
    vectors = units(90, 8)
    fill(index, vectors[:40])
    index.refresh(ALICE)
    query = units(1, 8, seed=1)[0]
    assert len(index.nearest(query, ALICE, limit=90)) == 40
    for number in range(40, 90):
        put_vector(index, f"{number}.md", vectors[number], ALICE)
    assert paths(index, index.nearest(query, ALICE, limit=90)) == expected(vectors, query, 90)
    index.refresh(ALICE)
    assert paths(index, index.nearest(query, ALICE, limit=90)) == expected(vectors, query, 90)


def test_only_new_rows_are_found_after_a_rebuild(open_: Open, index: Index) -> None:
    vectors = units(60, 8)
    fill(index, vectors)
    index.refresh(ALICE)
    other = open_()
    assert len(other.nearest(vectors[0], ALICE, limit=100)) == 60
    with index.transaction():
        index.clear()
        fill(index, vectors[:30])
        assert len(other.nearest(vectors[0], ALICE, limit=100)) == 60
    assert len(other.nearest(vectors[0], ALICE, limit=100)) == 30
    index.refresh(ALICE)
    assert paths(other, other.nearest(vectors[0], ALICE, limit=10)) == expected(vectors[:30], vectors[0], 10)


def test_vectors_of_two_embedders_are_never_mixed(index: Index) -> None:
    fill(index, units(30, 8), ALICE, prefix="alice-")
    index.refresh(ALICE)
    fill(index, units(30, 5), BOB, prefix="bob-")
    index.refresh(BOB)
    for identity, name in ((BOB, "bob-"), (ALICE, "alice-"), (BOB, "bob-")):
        hits = index.nearest(units(1, identity.dimensions)[0], identity, limit=100)
        assert len(hits) == 30
        assert all(path.startswith(name) for path in paths(index, hits))


def test_a_changed_key_of_the_same_model_is_another_embedder(index: Index) -> None:
    changed = Identity(ALICE.provider, ALICE.model, 8, "z" * 64)
    fill(index, units(10, 8), ALICE)
    index.refresh(ALICE)
    fill(index, -units(10, 8), changed)
    index.refresh(changed)
    query = units(10, 8)[0]
    assert index.nearest(query, ALICE, limit=5) == []
    assert index.nearest(-query, changed, limit=1)[0][1] == pytest.approx(1, abs=1e-5)


@pytest.mark.requirement("B5")
def test_zero_vectors_are_never_found(index: Index) -> None:
    fill(index, units(5, 8))
    put_vector(index, "zero.md", np.zeros(8, dtype=np.float32), ALICE)
    put_vector(index, "minus-zero.md", -np.zeros(8, dtype=np.float32), ALICE)
    index.refresh(ALICE)
    hits = index.nearest(unit(*range(1, 9)), ALICE, limit=100)
    assert (len(hits), "zero.md" in paths(index, hits)) == (5, False)


def test_a_vector_damaged_in_the_database_is_never_found(index: Index) -> None:
    fill(index, units(5, 8))
    note, chunks = document("bad.md", "bad")
    index.save(ALICE, {chunks[0].hash: units(1, 8)[0]})
    with by_hand(index.path) as connection:
        nan = np.full(8, np.nan, dtype=np.float32).tobytes()
        connection.execute("update embedding_cache set vector = ? where hash = ?", (nan, chunks[0].hash))
    index.replace(note, chunks, identity=ALICE)
    index.refresh(ALICE)
    assert "bad.md" not in paths(index, index.nearest(units(1, 8)[0], ALICE, limit=100))


def test_a_zero_query_finds_nothing_and_a_wrong_length_is_rejected(index: Index) -> None:
    fill(index, units(5, 8))
    for query in (np.zeros(8), np.full(8, np.nan), np.full(8, np.inf)):
        assert index.nearest(query.astype(np.float32), ALICE, limit=5) == []
    with pytest.raises(StoreError, match="does not have 8 dimensions"):
        index.nearest(np.ones(7, dtype=np.float32), ALICE, limit=5)


def test_changes_of_another_process_are_seen(open_: Open, index: Index) -> None:
    vectors = units(30, 8)
    fill(index, vectors[:10])
    other = open_()
    assert len(other.nearest(vectors[0], ALICE, limit=100)) == 10
    index.remove(["0.md"])
    for number in range(10, 30):
        put_vector(index, f"{number}.md", vectors[number], ALICE)
    index.refresh(ALICE)
    assert set(paths(other, other.nearest(vectors[0], ALICE, limit=100))) == {f"{n}.md" for n in range(1, 30)}


def test_a_search_inside_a_transaction_forgets_rows_that_are_rolled_back(index: Index) -> None:
    vectors = units(4, 8)
    fill(index, vectors[:2])
    assert len(index.nearest(vectors[0], ALICE, limit=10)) == 2
    with contextlib.suppress(ZeroDivisionError), index.transaction():
        put_vector(index, "2.md", vectors[2], ALICE)
        assert len(index.nearest(vectors[0], ALICE, limit=10)) == 3
        raise ZeroDivisionError
    put_vector(index, "3.md", vectors[3], ALICE)  # takes the number that was rolled back
    assert paths(index, index.nearest(vectors[3], ALICE, limit=1)) == ["3.md"]
    assert index.nearest(vectors[3], ALICE, limit=1)[0][1] == pytest.approx(1, abs=1e-5)


@pytest.mark.posix("an open file is deleted")
def test_a_healed_index_starts_empty(open_: Open, index: Index) -> None:
    fill(index, units(10, 8))
    index.refresh(ALICE)
    other = open_()
    assert len(other.nearest(units(1, 8)[0], ALICE, limit=10)) == 10
    index.heal("told so")
    fill(index, -units(3, 8))
    for each in (index, other):
        hits = each.nearest(units(1, 8)[0], ALICE, limit=10)
        assert paths(each, hits) == expected(-units(3, 8), units(1, 8)[0], 3)


def test_many_threads_search_while_one_writes(index: Index) -> None:
    vectors = units(200, 8)
    fill(index, vectors[:100])
    wrong: list[object] = []
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            hits = index.nearest(vectors[5], ALICE, limit=3)
            if not hits or abs(hits[0][1] - 1) > 1e-5:
                wrong.append(hits)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(100, 200):
        put_vector(index, f"{number}.md", vectors[number], ALICE)
        if number % 25 == 0:
            index.refresh(ALICE)
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(index.nearest(vectors[5], ALICE, limit=500)) == 200


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 12), st.integers(0, 40)),
        st.tuples(st.just("remove"), st.integers(0, 12), st.just(0)),
        st.tuples(st.just("refresh"), st.just(0), st.just(0)),
        st.tuples(st.just("reopen"), st.just(0), st.just(0)),
        st.tuples(st.just("clear"), st.just(0), st.just(0)),
    ),
    max_size=25,
)


@pytest.mark.requirement("D14")
@given(operations=OPERATIONS)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_after_any_history_the_result_equals_a_brute_force_search(
    open_: Open, tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("history")
    pool, held = units(41, 8), {}
    index = open_(folder)
    for name, place, which in operations:
        if name == "put":
            put_vector(index, f"{place}.md", pool[which], ALICE)
            held[f"{place}.md"] = pool[which]
        elif name == "remove":
            index.remove([f"{place}.md"])
            held.pop(f"{place}.md", None)
        elif name == "clear":
            index.clear()
            held.clear()
        elif name == "reopen":
            index.close()
            index = open_(folder)
        else:
            index.refresh(ALICE)
        hits = index.nearest(pool[0], ALICE, limit=20)
        assert dict(zip(paths(index, hits), (score for _, score in hits), strict=True)) == pytest.approx(
            {path: float(vector @ pool[0]) for path, vector in held.items()}, abs=1e-5
        )
    index.close()


# ---- from one engine to another -------------------------------------------------------------------------------


def test_an_index_switches_engines_without_a_new_sync(tmp_path: Path) -> None:
    vectors = units(40, 8)
    query = units(1, 8, seed=1)[0]
    for number, engine in enumerate(("scan", "sqlite-vec", "scan", "sqlite-vec")):
        with open_index(tmp_path, engine=engine) as index:
            known = index.counts("").files
            assert len(index.nearest(query, ALICE, limit=100)) == known
            for at in range(10 * number, 10 * number + 10):
                put_vector(index, f"{at}.md", vectors[at], ALICE)
            hits = index.nearest(query, ALICE, limit=100)
            assert paths(index, hits) == expected(vectors[: 10 * number + 10], query, 100)
            assert (index.check(deep=True), index.check()) == ([], [])


def test_sqlite_vec_searches_its_own_table(tmp_path: Path) -> None:
    with open_index(tmp_path, engine="sqlite-vec") as index:
        fill(index, units(10, 8))
        with by_hand(index.path) as connection:
            assert connection.execute("select count(*) from chunks_vec_rowids").fetchall() == [(10,)]
        index.remove(["0.md"])
        index.refresh(ALICE)
        with by_hand(index.path) as connection:
            assert connection.execute("select count(*) from chunks_vec_rowids").fetchall() == [(9,)]


def test_extensions_cannot_be_loaded_once_the_engine_is_open(tmp_path: Path) -> None:
    with open_index(tmp_path, engine="sqlite-vec") as index:
        connection = index._database.reader()
        with pytest.raises(apsw.SQLError, match="not authorized"):
            connection.execute("select load_extension('x')").fetchall()
