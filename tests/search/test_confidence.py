"""Confidence: one probability for each hit, silence when nothing fits, and identifiers that no note contains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoriter import Memory
from memoriter.records import HIGH_CONFIDENCE, MEDIUM_CONFIDENCE, Answer, Explanation, Hit, Part, level_of
from memoriter.search.shape import NEAREST, conclude, features_of, identifiers, judge, probability

QUESTION = "Where is the heron?"

OpenMemory = Callable[..., Memory]
Note = Callable[[str, str], Path]


def explained(cosine: float | None = None, coverage: float = 0.0, logit: float | None = None) -> Explanation:
    parts = [Part("keyword", coverage, 0.4, 0.4 * coverage)]
    if cosine is not None:
        parts.append(Part("vector", cosine, 0.6, 0.6 * cosine))
    return Explanation("weighted", tuple(parts), (), logit, coverage)


def hit(score: float, explain: Explanation, path: str = "memory/a.md") -> Hit:
    return Hit(path, 1, 1, score, f"text {path} {score}", "memory", f"{path}#L1-L1", explain)


share = st.floats(0, 1)


@given(
    st.none() | share,
    share,
    st.none() | st.floats(-30, 30),
    share,
)
def test_any_hit_has_a_probability(
    cosine: float | None, coverage: float, logit: float | None, behind: float
) -> None:
    for fitted in (True, False):
        features = features_of(explained(cosine, coverage, logit), behind, fitted=fitted)
        assert 0 <= probability(features) <= 1


@given(share, share, st.floats(-12, 12), share)
def test_more_agreement_never_lowers_the_confidence(
    cosine: float, coverage: float, logit: float, behind: float
) -> None:
    base = probability(features_of(explained(cosine, coverage, logit), behind))
    for better in (
        features_of(explained(min(1.0, cosine + 0.1), coverage, logit), behind),
        features_of(explained(cosine, min(1.0, coverage + 0.1), logit), behind),
        features_of(explained(cosine, coverage, logit + 1), behind),
        features_of(explained(cosine, coverage, logit), max(0.0, behind - 0.1)),
    ):
        assert probability(better) >= base


def test_levels_are_named_by_their_least_confidence() -> None:
    below = MEDIUM_CONFIDENCE - 0.01
    assert [level_of(value) for value in (None, 0.0, below, MEDIUM_CONFIDENCE, HIGH_CONFIDENCE, 1.0)] == [
        None,
        "low",
        "low",
        "medium",
        "high",
        "high",
    ]


def test_hits_are_left_out_where_relevance_ends() -> None:
    good, bad = hit(0.8, explained(0.8, 1.0, 8.0)), hit(0.1, explained(0.05, 0.0, -11.0), "memory/b.md")
    answer = Answer((good, bad), "local", "memoriter-embed-1")
    assert [one.path for one in conclude(judge(answer, QUESTION), cut=True).hits] == ["memory/a.md"]
    assert [one.level for one in conclude(judge(answer, QUESTION), cut=False).hits] == ["high", "low"]


@pytest.mark.requirement("X15")
def test_an_answer_without_a_relevant_hit_says_so_and_shows_the_nearest_lines() -> None:
    weak = tuple(hit(0.1, explained(0.05, 0.0, -11.0), f"memory/{number}.md") for number in range(6))
    answer = conclude(judge(Answer(weak, "local", "memoriter-embed-1"), QUESTION), cut=True)
    assert (answer.relevant, answer.notice) == (False, "Nothing relevant found. Nearest lines:")
    assert [one.level for one in answer.hits] == ["low"] * NEAREST
    nothing = conclude(judge(Answer((), "none", ""), QUESTION), cut=True)
    assert (nothing.relevant, nothing.notice) == (False, "Nothing relevant found.")


def test_hits_of_an_external_engine_have_no_confidence_and_stay() -> None:
    foreign = hit(0.4, Explanation("qmd query", (Part("qmd", 0.4, 1.0, 0.4),)))
    hits = (foreign, hit(0.4, foreign.explain, "memory/b.md"))
    answer = conclude(judge(Answer(hits, "qmd", ""), QUESTION), cut=True)
    assert (answer.hits, answer.relevant, answer.notice) == (hits, True, None)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("what's the status of OPS-1077?", ("OPS-1077",)),
        ("frame WTC117K, ERR_SOIL_77 and ERR_SOIL_77", ("WTC117K", "ERR_SOIL_77")),
        ("UTF-8, Wi-Fi, e-mail, 2026-02-08T10:30 and 1024", ()),
        ("单号 KR-20931 在哪里", ("KR-20931",)),
    ],
)
def test_identifiers_are_names_with_letters_and_digits(query: str, names: tuple[str, ...]) -> None:
    assert identifiers(query) == names


def test_an_identifier_that_no_note_contains_is_reported(open_memory: OpenMemory, note: Note) -> None:
    for number in range(1070, 1077):
        note(f"memory/{number}.md", f"OPS-{number}: the deploy was slow, status open.\n")
    memory = open_memory()
    answer = memory.search("status of OPS-1077")
    assert answer.unknown == ("OPS-1077",)
    assert not answer.relevant
    assert answer.notice is not None
    assert answer.notice.startswith("The memory does not contain OPS-1077. Nothing relevant found.")
    assert len(answer.hits) <= NEAREST
    known = memory.search("status of OPS-1075")
    assert (known.unknown, known.hits[0].path) == ((), "memory/1075.md")


def test_an_entry_makes_an_identifier_known(open_memory: OpenMemory, note: Note) -> None:
    note("memory/a.md", "OPS-1070: the deploy was slow.\n")
    memory = open_memory()
    assert memory.search("OPS-1077", source="entries").unknown == ("OPS-1077",)
    memory.entries.add("OPS-1077 is about the slow deploy", "fact")
    assert memory.search("OPS-1077").unknown == ()
    assert memory.search("OPS-1077", source="entries").unknown == ()


def test_a_minimum_score_replaces_the_cut(open_memory: OpenMemory, note: Note) -> None:
    for number in range(6):
        note(f"memory/{number}.md", f"heron {'marsh ' if number == 0 else ''}{'word ' * 9 * number}\n")
    memory = open_memory()
    every = memory.search("heron marsh", min_score=0.0)
    few = memory.search("heron marsh")
    assert {one.path for one in few.hits} < {one.path for one in every.hits}
    assert few.hits[0].confidence == every.hits[0].confidence


def test_one_scale_serves_notes_and_entries(open_memory: OpenMemory, note: Note) -> None:
    note("memory/a.md", "The heron stands in the marsh.\n")
    memory = open_memory()
    memory.entries.add("The heron stands in the marsh at dawn", "fact", importance=5)
    hits = memory.search("Where does the heron stand in the marsh?").hits
    assert {one.source for one in hits} == {"memory", "entries"}
    assert all(one.confidence is not None for one in hits)
    alone = memory.entries.search("Where does the heron stand in the marsh?").hits
    assert alone[0].confidence is not None


@pytest.mark.parametrize(
    ("query", "answers"),
    [
        ("Piotr", True),  # no meaning that a model knows
        ("gate", True),
        ("gate LH1234", True),
        ("物业", True),
        ("物業", True),  # in traditional characters
        ("Ludwika", False),
        ("gate Ludwika", False),
        ("is there anything about Piotr's weather?", False),  # a question, which no line answers
    ],
)
def test_a_line_with_all_keywords_of_a_query_is_relevant(
    open_memory: OpenMemory, note: Note, query: str, answers: bool
) -> None:
    note("memory/cabin.md", "Wifi at the cabin: guest network, ask Piotr for the code.")
    note("memory/trip.md", "Flight LH1234 leaves at 07:40 from gate B12.")
    note("memory/home.md", "小区的物业电话改成了分机 8043。")
    memory = open_memory(embedding__provider="local", search__rerank=True)
    memory.sync()
    answer = memory.search(query)
    assert answer.relevant is answers
    assert (answer.notice is None) is answers
