"""Stems, lines and examples in docstrings."""

from __future__ import annotations

import doctest
import importlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoriter.text import split_lines, tokenize


@pytest.mark.parametrize(
    "family",
    [
        "backup backups",
        "study studies studied studying",
        "make makes making",
        "plan plans planned planning",
        "box boxes boxed",
        "schedule schedules scheduled scheduling",
        "use uses used using",
        "paint paints painted painting",
        "pass passes passed passing",
        "note notes noted noting",
        "quick quickly",
        "happy happily",
        "house houses",
        "decide decides decided deciding",
        "try tries tried trying",
    ],
)
def test_inflections_of_a_word_have_the_same_stem(family: str) -> None:
    assert len(set(tokenize(family))) == 1


@pytest.mark.parametrize(
    "pair", ["car care", "plan plane", "news new", "even evening", "hop hope", "bus busy"]
)
def test_different_words_have_different_stems(pair: str) -> None:
    assert len(set(tokenize(pair))) == 2


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("\n", [""]),
        ("a\nb", ["a", "b"]),
        ("a\r\nb\rc\n\n", ["a", "b", "c", ""]),
        ("a\x0bb\x0cc\x1cd\x85e\u2028f", ["a\x0bb\x0cc\x1cd\x85e\u2028f"]),
    ],
)
def test_lines_are_counted_as_an_editor_counts_them(text: str, lines: list[str]) -> None:
    assert split_lines(text) == lines


@given(st.text(st.sampled_from("ab\r\n\x0c")))
def test_splitting_removes_only_line_endings(text: str) -> None:
    assert "".join(split_lines(text)) == text.replace("\r", "").replace("\n", "")


@pytest.mark.parametrize("name", ["dates", "encoding", "redaction", "tokens", "words"])
def test_the_examples_in_docstrings_are_correct(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"memoriter.text.{name}")).failed == 0
