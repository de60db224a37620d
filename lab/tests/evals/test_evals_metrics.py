"""The measures, against values worked out by hand and against what must always hold."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.evals import metrics

RANKED = ["c", "a", "x", "b", "y"]
RELEVANT = ["a", "b", "z"]

rankings = st.lists(st.sampled_from("abcdefghijklmno"), unique=True)
relevants = st.lists(st.sampled_from("abcdefghijklmno"), unique=True, min_size=1)


def test_recall_hit_and_completeness_by_hand():
    assert metrics.recall(RANKED, RELEVANT, 2) == pytest.approx(1 / 3)
    assert metrics.recall(RANKED, RELEVANT, 5) == pytest.approx(2 / 3)
    assert metrics.hit(RANKED, RELEVANT, 1) == 0
    assert metrics.hit(RANKED, RELEVANT, 2) == 1
    assert metrics.complete(RANKED, RELEVANT, 5) == 0
    assert metrics.complete(RANKED, ["a", "b"], 4) == 1


def test_reciprocal_rank_by_hand():
    assert metrics.reciprocal_rank(RANKED, ["b", "y"]) == pytest.approx(1 / 4)
    assert metrics.reciprocal_rank(RANKED, ["nowhere"]) == 0
    assert metrics.reciprocal_rank([], ["a"]) == 0


def test_ndcg_by_hand():
    gain = 1 / math.log2(3) + 1 / math.log2(5)
    best = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert metrics.ndcg(RANKED, RELEVANT) == pytest.approx(gain / best)


def test_ndcg_is_one_when_ten_of_many_relevant_items_fill_the_first_ten():
    many = [str(number) for number in range(25)]
    assert metrics.ndcg(many, many, 10) == pytest.approx(1)


def test_a_facet_is_found_by_any_of_its_members():
    assert metrics.facet(RANKED, [["z", "c"], ["y"], ["q"]], 3) == pytest.approx(1 / 3)
    assert metrics.facet(RANKED, [["z", "c"], ["y"], ["q"]], 5) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("old", "new", "wins"),
    [
        (["x"], ["a"], 1),
        (["c"], ["a"], 0),
        (["gone"], ["y"], 1),  # the old one was not found at all
        (["c"], ["gone"], 0),
        (["gone"], ["gone too"], 0),
        (["c"], ["c"], 1),  # an item in both roles counts as new
    ],
)
def test_the_newer_statement_should_come_first(old, new, wins):
    assert metrics.newer_first(RANKED, old, new) == wins


def test_auroc_counts_ties_as_half():
    assert metrics.auroc([0.9, 0.5], [0.5, 0.1]) == pytest.approx((1 + 1 + 0.5 + 1) / 4)


def test_exact_precision_rewards_silence():
    assert metrics.exact_precision([], []) == 1
    assert metrics.exact_precision([], ["a"]) == 0
    assert metrics.exact_precision(["a", "x"], ["a"]) == 0.5
    assert metrics.exact_precision(["x"], []) == 0


def test_hits_that_stand_for_several_items_share_a_rank_and_repeats_go():
    assert metrics.expand([["a"], ["b", "a"], ["c", "b"]]) == ["a", "b", "c"]


def test_the_interval_is_repeatable_and_holds_the_mean():
    values = [0.0, 1.0] * 50
    low, high = metrics.interval(values)
    assert (low, high) == metrics.interval(values)
    assert 0.38 < low < 0.5 < high < 0.62
    assert metrics.interval([0.3, 0.3]) == pytest.approx((0.3, 0.3))


@given(rankings, relevants, st.integers(1, 20))
def test_every_measure_stays_between_nothing_and_all(ranked, relevant, k):
    values = [
        metrics.recall(ranked, relevant, k),
        metrics.hit(ranked, relevant, k),
        metrics.complete(ranked, relevant, k),
        metrics.ndcg(ranked, relevant, k),
        metrics.reciprocal_rank(ranked, relevant),
        metrics.facet(ranked, [[item] for item in relevant], k),
    ]
    assert all(0 <= value <= 1 + 1e-12 for value in values)
    assert metrics.facet(ranked, [[item] for item in relevant], k) == pytest.approx(values[0])


@given(rankings, relevants, st.integers(1, 20))
def test_moving_a_relevant_item_to_the_front_never_lowers_a_measure(ranked, relevant, k):
    better = [relevant[0], *(item for item in ranked if item != relevant[0])]
    assert metrics.ndcg(better, relevant, k) >= metrics.ndcg(ranked, relevant, k) - 1e-12
    assert metrics.recall(better, relevant, k) >= metrics.recall(ranked, relevant, k) - 1e-12
    assert metrics.reciprocal_rank(better, relevant) == 1
