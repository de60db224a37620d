"""Keyword search in every store of a derived index. Each test runs on SQLite and on Postgres."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from store_samples import document, found, put

from memoriter.records import Chunk, Document
from memoriter.store import Filter, Index
from memoriter.store.keywords import columns

if TYPE_CHECKING:
    pass


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
