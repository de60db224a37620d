"""Search results for a model: citations below snippets, within a budget of characters."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memoriter.recall.render import memory_section
from memoriter.records import Answer, Explanation, Hit
from memoriter.search.shape import MIN_CHARS, fit, for_prompt, shorten, shows_citations


def hit(snippet: str, citation: str | None = "memory/a.md#L1-L3") -> Hit:
    return Hit("memory/a.md", 1, 3, 0.5, snippet, "memory", citation, Explanation("", ()))


@pytest.mark.requirement("A7")
def test_citations_are_below_the_snippets() -> None:
    answer = for_prompt(Answer((hit("  one\ntwo\n"), hit("three", None)), "local", "m"), 4000)
    assert [one.snippet for one in answer.hits] == ["one\ntwo\n\nSource: memory/a.md#L1-L3", "three"]


def test_the_first_hit_that_does_not_fit_is_shortened_and_later_ones_dropped() -> None:
    hits = [hit("a" * 50, None), hit("word " * 40, None), hit("c", None)]
    kept = list(fit(hits, 100))
    assert [one.snippet for one in kept] == ["a" * 50, "word " * 9 + "word…"]


def test_a_very_small_budget_gives_nothing() -> None:
    assert list(fit([hit("a" * 100)], MIN_CHARS)) == []
    assert shorten("word " * 20, MIN_CHARS - 1) == ""


SOURCE = "\n\nSource: "
texts = st.text(st.characters(codec="utf-8"), max_size=300) | st.text(
    st.sampled_from("a é 鹭 e\u0301 👩\u200d👧 👍🏽 \n. क्षि"), max_size=300
)


@given(st.lists(texts, max_size=5), st.integers(0, 600))
@example(["e\u0301" * 100], 100)
def test_all_snippets_fit_together_and_no_citation_is_cut(snippets: list[str], budget: int) -> None:
    kept = list(fit([hit(text) for text in snippets], budget))
    assert sum(len(one.snippet) for one in kept) <= budget
    for one in kept:
        assert one.snippet.endswith(f"{SOURCE}memory/a.md#L1-L3")


@given(texts, st.integers(0, 200))
@example("\u200d\r", 24)
@example("e" + "\u0301" * 300, 60)
@example("🇨🇳" * 100, 61)
@example("👩\u200d👩\u200d👧\u200d👦" * 40, 33)
def test_a_cut_never_splits_a_character(text: str, room: int) -> None:
    short = shorten(text, room)
    if not short:
        return
    if len(text) <= room:
        assert short == text
        return
    kept = short.removesuffix("…")
    assert text.startswith(kept)
    rest = text[len(kept) :]
    if kept and rest:
        assert unicodedata.category(rest[0]) not in ("Mn", "Me", "Mc")
        assert rest[0] != "\u200d"
        assert kept[-1] != "\u200d" or rest[0].isascii()  # it does not join letters
        flags = len(kept) - len(kept.rstrip("🇦🇧🇨🇩🇪🇫🇬🇭🇮🇯🇰🇱🇲🇳🇴🇵🇶🇷🇸🇹🇺🇻🇼🇽🇾🇿"))
        assert not ("🇦" <= rest[0] <= "🇿" and flags % 2)


@pytest.mark.requirement("A7")
@pytest.mark.parametrize(
    ("mode", "key", "shown"),
    [
        ("on", "agent:main:telegram:group:1", True),
        ("off", "agent:main:main", False),
        ("auto", None, True),
        ("auto", "agent:main:main", True),
        ("auto", "agent:main:telegram:direct:1", True),
        ("auto", "agent:main:telegram:group:1", False),
        ("auto", "agent:main:slack:channel:1:thread:2", False),
    ],
)
def test_which_sessions_see_citations(mode, key: str | None, shown: bool) -> None:
    assert shows_citations(mode, key) is shown


@pytest.mark.requirement("B14")
def test_the_prompt_section_names_the_available_tools() -> None:
    english = memory_section({"memory_search": "search first."})
    assert english.startswith("## Memory recall\n\nBefore you answer")
    assert "- `memory_search`: search first." in english
    assert "memory_get" not in english
    assert "`Source:`" in english
    chinese = memory_section({"memory_get": "读取。"}, language="zh", citations=False)
    assert chinese.startswith("## 记忆召回\n\n凡是涉及")
    assert "- `memory_get`：读取。" in chinese
    assert "不要在回复中提到文件路径" in chinese
    assert memory_section({}) == ""
