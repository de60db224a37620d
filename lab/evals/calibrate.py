"""Fit the confidence of hits: `python -m lab.evals.calibrate --data DIR [--write]`.

Every hit of a search becomes a sample: its features, and whether it is relevant. Questions of one person are also asked
in the home of the next one, where nothing answers them. A logistic model is fitted for each combination of features
that a search can have: with and without the reranker, with other embedders, and with keywords only. Each set counts
equally, and no coefficient may be negative, because more agreement must never lower the confidence. A model is fitted
only to hits that have its features, as a search uses it: what the reranker did not read is judged without it.

The table shows figures of left-out groups: each group (a conversation, a person) is judged by a model that was fitted
to the others. `--write` fits to all of them and replaces the coefficients of the package.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lab.evals.metrics import auroc
from lab.evals.options import default_cache
from lab.evals.run import Opener, Setup, sampled, write_notes
from lab.evals.sets import OWN, EvalSet, Query, find_sets, load_set
from lab.evals.variants import Variant
from memoriter import Memory
from memoriter.search.shape import TABLE, features_of

Array = NDArray[np.float64]

#: Sets of statements. Chats are left out: their labels name one of several turns that answer, so that a right hit often
#: counts as wrong.
SETS = ("everyday", "memories", "precisionmembench")
#: Groups on which nothing may be tuned.
HELD_OUT = ("marcus",)
#: Sets whose questions are also asked in the home of another person.
EXCHANGED = ("memories",)
#: Queries of a group. More change the coefficients little.
SAMPLE = 80
#: Hits of a query that become samples.
DEPTH = 12
#: Bins of equal size for the calibration error.
BINS = 10
#: The strength of the pull towards zero, in samples.
RIDGE = 1.0

#: Name of the coefficients → features, and the settings of the searches.
MODELS: Mapping[str, tuple[tuple[str, ...], Variant]] = {
    "rerank+meaning": (("rerank", "meaning", "words", "gap"), Variant("reranked")),
    "rerank": (("rerank", "words", "gap"), Variant("reranked")),
    "meaning": (("meaning", "words", "gap"), Variant("first stage", {"search.rerank": False})),
    "words": (("words", "gap"), Variant("keywords", {"embedding.provider": "none"})),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """The hits of one query."""

    set: str
    group: str
    query: str
    #: One per hit, best first.
    features: tuple[Mapping[str, float], ...]
    relevant: tuple[bool, ...]
    answerable: bool

    def having(self, names: Sequence[str]) -> Sample:
        """Return the sample with the hits that have all of these features."""
        pairs = zip(self.features, self.relevant, strict=True)
        kept = [(hit, right) for hit, right in pairs if all(name in hit for name in names)]
        features, relevant = tuple(hit for hit, _ in kept), tuple(right for _, right in kept)
        return replace(self, features=features, relevant=relevant)

    def matrix(self, names: Sequence[str]) -> Array:
        """Return one row per hit: 1, and the named features."""
        rows = [[1.0, *(hit[name] for name in names)] for hit in self.features]
        return np.array(rows, dtype=float).reshape(-1, 1 + len(names))


# ---- samples ------------------------------------------------------------------------------------------------------


def samples_of(
    sets: Iterable[EvalSet], variant: Variant, cache: Path, tell: Callable[[str], None]
) -> Iterator[Sample]:
    """Yield the hits of every query of the sets."""
    for chosen in sets:
        groups = [group for group in chosen.groups() if group[0] not in HELD_OUT]
        for number, (group, items, queries) in enumerate(groups):
            asked = list(sampled(queries, SAMPLE))
            if chosen.name in EXCHANGED:
                others = sampled(groups[(number + 1) % len(groups)][2], SAMPLE)
                asked += [_stranger(query) for query in others]
            tell(f"{variant.name}: {chosen.name}/{group}, {len(asked)} queries")
            workspace = cache / "default" / chosen.name / group.replace("/", "_")
            by_path = write_notes(workspace, items)
            with tempfile.TemporaryDirectory(prefix="home-", dir=workspace.parent) as home:
                opener = Opener(workspace, Path(home), Setup(cache, {}))
                with opener.open(variant) as memory:
                    memory.sync()
                    yield from (_sample(memory, chosen.name, group, query, by_path) for query in asked)


def _stranger(query: Query) -> Query:
    return Query(f"{query.id} elsewhere", query.group, query.text, "elsewhere", (), abstain=True)


def _sample(memory: Memory, name: str, group: str, query: Query, by_path: Mapping[str, str]) -> Sample:
    hits = memory.search(query.text, max_results=DEPTH, min_score=0.0).hits
    best = max((hit.score for hit in hits), default=0.0)
    return Sample(
        name,
        group,
        query.id,
        tuple(features_of(hit.explain, best - hit.score) for hit in hits),
        tuple(by_path[hit.path] in query.relevant for hit in hits),
        bool(query.relevant),
    )


# ---- fitting ------------------------------------------------------------------------------------------------------


def fit(samples: Sequence[Sample], names: Sequence[str]) -> dict[str, float]:
    """Return the coefficients of a logistic model: Newton's method, a little ridge, and no negative coefficient."""
    sizes: dict[str, int] = {}
    for sample in samples:
        sizes[sample.set] = sizes.get(sample.set, 0) + len(sample.relevant)
    chosen = list(names)
    while True:
        features = np.concatenate([sample.matrix(chosen) for sample in samples])
        labels = np.concatenate([np.array(sample.relevant, dtype=float) for sample in samples])
        weights = np.concatenate(
            [np.full(len(sample.relevant), 1000 / max(1, sizes[sample.set])) for sample in samples]
        )
        found = newton(features, labels, weights)
        if (found[1:] >= 0).all():
            values = dict(zip(chosen, found[1:], strict=True))
            return {"bias": float(found[0])} | {name: float(values.get(name, 0.0)) for name in names}
        chosen.pop(int(np.argmin(found[1:])))


def newton(features: Array, labels: Array, weights: Array) -> Array:
    """Return the coefficients of a logistic model. The first feature is 1."""
    found = np.zeros(features.shape[1])
    ridge = np.diag([1e-3, *[RIDGE] * (len(found) - 1)])
    for _ in range(50):
        sure = _logistic(features @ found)
        slope = features.T @ (weights * (sure - labels)) + ridge @ found
        bend = (features * (weights * sure * (1 - sure))[:, None]).T @ features + ridge
        step = np.linalg.solve(bend, slope)
        found = found - step
        if np.abs(step).max() < 1e-9:
            break
    return found


def _logistic(values: Array) -> Array:
    sure: Array = 1 / (1 + np.exp(-values))
    return sure


def judged(samples: Sequence[Sample], names: Sequence[str]) -> list[tuple[Sample, Array]]:
    """Return each sample with the confidence of its hits, by a model that was fitted to the other groups of `SETS`."""
    found = []
    fitted = [sample for sample in samples if sample.set in SETS] or samples
    for fold in sorted({(sample.set, sample.group) for sample in samples}):
        inside = [sample for sample in samples if (sample.set, sample.group) == fold]
        others = [
            [sample for sample in each if (sample.set, sample.group) != fold] for each in (fitted, samples)
        ]
        model = fit(others[0] or others[1], names)
        coefficients = np.array([model["bias"], *(model[name] for name in names)])
        found += [(sample, _logistic(sample.matrix(names) @ coefficients)) for sample in inside]
    return found


# ---- figures ------------------------------------------------------------------------------------------------------


def figures(found: Sequence[tuple[Sample, Array]]) -> dict[str, float]:
    """Return how well confidence separates hits and queries, and how far it is from the shares of right hits."""
    sure = np.concatenate([values for _, values in found])
    right = np.concatenate([np.array(sample.relevant, dtype=bool) for sample, _ in found])
    best = {
        kind: [values.max(initial=0.0) for sample, values in found if sample.answerable == kind]
        for kind in (True, False)
    }
    return {
        "hits": auroc(sure[right], sure[~right]),
        "error": calibration_error(sure, right),
        "silence": auroc(best[True], best[False]) if best[False] else float("nan"),
        "unanswerable": len(best[False]),
    }


def calibration_error(sure: Array, right: NDArray[np.bool_]) -> float:
    """Return the mean difference between confidence and the share of right hits, over bins of equal size."""
    bins = np.array_split(np.argsort(sure), BINS)
    return float(
        sum(len(one) * abs(sure[one].mean() - right[one].mean()) for one in bins if len(one)) / len(sure)
    )


def table(name: str, found: Sequence[tuple[Sample, Array]]) -> str:
    """Return one row per set."""
    rows = [
        f"| {name} | AUROC of hits | calibration error | AUROC of silence | unanswerable |",
        "|" + " --- |" * 5,
    ]
    sets = list(dict.fromkeys(sample.set for sample, _ in found))
    for one in sets:
        row = figures([pair for pair in found if pair[0].set == one])
        rows.append(
            f"| {one} | {row['hits']:.3f} | {row['error']:.3f} | {row['silence']:.3f} | {row['unanswerable']} |"
        )
    return "\n".join(rows)


def main() -> int:
    """Fit every model, print its figures, and write the coefficients."""
    parser = argparse.ArgumentParser(prog="python -m lab.evals.calibrate", description=__doc__)
    parser.add_argument("--data", type=Path, help="Folder with the public sets.")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="Folder for notes and vectors.")
    parser.add_argument("--models", default=",".join(MODELS), help="Only these models, separated by commas.")
    parser.add_argument("--write", action="store_true", help="Replace the coefficients of the package.")
    options = parser.parse_args()
    known = {**(find_sets(options.data) if options.data else {}), **find_sets(OWN)}
    sets = [load_set(name, *known[name]) for name in SETS if name in known]
    coefficients = dict(json.loads(TABLE.read_text("utf-8"))["coefficients"])
    gathered: dict[str, list[Sample]] = {}
    for model in options.models.split(","):
        names, variant = MODELS[model]
        if variant.name not in gathered:
            tell: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
            gathered[variant.name] = list(samples_of(sets, variant, options.cache, tell))
        samples = [sample.having(names) for sample in gathered[variant.name]]
        coefficients[model] = {key: round(value, 4) for key, value in fit(samples, names).items()}
        print(table(model, judged(samples, names)), coefficients[model], "", sep="\n", flush=True)
    if options.write:
        TABLE.write_text(json.dumps({"coefficients": coefficients}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
