"""Measure how well two statements are recognised as same, refined, contradicted or different: `python -m evals.merge`.

Scores `memoriter.entries.relation` on `evals/sets/merge/pairs.tsv`, with the installed embedding model if there is one
and by words alone otherwise, beside the plain rule "cosine ≥ 0.95 is the same, ≥ 0.85 is merged".
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from memoriter.embedding import Embedder
from memoriter.entries.relation import relation

PAIRS = Path(__file__).parent / "sets" / "merge" / "pairs.tsv"
#: Written after the rules, which were not fitted to it.
UNSEEN = PAIRS.with_name("unseen.tsv")
KINDS = ("same", "refinement", "contradiction", "different")
MERGED = ("same", "refinement")


class Pair(NamedTuple):
    """An old statement, a new one, and how they relate."""

    label: str
    old: str
    new: str

    @property
    def chinese(self) -> bool:
        return any("\u3400" <= char <= "\u9fff" for char in self.old)


def pairs(path: Path = PAIRS) -> list[Pair]:
    """Return the labelled pairs."""
    with path.open(encoding="utf-8") as file:
        return [Pair(**row) for row in csv.DictReader(file, delimiter="\t")]


def cosines(found: Sequence[Pair], embedder: Embedder | None) -> list[float | None]:
    """Return the cosine of each pair; None without an embedder."""
    if embedder is None:
        return [None] * len(found)
    old = embedder.embed([pair.old for pair in found])
    new = embedder.embed([pair.new for pair in found])
    return [float(a @ b) for a, b in zip(old, new, strict=True)]


def judged(found: Sequence[Pair], near: Sequence[float | None]) -> list[tuple[Pair, str]]:
    """Return the verdict of `relation` on each pair."""
    return [(pair, relation(pair.old, pair.new, cos).kind) for pair, cos in zip(found, near, strict=True)]


def plain(found: Sequence[Pair], near: Sequence[float | None]) -> list[tuple[Pair, str]]:
    """Return the verdict of two thresholds on the cosine."""
    kinds = ["same" if (c or 0) >= 0.95 else "refinement" if (c or 0) >= 0.85 else "different" for c in near]
    return list(zip(found, kinds, strict=True))


class Score(NamedTuple):
    """Precision and recall."""

    precision: float
    recall: float


def score(results: Sequence[tuple[Pair, str]], kinds: Sequence[str]) -> Score:
    """Return precision and recall of one kind, or of several kinds together."""
    right = sum(pair.label in kinds and said in kinds for pair, said in results)
    said = sum(said in kinds for _, said in results)
    there = sum(pair.label in kinds for pair, _ in results)
    return Score(right / said if said else 1.0, right / there if there else 1.0)


def wrong_merges(results: Sequence[tuple[Pair, str]]) -> list[Pair]:
    """Return the pairs that were merged or superseded wrongly."""
    return [
        pair
        for pair, said in results
        if (said in MERGED and pair.label not in MERGED) or (said == "contradiction" and pair.label != said)
    ]


def table(results: Sequence[tuple[Pair, str]]) -> str:
    """Return the results as Markdown."""
    lines = ["| kind | precision | recall |", "| --- | --- | --- |"]
    for name, kinds in (*((kind, (kind,)) for kind in KINDS), ("merged (same or refinement)", MERGED)):
        one = score(results, kinds)
        lines.append(f"| {name} | {one.precision:.3f} | {one.recall:.3f} |")
    return "\n".join(lines)


def main() -> int:
    """Print the tables."""
    from memoriter.embedding import resolve

    embedder = resolve().embedder
    print(f"embedder: {embedder.identity if embedder else 'none (words only)'}")
    for path in (PAIRS, UNSEEN):
        found = pairs(path)
        near = cosines(found, embedder)
        results = judged(found, near)
        print(f"\n{path.stem}, {len(found)}: {dict(Counter(pair.label for pair in found))}\n")
        print(table(results), f"\n\nwrong merges: {len(wrong_merges(results))}", end="")
        print(f"; with the cosine alone: {len(wrong_merges(plain(found, near)))}" if embedder else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
