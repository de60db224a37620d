"""Make one score of what the legs say, and keep its parts: they sum to the score.

``weighted`` adds the legs' own values, so a score means the same for every query and a threshold can be set on it.
``rrf`` adds reciprocal ranks: it needs no common scale, but throws away how good a match is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memoriter.records import Part

#: Reciprocal rank fusion's constant: how slowly a rank's worth falls. 60 is the value of its authors.
RRF_K = 60


@dataclass(frozen=True, slots=True)
class Leg:
    """What one way of looking says about the candidates."""

    name: str
    weight: float  #: against the other legs; all weights together count as 1
    values: Mapping[int, float]  #: rowid → 0–1


@dataclass(frozen=True, slots=True)
class Scored:
    """A chunk row with the parts of its score."""

    rowid: int
    parts: tuple[Part, ...]

    @property
    def score(self) -> float:
        return sum(part.contribution for part in self.parts)


def worth(legs: Sequence[Leg]) -> dict[int, float]:
    """Every row's score; the parts of a few are made by `scored`, for thousands they would cost too much."""
    total = sum(leg.weight for leg in legs) or 1.0
    scores: dict[int, float] = {}
    for leg in legs:
        share = leg.weight / total
        if not scores:
            scores = {row: value * share for row, value in leg.values.items()}
            continue
        for row, value in leg.values.items():
            scores[row] = scores.get(row, 0.0) + value * share
    return scores


def best(scores: Mapping[int, float], limit: int) -> list[int]:
    """The rows with the highest scores, best first; of equals the earlier row."""
    return sorted(sorted(scores), key=scores.__getitem__, reverse=True)[:limit]


def scored(legs: Sequence[Leg], rows: Iterable[int]) -> list[Scored]:
    """These rows with the parts of their scores, best first."""
    total = sum(leg.weight for leg in legs) or 1.0
    shares = [(leg.name, leg.weight / total, leg.values) for leg in legs]
    found = [Scored(row, tuple(_parts(shares, row))) for row in rows]
    return sorted(found, key=lambda item: (-item.score, item.rowid))


def by_rank(legs: Sequence[Leg]) -> list[Leg]:
    """The legs with reciprocal ranks for values, scaled so that the first of a leg has 1."""
    return [Leg(leg.name, leg.weight, _rank_values(leg.values)) for leg in legs]


def by_value(legs: Sequence[Leg]) -> list[Leg]:
    """The legs as they are."""
    return list(legs)


FUSIONS = {"weighted": by_value, "rrf": by_rank}


def _parts(shares: Iterable[tuple[str, float, Mapping[int, float]]], row: int) -> list[Part]:
    return [
        Part(name, values[row], share, values[row] * share) for name, share, values in shares if row in values
    ]


def _rank_values(values: Mapping[int, float]) -> dict[int, float]:
    order = sorted(values, key=lambda row: (-values[row], row))
    return {row: (RRF_K + 1) / (RRF_K + rank) for rank, row in enumerate(order, 1)}
