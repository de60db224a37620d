"""Fusion of the legs, and the steps from scores to a ranking."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoriter.records import Part
from memoriter.search.rank import (
    FUSIONS,
    Leg,
    Scored,
    above,
    apply_age,
    best,
    date_leg,
    diversify,
    score_rows,
    total_scores,
)

VALUES = st.dictionaries(st.integers(1, 40), st.floats(0, 1), max_size=20)
WEIGHT = st.floats(0.05, 0.95)


def item(row: int, score: float) -> Scored:
    return Scored(row, (Part("vector", score, 1.0, score),))


def legs(vector: dict[int, float], keyword: dict[int, float], weight: float = 0.7) -> list[Leg]:
    return [Leg("vector", weight, vector), Leg("keyword", 1 - weight, keyword)]


@pytest.mark.requirement("B6")
def test_the_weighted_sum_adds_the_values_of_the_legs() -> None:
    both = legs({1: 0.8, 2: 0.5}, {2: 1.0, 3: 0.4}, 0.75)
    assert score_rows(both, [1, 2, 3]) == [
        Scored(2, (Part("vector", 0.5, 0.75, 0.375), Part("keyword", 1.0, 0.25, 0.25))),
        Scored(1, (Part("vector", 0.8, 0.75, 0.8 * 0.75),)),
        Scored(3, (Part("keyword", 0.4, 0.25, 0.1),)),
    ]
    assert best(total_scores(both), 2) == [2, 1]


def test_reciprocal_ranks_give_the_first_row_of_a_leg_one_point() -> None:
    scores = total_scores(FUSIONS["rrf"](legs({1: 0.9, 2: 0.8}, {1: 0.2, 2: 0.1}, 0.5)))
    assert scores == {1: 1.0, 2: pytest.approx(61 / 62)}


@pytest.mark.requirement("B6")
@given(vector=VALUES, keyword=VALUES, weight=WEIGHT, name=st.sampled_from(sorted(FUSIONS)))
def test_every_fusion_keeps_all_rows_and_scores_between_zero_and_one(vector, keyword, weight, name) -> None:
    fused = FUSIONS[name](legs(vector, keyword, weight))
    scores = total_scores(fused)
    assert scores.keys() == vector.keys() | keyword.keys()
    assert all(0 <= score <= 1 + 1e-9 for score in scores.values())
    items = score_rows(fused, scores)
    assert {item.rowid: pytest.approx(item.score) for item in items} == scores
    assert [item.score for item in items] == sorted((item.score for item in items), reverse=True)


def test_a_date_in_the_query_counts_only_for_notes_of_that_date() -> None:
    dates = {1: "2026-02-08", 2: "2026-02-09", 3: "2025-02-08"}
    assert date_leg(["@02-08", "@02"], dates) == {1: 1.0, 2: 0.5, 3: 1.0}
    assert date_leg(["heron"], dates) == {}


def test_age_takes_at_most_half_of_a_score_and_nothing_from_undated_notes() -> None:
    today = date(2026, 2, 8)
    items = [item(1, 0.8), item(2, 0.8), item(3, 0.8), item(4, 0.8)]
    dates = {1: "2026-02-08", 2: "2026-01-09", 3: "1970-01-01", 4: None}
    result = {item.rowid: item.score for item in apply_age(items, dates, half_life_days=30, today=today)}
    assert result == {1: 0.8, 2: 0.8 * 0.75, 3: pytest.approx(0.4), 4: 0.8}


def test_the_threshold_keeps_exact_hits() -> None:
    items = [item(1, 0.9), item(2, 0.1), item(3, 0.1)]
    assert [item.rowid for item in above(items, 0.5, lambda item: item.rowid == 3)] == [1, 3]


def test_diversity_prefers_hits_that_differ_from_earlier_ones() -> None:
    same = np.array([1.0, 0.0], np.float32)
    vectors = {1: same, 2: same, 3: np.array([0.0, 1.0], np.float32)}
    items = [item(1, 0.9), item(2, 0.89), item(3, 0.5)]
    assert [item.rowid for item in diversify(items, vectors, diversity=0.5, limit=3)] == [1, 3, 2]
