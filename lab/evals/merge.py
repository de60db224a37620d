"""Measure how well the relation of two statements is recognised: `python -m lab.evals.merge`.

Scores `memoriter.entries.relation` on the labelled pairs in `lab/evals/sets/merge/`, by words alone and with the
installed embedding model and the reader of changes, beside the plain rule "cosine ≥ 0.95 is the same, ≥ 0.85 is
merged". The rules were fitted to the development half. The sentences of the held-out half are about other things. Its
totals were seen while rules changed, so it is not blind.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from memoriter.embedding import Embedder
from memoriter.entries import merge
from memoriter.entries.drafts import Draft
from memoriter.entries.relation import relation
from memoriter.search.changes import NEAR, change, reader

SETS = Path(__file__).parent / "sets" / "merge"
HALVES = ("development", "held_out")
LANGUAGES = ("en", "zh")
MERGED = ("same", "part", "refinement")


class Pair(NamedTuple):
    """An old statement, a new one, how they relate, and what the pair is about."""

    label: str
    about: str
    old: str
    new: str


def pairs(half: str, language: str) -> list[Pair]:
    """Return the labelled pairs of one half in one language."""
    with (SETS / f"{half}_{language}.tsv").open(encoding="utf-8") as file:
        return [Pair(**row) for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]


def cosines(found: Sequence[Pair], embedder: Embedder | None) -> list[float | None]:
    """Return the cosine of each pair; None without an embedder."""
    if embedder is None:
        return [None] * len(found)
    old = embedder.embed([pair.old for pair in found])
    new = embedder.embed([pair.new for pair in found])
    return [float(a @ b) for a, b in zip(old, new, strict=True)]


def losses(pair: Pair, cosine: float | None) -> list[str]:
    """Return the statements of a pair that are neither in force nor in a history when both were made."""
    known, draft = Draft(pair.old).entry(0.0), Draft(pair.new)
    verdict = merge.judge(draft, [merge.Neighbour(known, cosine)])
    edits = merge.edits(verdict, draft, 1.0)
    states = [state for edit in edits for state in (edit.before, edit.after) if state]
    kept = {known.text} if verdict.action == "add" else set()
    kept |= {state.text for state in states} | {edit.said for edit in edits if edit.said}
    return [text for text in (pair.old, pair.new) if text not in kept]


Judged = tuple[Pair, str]


def judged(found: Sequence[Pair], near: Sequence[float | None]) -> list[Judged]:
    """Return the verdict on each pair: of `relation`, and with cosines also of the reader of changes."""
    return [(pair, _kind(pair, cosine)) for pair, cosine in zip(found, near, strict=True)]


def _kind(pair: Pair, cosine: float | None) -> str:
    kind = relation(pair.old, pair.new, cosine).kind
    is_read = kind == "different" and cosine is not None and cosine >= NEAR
    return "contradiction" if is_read and change(reader(), pair.old, pair.new)[0] == "retired" else kind


def plain(found: Sequence[Pair], near: Sequence[float | None]) -> list[Judged]:
    """Return the verdict of two thresholds on the cosine."""
    kinds = ["same" if (c or 0) >= 0.95 else "refinement" if (c or 0) >= 0.85 else "different" for c in near]
    return list(zip(found, kinds, strict=True))


def wrong_merges(results: Sequence[Judged]) -> list[Pair]:
    """Return the pairs that were merged or superseded wrongly."""
    return [
        pair
        for pair, said in results
        if (said in MERGED and pair.label not in MERGED) or (said == "contradiction" and pair.label != said)
    ]


def missed(results: Sequence[Judged], label: str) -> list[Pair]:
    """Return the pairs with a label that were taken for different statements."""
    return [pair for pair, said in results if pair.label == label and said == "different"]


def row(name: str, results: Sequence[Judged], lost: int | None) -> str:
    """Return one line of the table."""
    counts = Counter(pair.label for pair, _ in results)
    wrong = len(wrong_merges(results))
    cells = [
        name,
        str(len(results)),
        "–" if lost is None else str(lost),
        f"{wrong} ({wrong / len(results):.1%})",
        *(
            f"{len(missed(results, label))} of {counts[label]}"
            for label in ("contradiction", "same", "refinement")
        ),
    ]
    return f"| {' | '.join(cells)} |"


def table(embedder: Embedder | None) -> str:
    """Return the results as Markdown."""
    lines = [
        "| set | pairs | losses | wrong merges | missed updates | missed duplicates | missed refinements |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for half in HALVES:
        for language in LANGUAGES:
            found = pairs(half, language)
            name = f"{half.replace('_', '-')}, {language}"
            for words, model in (("words alone", None), ("with the model", embedder)):
                if words == "words alone" or model:
                    near = cosines(found, model)
                    lost = sum(len(losses(pair, cos)) for pair, cos in zip(found, near, strict=True))
                    lines.append(row(f"{name}, {words}", judged(found, near), lost))
            if embedder:
                lines.append(row(f"{name}, cosine alone", plain(found, near), None))
    return "\n".join(lines)


def main() -> int:
    """Print the table."""
    from memoriter.embedding import resolve

    embedder = resolve().embedder
    print(f"embedder: {embedder.identity if embedder else 'none (words only)'}\n")
    print(table(embedder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
