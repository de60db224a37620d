"""Turn outcomes into figures: plain data that can be written as JSON.

Means are over the queries with at least one relevant item. Intervals are 95 % bootstrap intervals over queries;
differences between variants are paired by query. Pages and plots are made elsewhere, from this data alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

import numpy as np

from lab.evals import metrics
from lab.evals.run import Outcome, SetResult
from lab.evals.sets import Query
from lab.evals.variants import DEFAULT, MODES

Figures = dict[str, Any]

#: With fewer queries, a share of pairs is not meaningful.
MIN_UNANSWERABLE = 5
#: Bins of the calibration curve.
BINS = 10

MEASURES = ("nDCG@10", "recall@5", "recall@10", "MRR", "facet@10", "hit@5", "hit@10", "all@10")
COMPARED = ("nDCG@10", "recall@10", "MRR", "facet@10")

Scores = Mapping[str, Mapping[str, float]]


def measures(query: Query, ranked: Sequence[str]) -> dict[str, float]:
    """Every measure of one ranking."""
    relevant = query.relevant
    return {
        "nDCG@10": metrics.ndcg(ranked, relevant, 10),
        "recall@5": metrics.recall(ranked, relevant, 5),
        "recall@10": metrics.recall(ranked, relevant, 10),
        "MRR": metrics.reciprocal_rank(ranked, relevant),
        "facet@10": metrics.facet(ranked, query.facets or [[item] for item in dict.fromkeys(relevant)], 10),
        "hit@5": metrics.hit(ranked, relevant, 5),
        "hit@10": metrics.hit(ranked, relevant, 10),
        "all@10": metrics.complete(ranked, relevant, 10),
    }


def figures(result: SetResult) -> Figures:
    """Everything that is known about one set."""
    scored = {name: scores(outcomes) for name, outcomes in result.outcomes.items()}
    return {
        "set": result.name,
        "model": result.model,
        "modes": {name: _variant(result.outcomes[name], scored[name]) for name in scored if name in MODES},
        "differences": {
            f"{DEFAULT} − {other}": difference(scored[DEFAULT], scored[other], COMPARED)
            for other in MODES
            if other != DEFAULT and DEFAULT in scored and other in scored
        },
        "parts": {
            name.removeprefix("without "): _part(result.outcomes[name], scored[name], scored[DEFAULT])
            for name in scored
            if name.startswith("without ") and DEFAULT in scored
        },
        "index": _index(result),
    }


def scores(outcomes: Iterable[Outcome]) -> dict[str, dict[str, float]]:
    """The measures of every query that has an answer, by its id."""
    return {o.query.id: measures(o.query, o.ranked) for o in outcomes if o.query.relevant}


def difference(ours: Scores, theirs: Scores, names: Sequence[str]) -> Figures:
    """Return our mean minus theirs, over the queries that both were asked."""
    both = [query for query in ours if query in theirs]
    return {name: summary([ours[query][name] - theirs[query][name] for query in both]) for name in names}


def summary(values: Sequence[float]) -> dict[str, float]:
    """A mean with its interval."""
    low, high = metrics.interval(values)
    return {"mean": fmean(values) if values else 0.0, "low": low, "high": high}


def _variant(outcomes: Sequence[Outcome], scored: Scores) -> Figures:
    return {
        "queries": len(scored),
        "measures": {name: summary([row[name] for row in scored.values()]) for name in MEASURES}
        if scored
        else {},
        "categories": _means(outcomes, scored, lambda query: query.category),
        "languages": _means(outcomes, scored, lambda query: query.language),
        "lifecycle": lifecycle(outcomes),
        "cpu_ms": latency(outcomes),
    }


def _part(outcomes: Sequence[Outcome], without: Scores, default: Scores) -> Figures:
    """What a part contributes: the default minus the search without it."""
    return {
        "queries": len(without),
        "contributes": difference(default, without, ("nDCG@10", "MRR")),
        "nDCG@10": fmean(row["nDCG@10"] for row in without.values()) if without else 0.0,
        "cpu_ms": latency(outcomes),
    }


def _means(outcomes: Sequence[Outcome], scored: Scores, key: Any) -> Figures:
    ids: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.query.relevant:
            ids.setdefault(key(outcome.query), []).append(outcome.query.id)
    return {
        label: {
            "queries": len(members),
            **{name: summary([scored[member][name] for member in members]) for name in ("nDCG@10", "MRR")},
        }
        for label, members in sorted(ids.items())
    }


# ---- order and silence ------------------------------------------------------------------------------------------


def lifecycle(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Measures of order and of silence, where a set carries their labels."""
    found: dict[str, float] = {}
    updates = [o for o in outcomes if {"original_info", "updated_info"} <= o.query.roles.keys()]
    if updates:
        found["fresh-order"] = fmean(
            metrics.newer_first(o.ranked, o.query.roles["original_info"], o.query.roles["updated_info"])
            for o in updates
        )
    answerable = [o.confidence for o in outcomes if o.query.relevant]
    for name, foreign in (("AUROC", False), ("AUROC, questions of another group", True)):
        unanswerable = [o.confidence for o in outcomes if o.query.unanswerable and o.query.foreign == foreign]
        if answerable and len(unanswerable) >= MIN_UNANSWERABLE:
            found[name] = metrics.auroc(answerable, unanswerable)
    exact = [o for o in outcomes if o.query.exact]
    if exact:
        found["exact precision"] = fmean(metrics.exact_precision(o.returned, o.query.relevant) for o in exact)
        found["exact sets"] = fmean(float(set(o.returned) == set(o.query.relevant)) for o in exact)
        found["recall of exact sets"] = fmean(
            metrics.recall(o.returned, o.query.relevant, len(o.returned)) for o in exact if o.query.relevant
        )
        found["silent when nothing fits"] = fmean(
            float(not o.returned) for o in exact if not o.query.relevant
        )
        found["forbidden returned"] = float(sum(len(set(o.returned) & set(o.query.forbidden)) for o in exact))
    return found


def calibration(outcomes: Sequence[Outcome]) -> list[dict[str, float]]:
    """How often the first hit is relevant, by its confidence. Every query counts, answerable or not."""
    pairs = [o.judged[0] for o in outcomes if o.judged]
    bins = []
    for number in range(BINS):
        low = number / BINS
        members = [(value, right) for value, right in pairs if min(int(value * BINS), BINS - 1) == number]
        if members:
            right = summary([float(is_right) for _, is_right in members])
            bins.append(
                {
                    "from": low,
                    "queries": len(members),
                    "confidence": fmean(value for value, _ in members),
                    "right": right["mean"],
                    "low": right["low"],
                    "high": right["high"],
                }
            )
    return bins


def calibration_error(bins: Sequence[Mapping[str, float]]) -> float:
    """Mean distance between confidence and share of right hits, weighted by queries (ECE)."""
    total = sum(one["queries"] for one in bins)
    return (
        sum(one["queries"] * abs(one["confidence"] - one["right"]) for one in bins) / total if total else 0.0
    )


# ---- cost -------------------------------------------------------------------------------------------------------


def latency(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """CPU milliseconds of the timed searches."""
    times = [outcome.cpu_ms for outcome in outcomes if outcome.cpu_ms is not None]
    return {"p50": median(times), "p95": float(np.percentile(times, 95))} if times else {}


def _index(result: SetResult) -> Figures:
    items = sum(build.items for build in result.builds)
    return {
        "items": items,
        "chunks": sum(build.chunks for build in result.builds),
        "cpu_s": sum(build.cpu_s for build in result.builds),
        "bytes_per_item": sum(build.index_bytes for build in result.builds) / max(items, 1),
    }
