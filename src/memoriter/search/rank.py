"""Legs propose chunks and value them; their values become a ranking: fuse, age, filter, diversify.

A score is a number between 0 and 1, and its parts sum to it. ``weighted`` adds the values of the legs, so that a score
means the same for every query and a threshold can be set. ``rrf`` adds reciprocal ranks. It needs no common scale, but
drops how good a match is.

Age takes at most half of a score, so that it never hides a note. The threshold never drops a chunk that contains all
words of the query, since a scale of cosines does not apply to exact matches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.errors import EmbeddingError
from memoriter.records import Part
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

#: The weight of common words in the nearness of two lines, beside the cosine.
NEAR_WORDS = 0.5

#: The weight of the terms in a chunk, as a sum of inverse document frequencies, from which on chance is ruled out.
EVIDENCE = 12.0

# ---- keywords -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeywordLeg:
    """A value for each chunk row, and the weights of the terms."""

    #: By rowid, 0–1.
    values: Mapping[int, float]
    #: The inverse document frequency of each term.
    idf: Mapping[str, float]
    #: By rowid: the values beside cosines, lower where few terms match.
    evidence: Mapping[int, float] = field(default_factory=dict)
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
    # Half for how strongly the chunk matches the terms, and half for the share of them that it contains.
    shares = {row: min(1.0, held / full) for row, _, held in matches}
    values = {row: (min(1.0, score / full) + shares[row]) / 2 for row, score, _ in matches}
    # A paraphrase shares a word or two with many chunks by chance. A long question never has all its words in a chunk,
    # so a share alone would not tell. Half of a short one is enough.
    enough = min(EVIDENCE, full / 2)
    evidence = {row: values[row] * max(shares[row], min(1.0, held / enough)) for row, _, held in matches}
    return KeywordLeg(values, idf, evidence, complete, unknown)


def word_weights(index: Index, terms: Sequence[str]) -> KeywordLeg:
    """Return the weights of terms without a search for them."""
    rows, counts = max(1, index.total()), index.terms(terms)
    return KeywordLeg({}, {term: _idf(rows, count) for term, count in counts.items()}, complete=False)


def neighbours(cosines: Mapping[int, float], shared: Mapping[int, float]) -> list[Scored]:
    """Return the rows near a line with the cosine and the share of its words as parts, nearest first."""
    return score_rows([Leg("vector", 1.0, cosines), Leg("keyword", NEAR_WORDS, shared)], shared)


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

    def legs(self, cosines: Mapping[int, float], words: KeywordLeg, *, split: bool = False) -> list[Leg]:
        """Return the legs of meaning and words. A leg that found nothing leaves its weight to the other.

        With ``split`` the weights stay as they are, because words count in another list of the same answer.
        """
        keyword = words.evidence if cosines else words.values
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
