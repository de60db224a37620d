"""The legs of a search: each gives chunk rows a value between 0 and 1.

Keywords: BM25 has no upper limit, so its scores cannot be compared between queries or added to a cosine. They are
divided by the score of a chunk of average length that contains every query term once. 1 then means that everything is
there, and a chunk that shares one common word of six stays near 0 however weak the other chunks are. One rare word
that occurs often can reach 1 too, so the other half of the value is the share of the query's weight that the chunk
contains at all.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.errors import EmbeddingError
from memoriter.search.when import Span
from memoriter.sentences import sentence
from memoriter.store import Filter, Index
from memoriter.store.keywords import MIN_BUDGET
from memoriter.text import date_tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memoriter.embedding import Embedder

log = logs.get("search")

#: How many chunks before and after belong to the context. With small chunks that is about one chunk of maximum size.
CONTEXT_REACH = 8

#: What the best chunks of the same day add to the context, how many count, and among how many of the first candidates.
DAY_WEIGHT, DAY_BEST, DAY_REACH = 0.2, 3, 32

# ---- keywords -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeywordLeg:
    """A value for each chunk row, and the weights of the terms."""

    #: By rowid, 0–1.
    values: Mapping[int, float]
    #: The inverse document frequency of each term.
    idf: Mapping[str, float]
    #: Whether no other chunk contains any of the terms.
    complete: bool = True
    #: Terms that no chunk of the index contains.
    unknown: frozenset[str] = frozenset()

    def coverage(self, matched: Sequence[str]) -> float:
        """Return the share of the query's weight that these terms hold."""
        return sum(self.idf.get(term, 0.0) for term in matched) / (sum(self.idf.values()) or 1.0)

    def is_exact(self, rowid: int, matched: Sequence[str]) -> bool:
        """Return whether the chunk contains every term of the query, so that no threshold may drop it."""
        return rowid in self.values and len(matched) == len(self.idf)

    def may_contain(self, rowid: int) -> bool:
        """Return whether the chunk may contain a term. An exact check splits it into words, which is slow."""
        return rowid in self.values or not self.complete


def keyword_leg(index: Index, terms: Sequence[str], *, limit: int, where: Filter) -> KeywordLeg:
    """Find the chunks that contain any of the terms, best first."""
    if not terms:
        return KeywordLeg({}, {})
    rows = max(1, index.total())
    counts = index.terms(terms)
    idf = {term: _idf(rows, count) for term, count in counts.items()}
    full = sum(idf.values()) or 1.0
    matches = index.keyword(terms, limit=limit, where=where, known=counts)
    complete = len(matches) < limit and sum(counts.values()) <= MIN_BUDGET
    unknown = frozenset(term for term in terms if not counts.get(term))
    # Half for how strongly the chunk matches the terms, and half for how many of them it contains.
    values = {
        row: ((score / full if score < full else 1.0) + (held / full if held < full else 1.0)) / 2
        for row, score, held in matches
    }
    return KeywordLeg(values, idf, complete, unknown)


def _idf(rows: int, frequency: int) -> float:
    """Return the weight of a term as FTS5 computes it. A term in more than half of the chunks weighs nothing.

    The two numbers are read at different moments: another process may have added chunks in between.
    """
    return max(1e-6, math.log((max(0, rows - frequency) + 0.5) / (frequency + 0.5)))


# ---- vectors ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VectorLeg:
    """Cosines by chunk row. ``degraded`` says why they are missing, or why they took longer."""

    #: By rowid, 0–1.
    values: Mapping[int, float] = field(default_factory=dict)
    query: NDArray[np.float32] | None = None
    degraded: str | None = None


def vector_leg(index: Index, embedder: Embedder | None, text: str, *, limit: int, where: Filter) -> VectorLeg:
    """Find the chunks whose vectors are nearest to that of the text."""
    if embedder is None or not text.strip():
        return VectorLeg()
    try:
        query = embedder.embed_query(text)
    except EmbeddingError as error:
        log.warning("cannot embed the query, searching by keyword only: %s", error)
        return VectorLeg(degraded=sentence("search.keywords_only", why=error))
    if not query.any():
        return VectorLeg()
    near = index.nearest(query, embedder.identity, limit=limit, where=where)
    is_positive = not near or near[-1][1] >= 0.0  # the last is the least
    values = dict(near) if is_positive else {rowid: max(0.0, cosine) for rowid, cosine in near}
    return VectorLeg(values, query, degraded=index.vector_problem)


def complete(
    leg: VectorLeg,
    index: Index,
    embedder: Embedder | None,
    rowids: Iterable[int],
    words: Mapping[int, float] = MappingProxyType({}),
) -> Mapping[int, float]:
    """Return the cosines of the leg and of further rows, such as those that only the keyword leg proposed.

    Without them, a keyword hit just outside the nearest vectors would count as unrelated to the query. ``words`` are
    the values of the keyword leg. They stand in for the cosines of rows that have no vector yet.
    """
    missing = set(rowids) - leg.values.keys()
    if leg.query is None or embedder is None or not missing:
        return leg.values
    found = index.cosines(missing, leg.query, embedder.identity)
    instead = {row: words[row] for row in missing - found.keys() if row in words}
    return {**leg.values, **found, **instead}


# ---- context and dates --------------------------------------------------------------------------------------------


def context_leg(values: Mapping[int, float], around: Mapping[int, Sequence[int]]) -> dict[int, float]:
    """Return, for each row, the mean value of the rows around it. A row without a value counts as 0."""
    value_of = values.get
    return {
        row: sum([value_of(other, 0.0) for other in others]) / len(others) for row, others in around.items()
    }


def add_days(
    context: Mapping[int, float],
    values: Mapping[int, float],
    dates: Mapping[int, str],
    around: Mapping[int, Sequence[int]],
) -> dict[int, float]:
    """Return the context with what other candidates of the same day add: what happened on a day belongs together.

    ``values`` are the scores of the candidates. Days without a good candidate add little, and a single one adds less
    than three. The chunks around a row are its context already.
    """
    by_day: dict[str, list[int]] = {}
    for row in sorted(values, key=lambda row: (-values[row], row))[:DAY_REACH]:
        if row in dates:
            by_day.setdefault(dates[row], []).append(row)
    found = dict(context)
    for row in context.keys() & dates.keys():
        others = [values[other] for other in by_day.get(dates[row], ()) if other not in around[row]]
        found[row] = min(1.0, found[row] + DAY_WEIGHT * sum(others[:DAY_BEST]) / DAY_BEST)
    return found


@dataclass(frozen=True, slots=True)
class NamedDays:
    """Days that a query names relative to today, and the rows whose text or headings name them."""

    span: Span
    rows: Collection[int] = ()

    def match(self, row: int, day: str | None) -> bool:
        """Return whether the note of the row is of these days. For a note without a date, its text decides."""
        return self.span[0].isoformat() <= day <= self.span[1].isoformat() if day else row in self.rows


def date_leg(
    terms: Sequence[str], dates: Mapping[int, str], days: Sequence[NamedDays] = ()
) -> dict[int, float]:
    """Return, for each row, the share of the query's dates that it matches. Rows without a match are left out."""
    requested = {term for term in terms if term.startswith("@")}
    if not requested and not days:
        return {}
    matches = {day: len(requested & _tokens_of(day)) for day in set(dates.values())} if requested else {}
    counts = {row: matches.get(day, 0) for row, day in dates.items()}
    for named in days:
        for row in {*dates, *named.rows}:
            counts[row] = counts.get(row, 0) + named.match(row, dates.get(row))
    return {row: count / (len(requested) + len(days)) for row, count in counts.items() if count}


@lru_cache(maxsize=4096)
def _tokens_of(day: str) -> frozenset[str]:
    """Return the date tokens of a day. Cached, since every query with a date meets the same days."""
    return frozenset(date_tokens(day))
