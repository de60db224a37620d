"""The keyword leg: which chunks contain the query's words, and how much of the query they cover.

BM25 has no ceiling, so its scores cannot be compared between queries or added to a cosine. They are scaled by what a
chunk of average length would earn for holding every query term once: 1 means "all of it is here", and a chunk that
shares one common word of six stays near 0 however weak its rivals are. Since one rare word said often can reach that
too, the other half of the value is the share of the query's weight that the chunk holds at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recollect.store import Filter, Index, KeywordMatch
from recollect.store.keywords import MIN_BUDGET


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
