"""Cross-validation by group: what is tuned is chosen without the conversation that it is measured on.

The default weights were chosen while looking at these sets, so their figures are slightly optimistic. Here every group
(a conversation, a person) is left out once, the weights that are best on all other groups are chosen, and only the left
out group is measured with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

from evals.figures import Figures, difference, scores, summary
from evals.run import SetResult
from evals.variants import DEFAULT

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
