"""Measure whether a search knows when nothing answers: `python -m lab.evals.silence [--split held-out]`.

`sets/misses` describes eight people. Half of the questions have an answer in the memory of the person. The others ask
about the same people and things, and no note answers them. Tune nothing on the held-out half.

A label is the level of the first hit's confidence, and it is right if this hit answers. The confidence of an answer is
the highest one of its first hits, as in `lab.evals`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lab.evals.everyday import SPLITS, Row, read_rows, share
from lab.evals.metrics import auroc
from lab.evals.options import default_cache, overrides
from lab.evals.run import Outcome, Setup, run_sets
from lab.evals.sets import OWN, EvalSet, find_sets, load_set
from lab.evals.variants import DEFAULT, Variant
from memoriter.records import level_of

NAME = "misses"
FOLDER = OWN / NAME
LEVELS = ("high", "medium", "low")


def half(split: str) -> EvalSet:
    """Return the people of one half."""
    groups = {row["group"] for row in read_rows(FOLDER, "queries") if row["split"] == split}
    whole = load_set(NAME, *find_sets(OWN)[NAME])
    return EvalSet(
        NAME,
        tuple(item for item in whole.items if item.group in groups),
        tuple(query for query in whole.queries if query.group in groups),
    )


def by_language(outcomes: Sequence[Outcome], items: Sequence[Row]) -> Mapping[str, Sequence[Outcome]]:
    """Return the outcomes by the language of the memory that was asked, after all of them."""
    written = {item["group"]: str(item["lang"]) for item in items}
    languages = sorted({written[outcome.query.group] for outcome in outcomes})
    parts = {name: [o for o in outcomes if written[o.query.group] == name] for name in languages}
    return {"all": outcomes, **parts}


def rows(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, str]]:
    """Yield the figures as text."""
    answerable = [outcome for outcome in outcomes if outcome.query.relevant]
    unanswerable = [outcome for outcome in outcomes if outcome.query.unanswerable]
    confident = [[outcome.confidence for outcome in part] for part in (answerable, unanswerable)]
    yield "AUROC of the answer's confidence", f"{auroc(*confident):.3f}"
    yield "answerable: the first hit is right", share(sum(map(_right, answerable)), len(answerable))
    for level in LEVELS:
        labelled = [outcome for outcome in outcomes if _label(outcome) == level]
        yield f"`{level}` that is right", share(sum(map(_right, labelled)), len(labelled))
    loud = sum(level_of(value) == "high" for value in confident[1])
    yield "unanswerable: a hit is `high`", share(loud, len(unanswerable))


def _right(outcome: Outcome) -> bool:
    return bool(outcome.judged) and outcome.judged[0][1]


def _label(outcome: Outcome) -> str | None:
    """Return the label of the first hit. An answer without a hit has none."""
    return level_of(outcome.judged[0][0]) if outcome.judged else None


def table(split: str, parts: Mapping[str, Sequence[Outcome]]) -> Iterator[str]:
    """Yield the lines of a table with one column for each language."""
    columns = [dict(rows(outcomes)) for outcomes in parts.values()]
    yield f"| {split} | {' | '.join(parts)} |"
    yield f"| --- |{' --- |' * len(parts)}"
    for name in columns[0]:
        yield f"| {name} | {' | '.join(column[name] for column in columns)} |"


def main() -> None:
    """Print one table per half."""
    parser = argparse.ArgumentParser(prog="python -m lab.evals.silence", description=__doc__)
    parser.add_argument("--split", choices=SPLITS, action="append", help="Measure only this half.")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="Override a setting.")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="Processes (default: one per core)."
    )
    parser.add_argument("--cache", type=Path, default=default_cache(), help="Folder for notes and vectors.")
    options = parser.parse_args()
    setup = Setup(options.cache, overrides(options.set), jobs=options.jobs)
    items = read_rows(FOLDER, "corpus")
    for split in options.split or SPLITS:
        [result] = run_sets([half(split)], [Variant(DEFAULT)], setup)
        print(*table(split, by_language(result.outcomes[DEFAULT], items)), "", sep="\n", flush=True)


if __name__ == "__main__":
    main()
