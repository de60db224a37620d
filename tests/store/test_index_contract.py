"""What every store of a derived index does. Each test runs on SQLite and on Postgres."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from store_samples import ALICE, document, paths, put, put_vector, unit, units

from memoriter.errors import LockTimeout, StoreError
from memoriter.extensions.postgres.database import PostgresDatabase
from memoriter.records import Chunk, Document, Identity
from memoriter.store import Counts, FileRow, Filter, Index, StoredChunk
from memoriter.store import open_index as open_sqlite
from memoriter.store.documents import DocumentSummary
from memoriter.store.keywords import columns
from memoriter.text import tokenize

if TYPE_CHECKING:
    from conftest import OpenDatabase

ANYWHERE = Filter()
BOB = Identity("local", "bob", 8)
OpenIndex = Callable[..., Index]
OpenDatabase = Callable[..., PostgresDatabase]


@pytest.fixture(params=["sqlite", "postgres"])
def open_index(request: pytest.FixtureRequest, tmp_path: Path) -> OpenIndex:
    """Return a function that opens the same index again, or another one by its name."""
    if request.param == "sqlite":
        return lambda name="notes": open_sqlite(tmp_path / name)
    from memoriter.extensions.postgres.index import PostgresIndex

    open_database: OpenDatabase = request.getfixturevalue("postgres_database")
    return lambda name="notes": PostgresIndex(open_database(area=name), name, tmp_path / name)


@pytest.fixture
def index(open_index: OpenIndex) -> Index:
    return open_index()


def found(index: Index, *terms: str, where: Filter = ANYWHERE) -> list[str]:
    """Return the texts that the keyword search finds, best first."""
    tokens = [token for term in terms for token in tokenize(term) or [term]]
    rows = [match.rowid for match in index.keyword(tokens, limit=10, where=where)]
    stored = index.chunks(rows)
    return [stored[row].chunk.text for row in rows]


def test_a_document_is_stored_exactly(index: Index) -> None:
    note = Document(
        "memory/一.md", "sessions", "whatever", "ab" * 32, 12345678901234567, 9, "read as gb18030"
    )
    chunk = Chunk("id-1", note.path, "sessions", 3, 7, "正文\ntext 🎉", ("标题", "Sub"), "2026-02-08")
    index.replace(note, [chunk])
    assert index.files() == {note.path: FileRow(note.path, "sessions", 12345678901234567, 9, "ab" * 32)}
    assert index.chunks([1, 2]) == {1: StoredChunk(1, chunk, "")}
    assert index.counts("") == Counts(files=1, chunks=1, embedded=0, bytes=9)


def test_a_summary_has_the_stat_the_trust_and_how_a_transcript_begins(index: Index) -> None:
    talk = [
        Chunk("a", "talk.jsonl", "sessions", 1, 1, "user: " + "茶" * 300, (), "2026-05-01", "agent"),
        Chunk("b", "talk.jsonl", "sessions", 2, 2, "assistant: yes", (), "2026-05-02", "untrusted"),
    ]
    index.replace(Document("talk.jsonl", "sessions", "", "ab" * 32, 12, 9), talk)
    put(index, "a.md", "text")
    assert index.summaries(["talk.jsonl", "a.md", "missing.md"]) == {
        "talk.jsonl": DocumentSummary(12, 9, 2, "untrusted", "2026-05-01", "user: " + "茶" * 234),
        "a.md": DocumentSummary(17, 4, 1, "owner"),
    }


def test_replacing_a_document_deletes_the_old_one(index: Index) -> None:
    put(index, "a.md", "kiwi", "pear")
    put(index, "b.md", "kiwi pie")
    put(index, "a.md", "plum")
    assert [found(index, term) for term in ("kiwi", "pear", "plum")] == [["kiwi pie"], [], ["plum"]]
    assert index.terms(["kiwi", "pear", "plum"]) == {"kiwi": 1, "pear": 0, "plum": 1}
    assert (index.counts("").chunks, index.check(deep=True)) == (2, [])


def test_row_numbers_are_never_reused(index: Index) -> None:
    put(index, "a.md", "one", "two")
    index.remove(["a.md"])
    put(index, "a.md", "three")
    index.clear()
    put(index, "a.md", "four")
    assert list(index.chunks(range(10))) == [4]


def test_remove_returns_how_many_documents_existed(index: Index) -> None:
    put(index, "a.md", "one")
    put(index, "b.md", "two")
    assert (index.remove(["a.md", "nowhere.md"]), list(index.files())) == (1, ["b.md"])


def test_a_document_without_text_is_listed(index: Index) -> None:
    put(index, "empty.md")
    assert (list(index.files()), index.counts("").chunks, index.rows_without("any")) == (["empty.md"], 0, [])


def test_a_new_stat_is_stored_without_changing_the_text(index: Index) -> None:
    put(index, "a.md", "one")
    note, _ = document("a.md", "one")
    index.touch(Document(note.path, note.source, note.text, note.sha256, mtime_ns=99, size=note.size))
    assert (index.files()["a.md"].mtime_ns, list(index.chunks([1]))) == (99, [1])


def test_values_about_the_index_are_stored_and_replaced(index: Index) -> None:
    index.set_meta(model="one", signature="s")
    index.set_meta(model="two")
    assert [index.meta(key) for key in ("model", "signature", "unknown")] == ["two", "s", None]


# ---- transactions ---------------------------------------------------------------------------------------------


def test_a_rebuild_is_visible_only_after_its_commit(open_index: OpenIndex, index: Index) -> None:
    put(index, "old.md", "old kiwi")
    with contextlib.closing(open_index()) as other:
        with index.transaction():
            index.clear()
            put(index, "new.md", "new kiwi")
            put(index, "newer.md", "newer kiwi")
            assert (found(other, "kiwi"), list(other.files())) == (["old kiwi"], ["old.md"])
            assert sorted(found(index, "kiwi")) == ["new kiwi", "newer kiwi"]
        assert (sorted(found(other, "kiwi")), sorted(other.files())) == (
            ["new kiwi", "newer kiwi"],
            ["new.md", "newer.md"],
        )


def test_a_failed_rebuild_leaves_the_old_index(index: Index) -> None:
    put(index, "old.md", "old kiwi")
    with contextlib.suppress(ZeroDivisionError), index.transaction():
        index.clear()
        put(index, "new.md", "new kiwi")
        raise ZeroDivisionError
    assert (found(index, "kiwi"), index.check(deep=True)) == (["old kiwi"], [])


def test_a_snapshot_keeps_a_search_in_one_state(open_index: OpenIndex, index: Index) -> None:
    put(index, "a.md", "old kiwi")
    with contextlib.closing(open_index()) as other, index.snapshot():
        rows = [match.rowid for match in index.keyword(["kiwi"], limit=5)]
        put(other, "a.md", "new kiwi")
        assert [stored.chunk.text for stored in index.chunks(rows).values()] == ["old kiwi"]


# ---- keywords -------------------------------------------------------------------------------------------------


def test_any_term_finds_a_chunk_and_more_terms_rank_higher(index: Index) -> None:
    put(index, "a.md", "kiwi", "kiwi pear", "plum")
    for number in range(10):
        put(index, f"filler-{number}.md", "something else")
    assert found(index, "kiwi", "pear") == ["kiwi pear", "kiwi"]
    assert all(match.score > 0 for match in index.keyword(["kiwi", "pear", "someth"], limit=50))


def test_a_filter_that_all_pass_and_known_counts_change_nothing(index: Index) -> None:
    for number in range(30):  # many are alike: of equals the earlier comes first
        put(index, f"{number}.md", "kiwi " * (number % 3 + 1) + "pear " * (number % 2))
    terms = ["kiwi", "pear", "plum"]
    matches = index.keyword(terms, limit=12)
    assert [match.rowid for match in matches] == [6, 12, 18, 24, 30, 2, 8, 14, 20, 26, 4, 10]
    assert index.keyword(terms, limit=12, where=Filter(source="memory")) == matches
    assert index.keyword(terms, limit=12, known=index.terms(terms)) == matches


def test_chinese_is_found_inside_a_sentence_and_next_to_latin_letters(index: Index) -> None:
    put(index, "a.md", "昨天把GitHub备份迁移到新的数据库", "设置止损价")
    assert [found(index, term) for term in ("备份", "数据", "止损", "github")] == [
        ["昨天把GitHub备份迁移到新的数据库"],
        ["昨天把GitHub备份迁移到新的数据库"],
        ["设置止损价"],
        ["昨天把GitHub备份迁移到新的数据库"],
    ]


def headed(path: str, heading: str, text: str, date: str | None = None) -> tuple[Document, list[Chunk]]:
    return document(path)[0], [Chunk(path, path, "memory", 1, 1, text, (heading,), date)]


def test_headings_path_and_date_find_a_chunk(index: Index) -> None:
    note, chunks = headed("memory/lisbon.md", "Travel plans", "we ate well", "2026-02-08")
    index.replace(note, chunks)
    put(index, "b.md", "travel by train")
    assert [found(index, word) for word in ("plans", "lisbon", "8 Feb 2026")] == [["we ate well"]] * 3
    assert columns(chunks[0])[1] == "ate well"


def test_a_word_in_the_heading_weighs_more_than_one_in_the_text(index: Index) -> None:
    index.replace(*headed("a.md", "dinner", "travel"))
    index.replace(*headed("b.md", "travel", "dinner"))
    for number in range(10):
        put(index, f"filler-{number}.md", "other words")
    assert found(index, "travel") == ["dinner", "travel"]


def test_filters_by_source_and_by_path(index: Index) -> None:
    put(index, "memory/a.md", "kiwi a")
    put(index, "memory/ab.md", "kiwi ab", source="sessions")
    put(index, "memory/a%.md", "kiwi percent")
    cases = {
        Filter(source="sessions"): ["kiwi ab"],
        Filter(path_prefix="memory/a%"): ["kiwi percent"],
        Filter(path_prefix="memory/a", source="memory"): ["kiwi a", "kiwi percent"],
        Filter(path_prefix="memory/"): ["kiwi a", "kiwi ab", "kiwi percent"],
        Filter(path_prefix="nowhere"): [],
    }
    assert {where: sorted(found(index, "kiwi", where=where)) for where in cases} == cases


def test_no_terms_and_a_limit_of_zero_find_nothing(index: Index) -> None:
    put(index, "a.md", "kiwi")
    assert (index.keyword([], limit=5), index.keyword(["kiwi"], limit=0), index.terms([])) == ([], [], {})


HOSTILE = [
    '"',
    '""',
    "a OR b",
    "NEAR(",
    "title:x",
    "-x",
    "(",
    "*",
    "^a",
    "\0",
    "a\0b",
    "",
    " ",
    "\ud800",
    "AND",
    "{a}:",
]


@pytest.mark.parametrize("term", HOSTILE)
def test_fts_syntax_in_a_term_is_plain_text(index: Index, term: str) -> None:
    put(index, "a.md", "kiwi and pear")
    index.keyword([term], limit=5)
    assert found(index, term, "kiwi") == ["kiwi and pear"]
    assert index.terms([term, "kiwi"])["kiwi"] == 1


@given(terms=st.lists(st.text(max_size=30), max_size=20))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_strings_are_safe_terms(index: Index, terms: list[str]) -> None:
    assert set(index.terms(terms)) == set(terms)
    index.keyword(terms, limit=3, where=Filter(path_prefix="x"))


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
@example("\u13a0")  # a Cherokee letter, whose casefolded form is upper case
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_token_of_a_text_finds_it(index: Index, text: str) -> None:
    put(index, "a.md", text)
    _, body = columns(document("a.md", text)[1][0])
    assert all(len(index.keyword([token], limit=5)) == 1 for token in set(body.split(" ")) - {""})


def test_a_query_of_ten_thousand_terms_or_a_megabyte_is_bounded(index: Index) -> None:
    put(index, "a.md", "kiwi zork")
    assert len(index.keyword(["kiwi", *(f"term{n}" for n in range(10_000))], limit=5)) == 1
    assert index.keyword(["x" * 1_000_000, "(" * 1_000_000], limit=5) == []


def test_terms_beyond_the_budget_only_add_to_the_score(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoriter.store.keywords.MIN_BUDGET", 5)
    put(index, "many.md", *["blip filler"] * 30, *["filler filler"] * 70)
    put(index, "both.md", "blip zork")
    put(index, "one.md", "zork filler")
    assert found(index, "blip", "zork") == ["blip zork", "zork filler"]


def test_a_common_term_alone_is_searched_in_the_newest_rows(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoriter.store.keywords.MIN_BUDGET", 5)
    put(index, "many.md", *(f"common {number}" for number in range(100)))
    matches = index.keyword(["common"], limit=100)
    assert sorted(match.rowid for match in matches) == list(range(81, 101))  # a fifth of the rows


def test_the_total_is_the_number_of_chunks(index: Index) -> None:
    seen = [index.total()]
    with index.transaction():
        for number in range(5):
            put(index, f"{number}.md", *["one", "two"] * 60)
    seen.append(index.total())
    index.remove(["0.md", "1.md"])
    put(index, "2.md", "three")
    seen.append(index.total())
    index.clear()
    assert [*seen, index.total()] == [0, 600, 241, 0]


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


# ---- indexes, writers, locks ----------------------------------------------------------------------------------


def test_indexes_of_one_agent_are_separate(open_index: OpenIndex, index: Index) -> None:
    other = open_index("entries")
    put(index, "a.md", "kiwi")
    put_vector(other, "b.md", unit(*range(1, 9)), ALICE)
    assert (list(index.files()), list(other.files())) == (["a.md"], ["b.md"])
    assert (index.terms(["kiwi"]), other.terms(["kiwi"])) == ({"kiwi": 1}, {"kiwi": 0})
    assert index.nearest(unit(*range(1, 9)), ALICE, limit=3) == []
    other.clear()
    assert (index.total(), other.total()) == (1, 0)


def test_concurrent_writers_lose_nothing(open_index: OpenIndex, index: Index) -> None:
    def write(writer: int) -> None:
        with contextlib.closing(open_index()) as own:
            for number in range(8):
                put(own, f"{writer}-{number}.md", f"kiwi{number} zork", "second")

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (index.counts("").files, index.total(), index.check(deep=True)) == (32, 64, [])
    assert index.terms(["kiwi3", "zork", "second"]) == {"kiwi3": 4, "zork": 32, "second": 32}
    rows = {match.rowid for match in index.keyword(["zork", "second"], limit=100)}
    assert len(rows) == len(index.chunks(rows)) == 64


def test_a_lock_is_exclusive_and_has_a_name(open_index: OpenIndex, index: Index) -> None:
    other = open_index()
    with index.lock("sync", 1.0):
        with pytest.raises(LockTimeout), other.lock("sync", 0.0):
            pass
        with pytest.raises(LockTimeout), other.lock("sync", 0.05):
            pass
        with other.lock("vectors", 0.0):
            pass
    with other.lock("sync", 0.0):
        pass


# ---- erasure and damage ---------------------------------------------------------------------------------------


def test_erasing_deletes_vectors_that_no_chunk_uses(index: Index) -> None:
    put_vector(index, "a.md", unit(*range(1, 9)), ALICE)
    put_vector(index, "b.md", unit(*range(8, 0, -1)), ALICE)
    gone, here = (index.chunks([row])[row].chunk.hash for row in (1, 2))
    index.remove(["a.md"])
    assert (index.keeps_deleted, index.known(ALICE, [gone, here])) == (True, {gone, here})
    assert index.erase([gone, here], ALICE)
    assert (index.keeps_deleted, index.known(ALICE, [gone, here])) == (False, {here})
    assert index.check(deep=True) == []


def test_a_healed_index_is_empty_and_works(index: Index) -> None:
    put(index, "a.md", "kiwi")
    index.set_meta(model="x")
    index.heal("its pages are damaged")
    assert (index.healed, index.files(), index.total(), index.meta("model")) == (
        "its pages are damaged",
        {},
        0,
        None,
    )
    put(index, "a.md", "plum")
    assert (found(index, "plum"), index.check(deep=True)) == (["plum"], [])


def test_characters_that_a_database_may_refuse_are_indexed(index: Index) -> None:
    put(index, "a.md", "kiwi \0 null")
    assert [match.rowid for match in index.keyword(["kiwi"], limit=5)] == [1]
    put(index, "a.md", "plum")
    assert (index.terms(["kiwi", "null"]), index.check(deep=True)) == ({"kiwi": 0, "null": 0}, [])
