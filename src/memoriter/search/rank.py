"""From scored chunks to the few that are shown: age, threshold, spread.

Each step is off or harmless by default. Age never hides a note: it takes away at most half of a score. The threshold
never drops a chunk that holds the whole query in words, since a cosine scale says nothing about exact matches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from memoriter.records import Part
from memoriter.search.fuse import Scored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Age may take this share of a score and no more: an old note that fits stays reachable.
MAX_DECAY = 0.5


def aged(
    scored: Sequence[Scored], dates: Mapping[int, str | None], *, half_life_days: float, today: date
) -> list[Scored]:
    """Lower the scores of dated notes by their age; undated ones are timeless."""
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
    return replace(item, parts=(*item.parts, part))


def above(scored: Sequence[Scored], min_score: float, exact: Callable[[Scored], bool]) -> list[Scored]:
    """Those that reach the threshold, and those that hold the query word for word."""
    return [item for item in scored if item.score >= min_score or exact(item)]


def spread(
    scored: Sequence[Scored], vectors: Mapping[int, NDArray[np.float32]], *, diversity: float, limit: int
) -> list[Scored]:
    """Maximal marginal relevance: of hits that say the same, the best comes first and the others later."""
    rest, chosen = list(scored), list[Scored]()
    while rest and len(chosen) < limit:
        best = max(rest, key=lambda item: _marginal(item, chosen, vectors, diversity))
        rest.remove(best)
        chosen.append(best)
    return chosen


def _marginal(
    item: Scored, chosen: Sequence[Scored], vectors: Mapping[int, NDArray[np.float32]], diversity: float
) -> float:
    mine = vectors.get(item.rowid)
    others = [vectors[other.rowid] for other in chosen if other.rowid in vectors]
    likeness = max((float(mine @ other) for other in others), default=0.0) if mine is not None else 0.0
    return (1 - diversity) * item.score - diversity * likeness
