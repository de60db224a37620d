from __future__ import annotations

import time
from typing import Any, NamedTuple

import pytest

from evals.capture import LANGUAGES, figures
from memoriter.entries import Entries
from memoriter.entries.capture import CaptureLimits, capture
from memoriter.recall.render import Line, render


class Said(NamedTuple):
    role: str
    text: str
    trust: str = "owner"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_rules_keep_what_should_be_kept(language: str) -> None:
    found = figures(language)
    assert found.turns >= 120
    assert found.precision >= 0.9, found.wrong
    assert found.recall >= 0.7, found.missed


@pytest.mark.parametrize("language", ["unseen_en", "unseen_zh"])
def test_the_rules_hold_on_a_second_dialogue(language: str) -> None:
    found = figures(language)
    assert found.precision >= 0.9, found.wrong
    assert found.recall >= 0.7, found.missed


@pytest.mark.parametrize(
    ("text", "type_", "kept"),
    [
        ("Remember that I prefer tea.", "user_preference", "I prefer tea."),
        ("We decided to use Postgres.", "technical_decision", "We decided to use Postgres."),
        ("My phone number is +49 151 2345 6789.", "relationship", "My phone number is +49 151 2345 6789."),
        ("请记住我喜欢喝茶。", "user_preference", "我喜欢喝茶。"),
        ("我精通 Python 和 Go。", "skill", "我精通 Python 和 Go。"),
        ("我們決定使用 Kubernetes。", "technical_decision", "我們決定使用 Kubernetes。"),
    ],
)
def test_the_type_is_detected(text: str, type_: str, kept: str) -> None:
    (draft,) = capture([Said("user", text)])
    assert (draft.type, draft.text, draft.on_purpose) == (type_, kept, False)


def test_importance_is_raised_by_strong_words() -> None:
    (plain,) = capture([Said("user", "I live in Ghent.")])
    (strong,) = capture([Said("user", "Never deploy on a Friday.")])
    assert (plain.importance, strong.importance) == (3.8, 4.6)


def test_only_the_owners_turns_are_captured(entries: Entries) -> None:
    text = "I prefer tea over coffee."
    for said in (
        Said("assistant", text),
        Said("tool", text),
        Said("system", text),
        Said("user", text, "untrusted"),
    ):
        assert entries.capture([said]) == []
    assert [done.action for done in entries.capture([Said("user", text)])] == ["added"]


def test_at_most_three_statements_per_turn_and_no_secrets(entries: Entries) -> None:
    text = "I like tea. I like jam. I like bread. I like figs. My name is Mira."
    assert len(list(capture([Said("user", text)]))) == 3
    assert len(list(capture([Said("user", text)], limits=CaptureLimits(per_turn=1)))) == 1
    assert list(capture([Said("user", "I like tea. " * 60)])) == []
    (draft,) = capture([Said("user", "Remember that my key is ghp_0123456789abcdefghijABCDEFGHIJ012345")])
    assert "ghp_" not in draft.text


def test_recalled_text_fed_back_a_hundred_times_creates_nothing(entries: Entries) -> None:
    entries.capture([Said("user", "I prefer tea over coffee."), Said("user", "我住在成都。")])
    known = entries.list()
    block = render([Line(e.id, e.type, e.text) for e in known], "r1", "en")
    before = entries._store.seq()
    for _ in range(100):
        entries.capture([Said("user", block), Said("user", f"{block}\n\nthanks"), Said("assistant", block)])
    assert entries._store.seq() == before
    assert entries.list() == known


def test_every_pattern_takes_linear_time() -> None:
    hostile: list[Any] = [
        "my " * 6_000,
        "我" * 19_000,
        "a(" * 9_000,
        "." * 19_000,
        "every we " * 2_000,
        "<a" * 9_000,
    ]
    hostile += ["请记住" * 6_000, "i like " * 2_700, "x@" * 9_000, "+1" * 9_000]
    begun = time.process_time()
    for text in hostile:
        list(capture([Said("user", text)], limits=CaptureLimits(max_chars=20_000)))
    assert time.process_time() - begun < 5.0
