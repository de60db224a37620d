"""Turn outcomes into figures, and figures into JSON and Markdown.

Means are over the queries with at least one relevant item. Intervals are 95 % bootstrap intervals over queries;
differences between modes are paired by query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Any

import numpy as np

from evals import metrics
from evals.run import Outcome, SetResult
from evals.sets import Query

Figures = dict[str, object]

#: With fewer queries, a share of pairs is not meaningful.
MIN_UNANSWERABLE = 5

MEASURES = ("nDCG@10", "recall@5", "recall@10", "MRR", "facet@10", "hit@5", "hit@10", "all@10")


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
    """Everything that is known about one set, as plain data."""
    scored = {mode: _scores(outcomes) for mode, outcomes in result.outcomes.items()}
    return {
        "set": result.name,
        "model": result.model,
        "modes": {
            mode: {
                "queries": len(scored[mode]),
                "measures": _means(scored[mode].values()),
                "categories": _by_category(outcomes, scored[mode]),
                "lifecycle": lifecycle(outcomes),
                "cpu_ms": _latency(outcomes),
            }
            for mode, outcomes in result.outcomes.items()
        },
        "differences": {
            f"hybrid − {other}": _difference(scored["hybrid"], scored[other])
            for other in ("keyword", "vector")
            if "hybrid" in scored and other in scored
        },
        "index": _index(result),
    }


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
    unanswerable = [o.confidence for o in outcomes if o.query.abstain]
    if answerable and len(unanswerable) >= MIN_UNANSWERABLE:
        found["abstain-AUROC"] = metrics.auroc(answerable, unanswerable)
    exact = [o for o in outcomes if o.query.exact]
    if exact:
        found["exact precision"] = fmean(metrics.exact_precision(o.returned, o.query.relevant) for o in exact)
        found["exact sets"] = fmean(float(set(o.returned) == set(o.query.relevant)) for o in exact)
        found["silent when nothing fits"] = fmean(
            float(not o.returned) for o in exact if not o.query.relevant
        )
        found["forbidden returned"] = float(sum(len(set(o.returned) & set(o.query.forbidden)) for o in exact))
    return found


def _scores(outcomes: Iterable[Outcome]) -> dict[str, dict[str, float]]:
    return {o.query.id: measures(o.query, o.ranked) for o in outcomes if o.query.relevant}


def _means(scores: Iterable[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    rows = list(scores)
    return {name: _summary([row[name] for row in rows]) for name in MEASURES} if rows else {}


def _summary(values: Sequence[float]) -> dict[str, float]:
    low, high = metrics.interval(values)
    return {"mean": fmean(values), "low": low, "high": high}


def _by_category(outcomes: Sequence[Outcome], scores: Mapping[str, Mapping[str, float]]) -> Figures:
    ids: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.query.relevant:
            ids.setdefault(outcome.query.category, []).append(outcome.query.id)
    return {
        category: {
            "queries": len(members),
            **{name: fmean(scores[member][name] for member in members) for name in MEASURES},
        }
        for category, members in sorted(ids.items())
    }


def _difference(
    ours: Mapping[str, Mapping[str, float]], theirs: Mapping[str, Mapping[str, float]]
) -> Figures:
    return {
        name: _summary([ours[query][name] - theirs[query][name] for query in ours])
        for name in ("nDCG@10", "recall@10", "MRR", "facet@10")
        if ours
    }


def _latency(outcomes: Sequence[Outcome]) -> dict[str, float]:
    times = [outcome.cpu_ms for outcome in outcomes if outcome.cpu_ms is not None]
    return {"p50": median(times), "p95": float(np.percentile(times, 95))} if times else {}


def _index(result: SetResult) -> Figures:
    items = sum(build.items for build in result.builds)
    times = [build.cpu_s for build in result.builds]
    return {
        "items": items,
        "chunks": sum(build.chunks for build in result.builds),
        "cpu_s": None if None in times else sum(filter(None, times)),
        "bytes_per_item": sum(build.index_bytes for build in result.builds) / max(items, 1),
    }


# ---- Markdown -------------------------------------------------------------------------------------------------


def markdown(sets: Sequence[Figures]) -> str:
    """The tables of several sets, percent unless a unit is named."""
    parts = [
        "### Retrieval, by set and mode",
        _table(["set", "mode", "n", *MEASURES], [row for one in sets for row in _mode_rows(one)]),
        "### Differences, paired by query (95 % interval)",
        _table(
            ["set", "difference", "nDCG@10", "recall@10", "MRR", "facet@10"],
            [row for one in sets for row in _difference_rows(one)],
        ),
        "### nDCG@10 by category",
        _table(["set", "category", "n", *_modes(sets)], [row for one in sets for row in _category_rows(one)]),
        "### Order and silence",
        _table(["set", "measure", *_modes(sets)], [row for one in sets for row in _lifecycle_rows(one)]),
        "### Cost",
        _table(
            [
                "set",
                "items",
                "chunks",
                "index CPU s",
                "bytes/item",
                *(f"{m} p50 / p95 ms" for m in _modes(sets)),
            ],
            [_cost_row(one) for one in sets],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(head), ["---"] * len(head), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _modes(sets: Sequence[Figures]) -> list[str]:
    return list(dict.fromkeys(mode for one in sets for mode in _at(one, "modes")))


def _mode_rows(one: Figures) -> list[list[str]]:
    return [
        [
            str(one["set"]),
            mode,
            str(found["queries"]),
            *(_percent(found["measures"][name], spread=name == "nDCG@10") for name in MEASURES),
        ]
        for mode, found in _at(one, "modes").items()
        if found["measures"]
    ]


def _difference_rows(one: Figures) -> list[list[str]]:
    return [
        [str(one["set"]), name, *(_signed(value) for value in found.values())]
        for name, found in _at(one, "differences").items()
    ]


def _category_rows(one: Figures) -> list[list[str]]:
    modes = _at(one, "modes")
    categories = next(iter(modes.values()))["categories"]
    return [
        [
            str(one["set"]),
            category,
            str(found["queries"]),
            *(f"{100 * modes[mode]['categories'][category]['nDCG@10']:.1f}" for mode in modes),
        ]
        for category, found in categories.items()
    ]


def _lifecycle_rows(one: Figures) -> list[list[str]]:
    modes = _at(one, "modes")
    names = next(iter(modes.values()))["lifecycle"]
    return [
        [str(one["set"]), name, *(f"{modes[mode]['lifecycle'][name]:.2f}" for mode in modes)]
        for name in names
    ]


def _cost_row(one: Figures) -> list[str]:
    index = _at(one, "index")
    times = [found["cpu_ms"] for found in _at(one, "modes").values()]
    return [
        str(one["set"]),
        f"{index['items']:,}",
        f"{index['chunks']:,}",
        "–" if index["cpu_s"] is None else f"{index['cpu_s']:.1f}",
        f"{index['bytes_per_item']:,.0f}",
        *(f"{time['p50']:.1f} / {time['p95']:.1f}" for time in times),
    ]


def _percent(value: Mapping[str, float], *, spread: bool) -> str:
    half = f" ± {50 * (value['high'] - value['low']):.1f}" if spread else ""
    return f"{100 * value['mean']:.1f}{half}"


def _signed(value: Mapping[str, float]) -> str:
    return f"{100 * value['mean']:+.1f} ({100 * value['low']:+.1f} … {100 * value['high']:+.1f})"


def _at(one: Figures, key: str) -> dict[str, Any]:
    found = one[key]
    assert isinstance(found, dict)
    return found
