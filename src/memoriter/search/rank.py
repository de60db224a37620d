"""From the values of the legs to a ranking: fuse, age, filter, diversify.

A score is a number between 0 and 1, and its parts sum to it. ``weighted`` adds the values of the legs, so that a score
means the same for every query and a threshold can be set. ``rrf`` adds reciprocal ranks. It needs no common scale, but
drops how good a match is.

Age takes at most half of a score, so that it never hides a note. The threshold never drops a chunk that contains all
words of the query, since a scale of cosines does not apply to exact matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from memoriter.records import Part

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The constant of reciprocal rank fusion: how slowly the value of a rank falls. 60 is the value of its authors.
RRF_K = 60

#: The largest share of a score that age can take.
MAX_DECAY = 0.5


@dataclass(frozen=True, slots=True)
class Leg:
    """The values that one way of searching gives to the candidates."""

    name: str
    #: Relative to the other legs. The weights of all legs together count as 1.
    weight: float
    #: By rowid, 0–1.
    values: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of meaning and words in the score of a text. Notes, entries and items share this formula."""

    vector: float = 0.6
    keyword: float = 0.4

    def legs(
        self, cosines: Mapping[int, float], keyword: Mapping[int, float], *, split: bool = False
    ) -> list[Leg]:
        """Return the legs of meaning and words. A leg that found nothing leaves its weight to the other.

        With ``split`` the weights stay as they are, because words count in another list of the same answer.
        """
        if split and cosines:
            return [Leg("vector", self.vector, cosines), Leg("keyword", self.keyword, keyword)]
        both = self.vector + self.keyword
        legs = (
            Leg("vector", self.vector if keyword else both, cosines),
            Leg("keyword", self.keyword if cosines else both, keyword),
        )
        return [leg for leg in legs if leg.values]


class Scored:
    """A chunk row with its score, which is the sum of its parts. The parts are computed at first use."""

    __slots__ = ("_parts", "rowid", "score")

    def __init__(
        self, rowid: int, parts: tuple[Part, ...] | Callable[[], tuple[Part, ...]], score: float | None = None
    ) -> None:
        self.rowid = rowid
        self._parts = parts
        self.score = sum([part.contribution for part in self.parts]) if score is None else score

    @property
    def parts(self) -> tuple[Part, ...]:
        """The contribution of each leg."""
        if not isinstance(self._parts, tuple):
            self._parts = self._parts()
        return self._parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scored) and (self.rowid, self.parts) == (other.rowid, other.parts)

    def __hash__(self) -> int:
        return hash(self.rowid)

    def __repr__(self) -> str:
        return f"Scored({self.rowid!r}, {self.parts!r})"


# ---- fusion -------------------------------------------------------------------------------------------------------


def total_scores(legs: Sequence[Leg]) -> dict[int, float]:
    """Return the score of every row. `score_rows` also builds the parts, which would cost too much for thousands."""
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
    """Return the rows with the highest scores, best first. Among equal scores the earlier row wins."""
    if len(scores) > limit > 0:  # most rows are out of question, and numbers are sorted faster than pairs
        least = sorted(scores.values())[-limit]
        scores = {row: score for row, score in scores.items() if score >= least}
    return sorted(sorted(scores), key=scores.__getitem__, reverse=True)[:limit]


def score_rows(legs: Sequence[Leg], rows: Iterable[int]) -> list[Scored]:
    """Return these rows with the parts of their scores, best first."""
    total = sum(leg.weight for leg in legs) or 1.0
    shares = [(leg.name, leg.weight / total, leg.values) for leg in legs]
    found = [Scored(row, partial(_parts, shares, row), _score(shares, row)) for row in rows]
    return sorted(found, key=lambda item: (-item.score, item.rowid))


_Shares = Sequence[tuple[str, float, Mapping[int, float]]]
"""The name, the share of the score, and the values of each leg."""


def _score(shares: _Shares, row: int) -> float:
    return sum([values[row] * share for _, share, values in shares if row in values])


def _parts(shares: _Shares, row: int) -> tuple[Part, ...]:
    return tuple(
        Part(name, values[row], share, values[row] * share) for name, share, values in shares if row in values
    )


def by_value(legs: Sequence[Leg]) -> list[Leg]:
    """Return the legs unchanged."""
    return list(legs)


def by_rank(legs: Sequence[Leg]) -> list[Leg]:
    """Return the legs with reciprocal ranks as values, scaled so that the first row of a leg has 1."""
    return [Leg(leg.name, leg.weight, _rank_values(leg.values)) for leg in legs]


def _rank_values(values: Mapping[int, float]) -> dict[int, float]:
    order = sorted(values, key=lambda row: (-values[row], row))
    return {row: (RRF_K + 1) / (RRF_K + rank) for rank, row in enumerate(order, 1)}


FUSIONS = {"weighted": by_value, "rrf": by_rank}


# ---- age, threshold, diversity ------------------------------------------------------------------------------------


def apply_age(
    scored: Sequence[Scored], dates: Mapping[int, str | None], *, half_life_days: float, today: date
) -> list[Scored]:
    """Lower the scores of dated notes by their age. Undated notes keep theirs."""
    return sorted(
        (_age(item, dates.get(item.rowid), half_life_days, today) for item in scored),
        key=lambda item: (-item.score, item.rowid),
    )


def _age(item: Scored, day: str | None, half_life_days: float, today: date) -> Scored:
    if not day:
        return item
    age = max(0, (today - date.fromisoformat(day)).days)
    freshness = 0.5 ** (age / half_life_days)
    loss = -item.score * MAX_DECAY * (1 - freshness)
    part = Part("decay", freshness, -item.score * MAX_DECAY, loss, f"{age} days old")
    return Scored(item.rowid, (*item.parts, part))


def above(scored: Sequence[Scored], min_score: float, is_exact: Callable[[Scored], bool]) -> list[Scored]:
    """Return the rows that reach the threshold or contain all words of the query."""
    return [item for item in scored if item.score >= min_score or is_exact(item)]


def diversify(
    scored: Sequence[Scored], vectors: Mapping[int, NDArray[np.float32]], *, diversity: float, limit: int
) -> list[Scored]:
    """Order by maximal marginal relevance: of similar hits, the best comes first and the others later."""
    remaining, chosen = list(scored), list[Scored]()
    while remaining and len(chosen) < limit:
        following = max(remaining, key=lambda item: _marginal(item, chosen, vectors, diversity))
        remaining.remove(following)
        chosen.append(following)
    return chosen


def _marginal(
    item: Scored, chosen: Sequence[Scored], vectors: Mapping[int, NDArray[np.float32]], diversity: float
) -> float:
    vector = vectors.get(item.rowid)
    others = [vectors[other.rowid] for other in chosen if other.rowid in vectors]
    similarity = max((float(vector @ other) for other in others), default=0.0) if vector is not None else 0.0
    return (1 - diversity) * item.score - diversity * similarity
