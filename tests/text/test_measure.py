"""The length of a text in tokens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoriter.text import estimate_tokens


def test_scripts_are_weighted() -> None:
    texts = [
        "",
        "a",
        "four words of English",
        "数据库备份",
        "かな漢字",
        "백업",
        "Привет",
        "🎉🎉",
        "GitHub备份",
    ]
    assert [estimate_tokens(text) for text in texts] == [0, 1, 6, 5, 4, 2, 3, 2, 4]


@given(st.text(), st.text())
def test_more_text_never_has_fewer_tokens(text: str, more: str) -> None:
    assert (
        estimate_tokens(text) <= estimate_tokens(text + more) <= estimate_tokens(text) + estimate_tokens(more)
    )
