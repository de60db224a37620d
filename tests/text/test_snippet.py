"""Snippets show why a chunk was found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoriter.text import query_terms, snippet

ENGLISH = (
    "The morning was spent on mail. "
    "We decided to move the backups of the database to another region on 8 May 2023. "
    "Lunch was late. The rest of the day went into reviews and a long call about hiring."
)
CHINESE = "上午处理邮件，没有别的事。后来决定把数据库的备份方案改成每天凌晨执行。午饭吃得很晚。下午一直在开会讨论招聘。"


@pytest.mark.parametrize(
    ("text", "query", "max_chars", "expected"),
    [
        (ENGLISH, "database backup", 200, ENGLISH),
        (ENGLISH, "database backup", 60, "…move the backups of the database to another region on 8…"),
        (ENGLISH, "what happened on 2023-05-08", 40, "…on 8 May 2023. Lunch was late. The…"),
        (ENGLISH, "nothing of this", 40, "The morning was spent on mail. We…"),
        (CHINESE, "数据库备份", 24, "…后来决定把数据库的备份方案改成每天凌晨执行。…"),
        (ENGLISH, "backup", 1, "…"),
        (ENGLISH, "backup", 0, ""),
    ],
)
def test_a_snippet_shows_the_matches(text: str, query: str, max_chars: int, expected: str) -> None:
    assert snippet(text, query_terms(query), max_chars) == expected


def test_the_densest_matches_are_shown() -> None:
    text = (
        "A backup. " + "Nothing here. " * 20 + "The nightly database backup failed. " + "Nothing here. " * 20
    )
    assert "nightly database backup" in snippet(text, query_terms("nightly database backup"), 60)


def test_an_emoji_or_accented_letter_is_never_cut_in_two() -> None:
    family = "👨\u200d👩\u200d👧"
    assert [snippet(family * 20, [], size) for size in (7, 9, 11, 12)] == [
        f"{family}…",
        f"{family}…",
        f"{family}…",
        f"{family * 2}…",
    ]
    assert snippet("e\u0301" * 50, [], 9).strip("…") == "e\u0301" * 3


@given(st.text(), st.lists(st.text(min_size=1), max_size=4), st.integers(0, 60))
def test_a_snippet_is_a_part_of_the_text_and_never_too_long(
    text: str, terms: list[str], max_chars: int
) -> None:
    shown = snippet(text, terms, max_chars)
    assert len(shown) <= max_chars
    assert shown in text or shown.removeprefix("…").removesuffix("…") in text


@given(
    st.lists(st.sampled_from(["备份", "数据", "hello", "\n", "。", "x" * 30, " "]), max_size=80),
    st.integers(12, 50),
)
def test_a_matching_term_is_shown_if_it_fits(words: list[str], max_chars: int) -> None:
    text = "".join([*words, " needle ", *words])
    assert "needle" in snippet(text, query_terms("needle"), max_chars)
