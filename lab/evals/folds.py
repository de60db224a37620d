"""Cross-validation by group: what is tuned is chosen without the conversation that it is measured on.

The default weights were chosen while looking at these sets, so their figures are slightly optimistic. Here every group
(a conversation, a person) is left out once, the weights that are best on all other groups are chosen, and only the left
out group is measured with them. The same holds for the coefficients of the confidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from lab.evals.calibrate import MODELS, SETS, Sample, judged
from lab.evals.figures import Figures, calibration, calibration_error, difference, scores, summary
from lab.evals.run import Outcome, SetResult
from lab.evals.variants import DEFAULT

MEASURE = "nDCG@10"

#: Set, group.
Group = tuple[str, str]
#: By group, by query.
Table = Mapping[Group, Mapping[str, float]]


def cross_validated(results: Sequence[SetResult], candidates: Sequence[str]) -> Figures:
    """Return, by set, the default's figure and the figure with weights chosen on the other groups."""
    tables = {name: _table(results, name) for name in candidates}
    groups = list(tables[candidates[0]])
    choices = {group: _best(tables, group) for group in groups}
    best = _best(tables, None)
    return {
        "candidates": list(candidates),
        "chosen": dict(Counter(choices.values()).most_common()),
        "sets": {
            result.name: _compare(result, tables, choices, best)
            for result in results
            if any(name == result.name for name, _ in groups)
        },
    }


def judged_by_others(results: Sequence[SetResult]) -> list[SetResult]:
    """Return the results with the confidence of a model that was fitted without the group of each question.

    The coefficients of the package are fitted to these sets too, so their own confidence would flatter them.
    """
    names = MODELS["rerank+meaning"][0]
    asked = {
        (result.name, outcome.query.id): outcome
        for result in results
        for outcome in result.outcomes.get(DEFAULT, ())
        if outcome.features
    }
    samples = [
        Sample(
            name,
            outcome.query.group,
            outcome.query.id,
            outcome.features,
            tuple(right for _, right in outcome.judged),
            bool(outcome.query.relevant),
        ).having(names)
        for (name, _), outcome in asked.items()
    ]
    if len({(sample.set, sample.group) for sample in samples}) < 2:
        return list(results)
    found = {(sample.set, sample.query): values.tolist() for sample, values in judged(samples, names)}
    return [
        replace(
            result,
            outcomes={
                **result.outcomes,
                DEFAULT: [
                    _rejudged(outcome, names, found.get((result.name, outcome.query.id)))
                    for outcome in result.outcomes.get(DEFAULT, ())
                ],
            },
        )
        for result in results
    ]


def calibrations(results: Sequence[SetResult]) -> Figures:
    """Return the calibration curves: of the sets of statements, to which confidence is fitted, and of the others."""
    kinds: dict[str, list[Outcome]] = {"statements": [], "others": []}
    for result in results:
        kinds["statements" if result.name in SETS else "others"] += result.outcomes.get(DEFAULT, ())
    bins = {kind: calibration(outcomes) for kind, outcomes in kinds.items()}
    return {kind: {"bins": one, "error": calibration_error(one)} for kind, one in bins.items()}


def _rejudged(outcome: Outcome, names: Sequence[str], values: Sequence[float] | None) -> Outcome:
    """Return an outcome with these values for the hits that have the features. The others keep their confidence."""
    if not values:
        return outcome
    left, pairs = iter(values), []
    for hit, (sure, right) in zip(outcome.features, outcome.judged, strict=True):
        pairs.append((next(left) if all(name in hit for name in names) else sure, right))
    return replace(outcome, confidence=max(sure for sure, _ in pairs), judged=tuple(pairs))


def _table(results: Sequence[SetResult], variant: str) -> dict[Group, dict[str, float]]:
    table: dict[Group, dict[str, float]] = {}
    for result in results:
        outcomes = result.outcomes[variant]
        of = {outcome.query.id: outcome.query.group for outcome in outcomes}
        for query, row in scores(outcomes).items():
            table.setdefault((result.name, of[query]), {})[query] = row[MEASURE]
    return table


def _best(tables: Mapping[str, Table], left_out: Group | None) -> str:
    """Return the candidate with the highest mean over sets, without one group."""
    return max(tables, key=lambda name: _mean_over_sets(tables[name], left_out))


def _mean_over_sets(table: Table, left_out: Group | None) -> float:
    by_set: dict[str, list[float]] = {}
    for group, values in table.items():
        if group != left_out:
            by_set.setdefault(group[0], []).extend(values.values())
    return fmean(fmean(values) for values in by_set.values()) if by_set else 0.0


def _compare(
    result: SetResult, tables: Mapping[str, Table], choices: Mapping[Group, str], best: str
) -> Figures:
    mine = [group for group in choices if group[0] == result.name]
    chosen = {
        query: {MEASURE: value} for group in mine for query, value in tables[choices[group]][group].items()
    }
    hindsight = [value for group in mine for value in tables[best][group].values()]
    default = scores(result.outcomes[DEFAULT])
    asked = {query: default[query] for query in chosen}
    return {
        "queries": len(chosen),
        "groups": len(mine),
        "default": summary([row[MEASURE] for row in asked.values()]),
        "left out": summary([row[MEASURE] for row in chosen.values()]),
        "difference": difference(chosen, asked, [MEASURE])[MEASURE],
        "hindsight": fmean(hindsight),
    }
