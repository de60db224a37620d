"""Make one score of what the legs say, and keep its parts: they sum to the score.

``weighted`` adds the legs' own values, so a score means the same for every query and a threshold can be set on it.
``rrf`` adds reciprocal ranks: it needs no common scale, but throws away how good a match is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recollect.records import Part

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


def weighted(legs: Sequence[Leg]) -> list[Scored]:
    """The sum of the legs' values."""
    total = sum(leg.weight for leg in legs)
    rows = {row for leg in legs for row in leg.values} if total else set()
    scored = [Scored(row, tuple(_part(leg, row, total) for leg in legs if row in leg.values)) for row in rows]
    return sorted(scored, key=lambda item: (-item.score, item.rowid))


def rrf(legs: Sequence[Leg]) -> list[Scored]:
    """The sum of the legs' reciprocal ranks, scaled so that the first in every leg has 1."""
    return weighted([Leg(leg.name, leg.weight, _rank_values(leg.values)) for leg in legs])


FUSIONS = {"weighted": weighted, "rrf": rrf}


def _part(leg: Leg, row: int, total: float) -> Part:
    weight = leg.weight / total
    return Part(leg.name, leg.values[row], weight, leg.values[row] * weight)


def _rank_values(values: Mapping[int, float]) -> dict[int, float]:
    order = sorted(values, key=lambda row: (-values[row], row))
    return {row: (RRF_K + 1) / (RRF_K + rank) for rank, row in enumerate(order, 1)}
