from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from store_samples import ALICE, by_hand, document, put, unit

from memoriter.errors import StoreBroken, StoreError
from memoriter.records import Chunk, Document, Identity
from memoriter.store import Counts, FileRow, Filter, Index, StoredChunk, open_index
from memoriter.store.keywords import columns
from memoriter.text import tokenize

ANYWHERE = Filter()


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return open_index(tmp_path)


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


def test_a_rebuild_is_visible_only_after_its_commit(tmp_path: Path, index: Index) -> None:
    put(index, "old.md", "old kiwi")
    with open_index(tmp_path) as other:
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


def test_a_snapshot_keeps_a_search_in_one_state(tmp_path: Path, index: Index) -> None:
    put(index, "a.md", "old kiwi")
    with open_index(tmp_path) as other, index.snapshot():
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
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_strings_are_safe_terms(index: Index, terms: list[str]) -> None:
    assert set(index.terms(terms)) == set(terms)
    index.keyword(terms, limit=3, where=Filter(path_prefix="x"))


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
@example("\u13a0")  # a Cherokee letter, whose casefolded form is upper case
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    for number in range(100):
        put(index, f"{number}.md", "blip filler" if number < 30 else "filler filler")
    put(index, "both.md", "blip zork")
    put(index, "one.md", "zork filler")
    assert found(index, "blip", "zork") == ["blip zork", "zork filler"]


def test_a_common_term_alone_is_searched_in_the_newest_rows(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoriter.store.keywords.MIN_BUDGET", 5)
    for number in range(100):
        put(index, f"{number}.md", f"common {number}")
    matches = index.keyword(["common"], limit=100)
    assert sorted(match.rowid for match in matches) == list(range(81, 101))  # a fifth of the rows


def test_the_total_is_the_number_of_chunks(index: Index) -> None:
    seen = [index.total()]
    with index.transaction():
        for number in range(300):
            put(index, f"{number}.md", "one", "two")
    seen.append(index.total())
    index.remove(["0.md", "1.md"])
    put(index, "2.md", "three")
    seen.append(index.total())
    index.clear()
    assert [*seen, index.total()] == [0, 600, 595, 0]


def test_the_frequency_of_a_common_term_is_cached_until_enough_rows_are_added(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoriter.store.keywords.COMMON_TERM_CHUNKS", 50)
    put(index, "many.md", *["zork"] * 100)
    put(index, "few.md", *["blip"] * 10)
    seen = [index.terms(["zork", "blip"])]
    put(index, "one.md", "zork blip")
    seen.append(index.terms(["zork", "blip"]))
    put(index, "more.md", *["zork blip"] * 5)
    seen.append(index.terms(["zork", "blip"]))
    index.clear()
    put(index, "new.md", "zork")
    assert [*seen, index.terms(["zork", "blip"])] == [
        {"zork": 100, "blip": 10},
        {"zork": 100, "blip": 11},
        {"zork": 106, "blip": 16},
        {"zork": 1, "blip": 0},
    ]


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


def test_without_an_embedder_no_chunk_lacks_a_vector(index: Index) -> None:
    put(index, "a.md", "one")
    assert (index.rows_without(""), index.rows_without("m")) == ([], [1])


# ---- the rest -------------------------------------------------------------------------------------------------


def test_an_unknown_engine_is_rejected_with_the_supported_names(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"Unknown vector engine 'faiss'\. Supported: scan, sqlite-vec"):
        open_index(tmp_path, engine="faiss")


def test_a_missing_extension_names_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(StoreError, match=r"pip install 'memoriter\[sqlite-vec\]'"):
        open_index(tmp_path, engine="sqlite-vec")


def test_check_finds_contradictions_between_tables(tmp_path: Path, index: Index) -> None:
    put(index, "a.md", "one", "two")
    put(index, "b.md", "three")
    with by_hand(index.path) as connection:
        connection.execute("delete from files where path = 'b.md'")
        connection.execute("delete from chunks where rowid = 1")
        connection.execute("update chunks set model = 'm' where rowid = 2")
    assert index.check() == [
        "1 keyword rows have no chunk",
        "1 chunks have no file",
        "1 chunks have lost their vector",
    ]


def test_check_is_not_misled_by_the_cache_of_a_reader(tmp_path: Path, index: Index) -> None:
    for number in range(40):
        put(index, f"{number}.md", *[f"zork number{number * line}" for line in range(20)])
        index.keyword(["zork"], limit=5)
    with open_index(tmp_path) as other:
        other.keyword(["zork"], limit=5)
        index.remove([f"{number}.md" for number in range(30)])
        assert (other.check(), other.check(deep=True), index.check()) == ([], [], [])


def test_unreadable_headings_are_damage(index: Index) -> None:
    put(index, "a.md", "one")
    with by_hand(index.path) as connection:
        connection.execute("update chunks set headings = '[\"x'")
    with pytest.raises(StoreBroken, match="Chunk 1 of the index cannot be read"):
        index.chunks([1])


def test_scrub_erases_every_byte_of_removed_text(tmp_path: Path, index: Index) -> None:
    words = [f"word{number}" for number in range(500)]
    for number in range(60):
        secret = "zqsentinelqz 机密" if number == 30 else ""
        put(index, f"{number}.md", " ".join(words[number : number + 90]), f"{secret} and more")

    def copies() -> int:
        held = [place.read_bytes() for place in tmp_path.glob("index.db*")]
        return sum(data.count(b"zqsentinelqz") + data.count("机密".encode()) for data in held)

    index.close()  # only so may anybody but SQLite open the file
    seen = [copies() > 0]
    with open_index(tmp_path) as again:
        again.remove(["30.md"])
    seen.append(copies() > 0)
    with open_index(tmp_path) as again:
        assert again.scrub()
    assert [*seen, copies() > 0] == [True, True, False]  # removing alone would not do


def test_scrub_reports_when_a_reader_keeps_the_log(tmp_path: Path) -> None:
    index = open_index(tmp_path, timeout_s=0.05)
    put(index, "a.md", "one")
    with open_index(tmp_path) as other, other.snapshot():
        other.counts("")
        put(index, "b.md", "two")
        assert not index.scrub()
    assert index.scrub()


def test_the_size_includes_database_and_log(index: Index) -> None:
    put(index, "a.md", "one")
    assert index.size() == sum(
        (index.path.parent / name).stat().st_size for name in ("index.db", "index.db-wal")
    )


def test_keywords_do_not_load_numpy(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from memoriter.store import open_index\n"
        f"index = open_index(Path({str(tmp_path)!r})); index.keyword(['a'], limit=3); index.files(); index.check()\n"
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_cache_and_chunks_name_an_identity_the_same_way(index: Index) -> None:
    vectors = {"h": unit(*range(1, 9))}
    for identity in (ALICE, Identity("p/x", "m y", 8), Identity("p", "m", 8, "short")):
        note, chunks = document(f"{identity}.md", f"text of {identity}")
        index.save(identity, {chunks[0].hash: vectors["h"]})
        index.replace(note, chunks, identity=identity)
    assert index.prune(0) == 0  # all three are in use
