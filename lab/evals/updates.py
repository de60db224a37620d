"""Measure what a memory says about things that changed: `python -m lab.evals.updates [--split held-out] [--changes]`.

`sets/updates` describes two homes. Each has 30 statements that a later one replaces, most of them without a word such
as "now", 20 facts that stayed as they were beside newer statements about something similar, and other notes with
changes of no consequence. The first home is for development. Tune nothing on the second.

`--changes` measures `sets/changes` instead, and `--judge` what the reranker says about its pairs (`lab.evals.changes`).

`--fit` prints the coefficients of `memoriter.search.freshness`. It looks up statements of the first homes of
`sets/updates` and `sets/everyday` and some of `sets/memories`. A logistic model learns which newer statements replace
them, and which would hide a right answer.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lab.evals import changes
from lab.evals.calibrate import newton
from lab.evals.everyday import SPLITS, Home, homes, opened, read_rows, share
from lab.evals.sets import OWN
from memoriter import Memory
from memoriter.entries.relation import contradicts
from memoriter.records import Hit, Query
from memoriter.search.freshness import SIMILAR, Features, Lookup, compare_similar
from memoriter.search.rerank import bundled

FOLDER = OWN / "updates"


def measure(home: Home, memory: Memory) -> Counter[str]:
    """Ask every question of a home, and count."""
    counts = Counter[str]()
    for prompt in home.prompts:
        kind, wanted = prompt["category"], set(prompt["relevant"])
        others = home.related(prompt) - wanted if kind != "fact" else set()
        hits = memory.search(prompt["query"]).hits
        first, other = (_rank(home, hits, items) for items in (wanted, others))
        injected = [home.items_in(line.text) for line in memory.recall(prompt["query"]).lines]
        counts[kind] += 1
        counts[f"{kind}: first"] += first == 0
        counts[f"{kind}: before the other"] += first < other
        counts[f"{kind}: injected"] += any(wanted & items for items in injected)
        counts[f"{kind}: other injected"] += any(others & items for items in injected)
        counts[f"{kind}: marked"] += any(
            home.items_in(hit.snippet) & wanted for hit in hits if hit.superseded_by
        )
    return counts


def _rank(home: Home, hits: tuple[Hit, ...], items: set[str]) -> int:
    """Return the place of the first hit with one of these items; a large number if there is none."""
    return next((number for number, hit in enumerate(hits) if home.items_in(hit.snippet) & items), 99)


def rows(counts: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield the figures as text."""
    for name, part, whole in (
        ("new above old", "update: before the other", "update"),
        ("new statement is the first hit", "update: first", "update"),
        ("new statement injected", "update: injected", "update"),
        ("old statement injected", "update: other injected", "update"),
        ("old above new, asked about the past", "past: before the other", "past"),
        ("unchanged fact is the first hit", "fact: first", "fact"),
        ("unchanged fact marked as superseded", "fact: marked", "fact"),
    ):
        yield name, share(counts[part], counts[whole])


# ---- the model of a replacement -----------------------------------------------------------------------------------


#: Of the questions of `sets/memories`, every fourth is asked.
STEP = 4


def samples(home: Home, memory: Memory) -> Iterator[tuple[Features, bool]]:
    """Yield what is similar to a statement and newer: what replaces it, and what replaces neither it nor an answer."""

    def find_similar(line: str) -> Sequence[Hit]:
        return memory.search(Query(line, max_results=SIMILAR, min_score=0.0, rerank=False)).hits

    lookup = Lookup(contradicts, find_similar, bundled())
    texts = {item["id"]: item["text"] for item in home.items}
    asked = [prompt for prompt in home.prompts if prompt["category"] != "past"]
    answers = {item: prompt for prompt in asked for item in _compared(prompt)}
    for item, prompt in answers.items():
        hits = [hit for hit in find_similar(texts[item]) if item in home.items_in(hit.snippet)]
        for other, features in compare_similar(texts[item], hits[0], lookup) if hits else ():
            replaces = bool(home.items_in(other.snippet) & set(prompt["relevant"]) - {item})
            yield features, replaces


def _compared(prompt: Mapping[str, Any]) -> list[str]:
    """Return the statements that are looked up: the replaced ones, or else the answers, which nothing replaces."""
    return list(prompt.get("roles", {}).get("original_info") or prompt["relevant"])


def fitting_homes() -> Iterator[Home]:
    """Yield the homes to fit to. The people of `sets/memories` have one note per day."""
    yield from homes("development", FOLDER)
    yield from homes("development")
    rows = {name: read_rows(OWN / "memories", name) for name in ("corpus", "queries")}
    for group in sorted({row["group"] for row in rows["queries"]}):
        items = [
            {"kind": "log", "topic": row["id"], **row} for row in rows["corpus"] if row["group"] == group
        ]
        yield Home(group, items, [row for row in rows["queries"] if row["group"] == group][::STEP])


#: The model is fitted to features of about the same size, because the ridge treats them alike.
SCALES = (1.0, 4.0, 0.2, 0.3)


def fit(found: list[tuple[Features, bool]]) -> dict[str, float]:
    """Return the coefficients of a logistic model."""
    features = np.array([[1.0, *each] for each, _ in found]) * SCALES
    labels = np.array([float(label) for _, label in found])
    values = newton(features, labels, np.ones(len(found))) * SCALES
    return dict(
        zip(
            ("BIAS", "COSINE", "AHEAD", "REPLACES"), (round(float(value), 2) for value in values), strict=True
        )
    )


def main() -> None:
    """Print one table per half, or the coefficients."""
    parser = argparse.ArgumentParser(prog="python -m lab.evals.updates", description=__doc__)
    parser.add_argument("--split", choices=SPLITS, action="append", help="Measure only this half.")
    parser.add_argument("--fit", action="store_true", help="Print the coefficients of a replacement.")
    parser.add_argument("--changes", action="store_true", help="Measure sets/changes.")
    parser.add_argument(
        "--judge", action="store_true", help="Measure the reranker on the pairs of sets/changes."
    )
    options = parser.parse_args()
    if options.changes or options.judge:
        for line in changes.report(options.split or SPLITS, judge_only=options.judge):
            print(line, flush=True)
        return
    if options.fit:
        found = list[tuple[Features, bool]]()
        for home in fitting_homes():
            with opened(home, {"search.sync_before": False}) as memory:
                found += samples(home, memory)
        print(f"{sum(label for _, label in found)} of {len(found)} pairs:", fit(found))
        return
    for split in options.split or SPLITS:
        counts = Counter[str]()
        for home in homes(split, FOLDER):
            with opened(home, {"search.sync_before": False}) as memory:
                counts += measure(home, memory)
        print(f"| {split} | |\n| --- | --- |")
        print(*(f"| {name} | {value} |" for name, value in rows(counts)), "", sep="\n", flush=True)


if __name__ == "__main__":
    main()
