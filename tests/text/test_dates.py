"""Dates match in any form."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoriter.text import date_tokens, query_terms, tokenize

FULL = ["@2023-05-08", "@2023-05", "@05-08", "@05", "@2023"]
days = st.dates(datetime.date(1900, 1, 1), datetime.date(2099, 12, 31))
FIGURES = str.maketrans("0123456789", "〇一二三四五六七八九")
ENGLISH = [datetime.date(2000, month, 1).strftime("%B") for month in range(1, 13)]


def dates(text: str) -> list[str]:
    return [token for token in tokenize(text) if token.startswith("@")]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("2023-05-08", FULL),
        ("2023/5/8", FULL),
        ("2023.05.08", FULL),
        ("2023-05-08T10:00:00Z", FULL),
        ("2023年5月8日", FULL),
        ("２０２３年５月８日", FULL),
        ("2023 年 5 月 8 号", FULL),
        ("二〇二三年五月八日", FULL),
        ("二零二三年五月八號", FULL),
        ("二○二三年五月8日", FULL),
        ("8 May 2023", FULL),
        ("due in May", ["@05"]),
        ("since\nmarch it may rain", ["@03"]),
        ("it may march on", []),
        ("(October)", ["@10"]),
        ("1:56 pm on 8 May, 2023", FULL),
        ("May 8, 2023", FULL),
        ("the 8th of May 2023", FULL),
        ("MAY-08-2023", FULL),
        ("2023-05-08-slug.md", FULL),
        ("5月8日", ["@05-08", "@05"]),
        ("五月八号", ["@05-08", "@05"]),
        ("五月廿三日", ["@05-23", "@05"]),
        ("十二月三十一日", ["@12-31", "@12"]),
        ("去年十月", ["@10"]),
        ("8 May", ["@05-08", "@05"]),
        ("May 8th", ["@05-08", "@05"]),
        ("2023年5月", ["@2023-05", "@05", "@2023"]),
        ("May 2023", ["@2023-05", "@05", "@2023"]),
        ("in May 2023", ["@2023-05", "@05", "@2023"]),
        ("2023-05", ["@2023-05", "@05", "@2023"]),
        ("5月份", ["@05"]),
        ("since May", ["@05"]),
        ("in September", ["@09"]),
        ("2023年", ["@2023"]),
        ("in 2023", ["@2023"]),
        ("May I come in? You may. Maybe", []),
        ("2023-13-45", []),
        ("13月", []),
        ("三月三十五日", []),
        ("三个月、二十月、星期三月考", []),
        ("0月0日", []),
        ("1099-01-01", []),
        ("192.168.20.19 and 12023-05-08", []),
    ],
)
def test_a_date_gives_a_token_for_each_part(text: str, tokens: list[str]) -> None:
    assert dates(text) == tokens


def in_chinese(number: int) -> str:
    """Return a number up to 99 in Chinese numerals by value: 十, 十一, 二十."""
    tens, ones = divmod(number, 10)
    figures = " 一二三四五六七八九"
    ten = "" if not tens else "十" if tens == 1 else f"{figures[tens]}十"
    return ten + (figures[ones] if ones else "")


@given(days)
def test_all_forms_of_a_date_give_the_same_tokens(day: datetime.date) -> None:
    month = ENGLISH[day.month - 1]
    written = [
        day.isoformat(),
        f"{day.year}/{day.month}/{day.day}",
        f"{day.year}年{day.month}月{day.day}日",
        f"{str(day.year).translate(FIGURES)}年{in_chinese(day.month)}月{in_chinese(day.day)}日",
        f"{day.day} {month} {day.year}",
        f"{month} {day.day}, {day.year}",
        f"{month[:3]}-{day.day:02}-{day.year}",
    ]
    assert [dates(text) for text in written] == [date_tokens(day.isoformat())] * len(written)


@given(days)
def test_a_date_without_a_year_finds_a_note_of_that_day(day: datetime.date) -> None:
    note = set(date_tokens(day.isoformat()))
    asked = [f"{day.month}月{day.day}日发生了什么", f"What happened on {day.day} {ENGLISH[day.month - 1]}?"]
    assert all(f"@{day.month:02}-{day.day:02}" in note & set(query_terms(query)) for query in asked)
