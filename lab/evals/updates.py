"""Measure what a memory says about things that changed: `python -m lab.evals.updates [--split held-out] [--changes]`.

`sets/updates` describes two homes. Each has 30 statements that a later one replaces, most of them without a word such
as "now", 20 facts that stayed as they were beside newer statements about something similar, and other notes with
changes of no consequence. The first home is for development. Tune nothing on the second.

`--changes` measures `sets/changes` instead, and `--judge` what the reader says about its pairs (`lab.evals.changes`).
`--fit` prints the weights of the rule that brings newer lines along.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator

from lab.evals import changes
from lab.evals.everyday import SPLITS, Home, homes, opened, share
from lab.evals.sets import OWN
from memoriter import Memory
from memoriter.records import Hit

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


def main() -> None:
    """Print one table per half."""
    parser = argparse.ArgumentParser(prog="python -m lab.evals.updates", description=__doc__)
    parser.add_argument("--split", choices=SPLITS, action="append", help="Measure only this half.")
    parser.add_argument("--changes", action="store_true", help="Measure sets/changes.")
    parser.add_argument(
        "--judge", action="store_true", help="Measure the reader on the pairs of sets/changes."
    )
    parser.add_argument("--fit", action="store_true", help="Fit the rule for newer lines, on development.")
    options = parser.parse_args()
    if options.fit:
        print(*changes.fit(), sep="\n")
        return
    if options.changes or options.judge:
        for line in changes.report(options.split or SPLITS, judge_only=options.judge):
            print(line, flush=True)
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
