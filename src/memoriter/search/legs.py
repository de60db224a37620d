"""The keyword leg: which chunks contain the query's words, and how much of the query they cover.

BM25 has no ceiling, so its scores cannot be compared between queries or added to a cosine. They are scaled by what a
chunk of average length would earn for holding every query term once: 1 means "all of it is here", and a chunk that
shares one common word of six stays near 0 however weak its rivals are. Since one rare word said often can reach that
too, the other half of the value is the share of the query's weight that the chunk holds at all.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.errors import EmbeddingError
from memoriter.search.when import Span
from memoriter.store import Filter, Index, KeywordMatch
from memoriter.store.keywords import MIN_BUDGET
from memoriter.text import date_tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memoriter.embedding import Embedder


#: Chunks before and after: with small chunks about as much text as the largest chunk may hold.
REACH = 8


def context_leg(values: Mapping[int, float], around: Mapping[int, Sequence[int]]) -> dict[int, float]:
    """For each row, the mean value of the rows around it; one without a value counts as 0."""
    return {
        row: sum([values.get(other, 0.0) for other in others]) / len(others) for row, others in around.items()
    }


@dataclass(frozen=True, slots=True)
class Time:
    """Days that a query names by their distance from today, and the rows whose text or headings name them too."""

    span: Span
    rows: Collection[int] = ()

    def agrees(self, row: int, day: str | None) -> bool:
        """Whether the row's note is of these days; of a note without a day, what it says counts."""
        return self.span[0].isoformat() <= day <= self.span[1].isoformat() if day else row in self.rows


def date_leg(terms: Sequence[str], dates: Mapping[int, str], times: Sequence[Time] = ()) -> dict[int, float]:
    """For each row, the share of the query's dates that it agrees with; without one where that is nothing."""
    asked = {term for term in terms if term.startswith("@")}
    if not asked and not times:
        return {}
    agreeing = {day: len(asked & _stated(day)) for day in set(dates.values())} if asked else {}
    counts = {row: agreeing.get(day, 0) for row, day in dates.items()}
    for time in times:
        for row in {*dates, *time.rows}:
            counts[row] = counts.get(row, 0) + time.agrees(row, dates.get(row))
    return {row: count / (len(asked) + len(times)) for row, count in counts.items() if count}


@lru_cache(maxsize=4096)
def _stated(day: str) -> frozenset[str]:
    """What a note's day states; kept, since every query with a date meets the same days again."""
    return frozenset(date_tokens(day))


log = logs.get("retrieval")


@dataclass(frozen=True, slots=True)
class VectorLeg:
    """What the vector leg found: cosines by chunk row, and what it went without."""

    values: Mapping[int, float] = field(default_factory=dict)  #: rowid → cosine, 0–1
    query: NDArray[np.float32] | None = None
    degraded: str | None = None


def vector_leg(index: Index, embedder: Embedder | None, text: str, *, limit: int, where: Filter) -> VectorLeg:
    """Find the chunks whose vectors are nearest to the query's."""
    if embedder is None or not text.strip():
        return VectorLeg()
    try:
        query = embedder.embed_query(text)
    except EmbeddingError as error:
        log.warning("the query could not be embedded, keywords answer alone: %s", error)
        return VectorLeg(degraded=f"Keyword search only: {error}")
    if not query.any():
        return VectorLeg()
    near = index.nearest(query, embedder.identity, limit=limit, where=where)
    return VectorLeg({rowid: max(0.0, cosine) for rowid, cosine in near}, query)


def complete(
    leg: VectorLeg, index: Index, embedder: Embedder | None, rowids: Iterable[int]
) -> Mapping[int, float]:
    """The leg's cosines, with those of further rows: chunks that only the keyword leg proposed, or neighbours.

    Without them a keyword hit just outside the nearest would count as having nothing to do with the query.
    """
    missing = set(rowids) - leg.values.keys()
    if leg.query is None or embedder is None or not missing:
        return leg.values
    return {**leg.values, **index.nearness(missing, leg.query, embedder.identity)}


@dataclass(frozen=True, slots=True)
class KeywordLeg:
    """What the keyword leg found: a value for each chunk row, and what the terms weigh."""

    values: Mapping[int, float]  #: rowid → 0–1
    idf: Mapping[str, float]
    whole: bool = True  #: no other chunk holds any of the terms

    def is_exact(self, rowid: int, matched: Sequence[str]) -> bool:
        """Whether the chunk holds every term of the query: no threshold may drop it."""
        return rowid in self.values and len(matched) == len(self.idf)

    def may_hold(self, rowid: int) -> bool:
        """Whether the chunk may hold one of the terms; cutting a chunk into words to see which is dear."""
        return rowid in self.values or not self.whole


def keyword_leg(index: Index, terms: Sequence[str], *, limit: int, where: Filter) -> KeywordLeg:
    """Find the chunks that hold any of the terms, best first, with absolute values."""
    if not terms:
        return KeywordLeg({}, {})
    rows = max(1, index.total())
    counts = index.terms(terms)
    idf = {term: _idf(rows, count) for term, count in counts.items()}
    full = sum(idf.values()) or 1.0
    matches = index.keyword(terms, limit=limit, where=where, known=counts)
    whole = len(matches) < limit and sum(counts.values()) <= MIN_BUDGET
    return KeywordLeg({match.rowid: _value(match, full) for match in matches}, idf, whole)


def _value(match: KeywordMatch, full: float) -> float:
    """Half for how strongly the chunk speaks of the terms, half for how many of them it holds."""
    return (min(1.0, match.score / full) + min(1.0, match.held / full)) / 2


def _idf(rows: int, frequency: int) -> float:
    """As FTS5 weighs a term; one that stands in more than half of the chunks says nothing.

    The two numbers are of two moments: while others write, more chunks may hold a term than there were.
    """
    return max(1e-6, math.log((max(0, rows - frequency) + 0.5) / (frequency + 0.5)))
