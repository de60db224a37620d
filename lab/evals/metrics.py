"""The measures of retrieval: pure functions of a ranked list of item ids and of what is relevant.

Gains are binary. Every list is ranked best first, holds each id once and may be longer than k. How lists are made,
and how figures are averaged and printed, is not decided here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

Ids = Sequence[str]


def expand(hits: Iterable[Iterable[str]]) -> list[str]:
    """Ranked hits, each standing for one or more items, as one ranked list of items without repeats."""
    return list(dict.fromkeys(item for hit in hits for item in hit))


def recall(ranked: Ids, relevant: Ids, k: int) -> float:
    """Share of the relevant items among the first k."""
    return len(set(relevant) & set(ranked[:k])) / len(set(relevant))


def hit(ranked: Ids, relevant: Ids, k: int) -> float:
    """1 if any relevant item is among the first k."""
    return float(not set(relevant).isdisjoint(ranked[:k]))


def complete(ranked: Ids, relevant: Ids, k: int) -> float:
    """1 if every relevant item is among the first k ("all@k")."""
    return float(set(relevant) <= set(ranked[:k]))


def reciprocal_rank(ranked: Ids, relevant: Ids) -> float:
    """1 / rank of the first relevant item, 0 if there is none."""
    wanted = set(relevant)
    return next((1 / rank for rank, item in enumerate(ranked, 1) if item in wanted), 0.0)


def ndcg(ranked: Ids, relevant: Ids, k: int = 10) -> float:
    """Discounted gain of the first k, as a share of the best that any order could reach."""
    wanted = set(relevant)
    gain = sum(_discount(rank) for rank, item in enumerate(ranked[:k], 1) if item in wanted)
    return gain / sum(_discount(rank) for rank in range(1, min(len(wanted), k) + 1))


def facet(ranked: Ids, facets: Sequence[Ids], k: int) -> float:
    """Share of the facets with at least one member among the first k."""
    return sum(hit(ranked, members, k) for members in facets) / len(facets)


def newer_first(ranked: Ids, old: Ids, new: Ids) -> float:
    """Return 1 if the best new item ranks before the best old one ("fresh-order"). An item in both roles is new."""
    best_new = _rank(ranked, new)
    best_old = _rank(ranked, [item for item in old if item not in set(new)])
    return float(best_new < best_old)


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Chance that an answerable query is more confident than an unanswerable one; ties count half."""
    ordered = np.sort(np.asarray(negative, dtype=float))
    below = np.searchsorted(ordered, positive, side="left") + np.searchsorted(ordered, positive, side="right")
    return float(below.mean() / 2 / len(ordered))


def exact_precision(returned: Ids, expected: Ids) -> float:
    """Share of what was returned that was wanted; 1 when nothing was wanted and nothing came."""
    if not returned:
        return float(not expected)
    return len(set(returned) & set(expected)) / len(set(returned))


def interval(values: Sequence[float], *, rounds: int = 2000, seed: int = 7) -> tuple[float, float]:
    """95 % bootstrap interval of the mean, over the queries."""
    sample = np.asarray(values, dtype=float)
    if not len(sample):
        return math.nan, math.nan
    picks = np.random.default_rng(seed).integers(0, len(sample), size=(rounds, len(sample)))
    low, high = np.percentile(sample[picks].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)


def _rank(ranked: Ids, wanted: Ids) -> float:
    members = set(wanted)
    return next((float(rank) for rank, item in enumerate(ranked, 1) if item in members), math.inf)
