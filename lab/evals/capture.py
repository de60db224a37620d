"""Measure precision and recall of the capture rules on labelled dialogues: `python -m lab.evals.capture`."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import NamedTuple

from memoriter.entries.capture import capture

SETS = Path(__file__).parent / "sets" / "capture"
LANGUAGES = ("en", "zh")


class Labelled(NamedTuple):
    """A turn, and whether a statement in it should be captured."""

    role: str
    trust: str
    keep: bool
    text: str


def turns(language: str) -> list[Labelled]:
    """Return the dialogue of one language."""
    with (SETS / f"{language}.tsv").open(encoding="utf-8") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [Labelled(row["role"], row["trust"], row["keep"] == "1", row["text"]) for row in rows]


class Figures(NamedTuple):
    """The results for one language."""

    turns: int
    precision: float
    recall: float
    wrong: tuple[str, ...]
    missed: tuple[str, ...]


def figures(language: str) -> Figures:
    """Measure one language."""
    found = turns(language)
    kept = [bool(list(capture([turn]))) for turn in found]
    right = sum(turn.keep and was for turn, was in zip(found, kept, strict=True))
    return Figures(
        len(found),
        right / sum(kept),
        right / sum(turn.keep for turn in found),
        tuple(turn.text for turn, was in zip(found, kept, strict=True) if was and not turn.keep),
        tuple(turn.text for turn, was in zip(found, kept, strict=True) if turn.keep and not was),
    )


def main() -> int:
    """Print the table."""
    print("| language | turns | precision | recall |\n| --- | --- | --- | --- |")
    for language in LANGUAGES:
        one = figures(language)
        print(f"| {language} | {one.turns} | {one.precision:.3f} | {one.recall:.3f} |")
        for text in (
            *(f"kept wrongly: {text}" for text in one.wrong),
            *(f"missed: {text}" for text in one.missed),
        ):
            print(f"  {text}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
