"""Join the legs: query in, hits with reasons out.

Not its duty: when to sync, who may ask, what the prompt is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

from memoriter.records import Explanation, Hit, Part, Query
from memoriter.search import rank
from memoriter.search.fuse import FUSIONS, Leg, Scored, best, scored, worth
from memoriter.search.legs import (
    REACH,
    KeywordLeg,
    Time,
    VectorLeg,
    complete,
    context_leg,
    date_leg,
    keyword_leg,
    vector_leg,
)
from memoriter.search.when import days_meant, tokens_of
from memoriter.store import Filter, Index, StoredChunk
from memoriter.store.keywords import all_tokens
from memoriter.text import query_terms, snippet

if TYPE_CHECKING:
    from memoriter.embedding import Embedder

#: Longer queries are cut before they reach the embedder, which reads a few hundred tokens at most.
MAX_QUERY_CHARS = 8_000

#: Of a score, what a chunk and the lines around it are worth together.
CONTEXT_SHARE = 0.5

#: Chunks whose surroundings are looked at, and from which the hits are chosen.
SHORTLIST = 32

_DETAILS = {
    "vector": "nearness in meaning",
    "context": "worth of the lines around",
    "date": "the day that the query names",
}

#: What a date in the query counts, beside the 1 of words and meaning together.
DATE_WEIGHT = 0.3


@dataclass(frozen=True, slots=True)
class Options:
    """How to search; the defaults are those that win in `evals`."""

    fusion: str = "weighted"
    vector_weight: float = 0.6
    text_weight: float = 0.4
    candidates: int = 200
    max_results: int = 6
    min_score: float = 0.1
    snippet_chars: int = 700
    diversity: float = 0.0
    half_life_days: float | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Hits, best first, and what the search went without."""

    hits: tuple[Hit, ...]
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for the candidates."""

    terms: Sequence[str]
    words: KeywordLeg
    meaning: VectorLeg
    keyword: Mapping[int, float]  #: by row
    cosines: Mapping[int, float]
    times: Sequence[Time] = ()  #: that the query names by their distance from today

    @property
    def names_a_date(self) -> bool:
        return bool(self.times) or any(term.startswith("@") for term in self.terms)

    @property
    def rows(self) -> set[int]:
        return {*self.cosines, *self.keyword, *(row for time in self.times for row in time.rows)}


class Searcher:
    """Answers queries from one index."""

    def __init__(
        self,
        index: Index,
        embedder: Embedder | None,
        options: Options | None = None,
        *,
        today: Callable[[], date] = date.today,
    ) -> None:
        self.index = index
        self.embedder = embedder
        self.options = options or Options()
        self._today = today

    def using(self, embedder: Embedder | None) -> Searcher:
        """The same searcher, with the vectors of this embedder."""
        if embedder is self.embedder:
            return self
        return Searcher(self.index, embedder, self.options, today=self._today)

    def search(self, query: Query) -> Found:
        """Return the chunks that answer the query best, at most ``query.max_results``."""
        text, where = query.text[:MAX_QUERY_CHARS], Filter(query.source, query.path_prefix)
        max_results = self.options.max_results if query.max_results is None else max(0, query.max_results)
        with self.index.snapshot():
            evidence = self._evidence(text, max(self.options.candidates, max_results), where)
            # The best few more than asked are enough for whatever the ranking still drops or reorders.
            shortlist = best(worth(self._legs(evidence)), max(2 * max_results, SHORTLIST))
            ranked = self._aged(self._in_context(evidence, shortlist))
            floor = self.options.min_score if query.min_score is None else query.min_score
            chosen = self._chosen(evidence, ranked, floor, max_results)
            rows = self.index.chunks(item.rowid for item in chosen)
        hits = tuple(self._hit(item, rows[item.rowid], evidence) for item in chosen)
        return Found(hits, evidence.meaning.degraded)

    def _evidence(self, text: str, limit: int, where: Filter) -> Evidence:
        """What both legs say about every chunk that one of them proposes."""
        terms = query_terms(text)
        words = keyword_leg(self.index, terms, limit=limit, where=where)
        meaning = vector_leg(self.index, self.embedder, text, limit=limit, where=where)
        times = self._times(text, limit, where)
        proposed = {*words.values, *(row for time in times for row in time.rows)}
        cosines = complete(meaning, self.index, self.embedder, proposed)
        return Evidence(terms, words, meaning, words.values, cosines, times)

    def _times(self, text: str, limit: int, where: Filter) -> list[Time]:
        """The days that the text names by their distance from today, with the chunks of these days."""
        times = []
        for span in days_meant(text, self._today()):
            named = self.index.keyword(tokens_of(span), limit=limit, where=where)
            times.append(Time(span, frozenset(match.rowid for match in named)))
        return times

    def _with_neighbours(self, evidence: Evidence, around: Mapping[int, Sequence[int]]) -> Evidence:
        """The same evidence, with the nearness of the chunks around the shortlist."""
        near = {other for others in around.values() for other in others}
        cosines = complete(evidence.meaning, self.index, self.embedder, near | evidence.cosines.keys())
        return replace(evidence, cosines=cosines)

    def _in_context(self, evidence: Evidence, shortlist: Sequence[int]) -> list[Scored]:
        """Score the shortlist again, each chunk with what it and the chunks around it are worth together."""
        around = self.index.around(shortlist, reach=REACH)
        legs = self._legs(self._with_neighbours(evidence, around))
        weight = sum(leg.weight for leg in legs) * CONTEXT_SHARE / (1 - CONTEXT_SHARE)
        legs.append(Leg("context", weight, context_leg(worth(legs), around)))
        return scored(legs, around)

    def _legs(self, evidence: Evidence) -> list[Leg]:
        """The legs that found something. Between meaning and words, an empty one leaves its weight to the other."""
        options = self.options
        both = options.vector_weight + options.text_weight
        legs = [
            Leg("vector", options.vector_weight if evidence.keyword else both, evidence.cosines),
            Leg("keyword", options.text_weight if evidence.cosines else both, evidence.keyword),
        ]
        if evidence.names_a_date:
            dates = self.index.dates_of(evidence.rows)
            legs.append(Leg("date", DATE_WEIGHT, date_leg(evidence.terms, dates, evidence.times)))
        return FUSIONS[options.fusion]([leg for leg in legs if leg.values])

    def _aged(self, scored: list[Scored]) -> list[Scored]:
        if self.options.half_life_days is None:
            return scored
        dates = self.index.dates_of(item.rowid for item in scored)
        return rank.aged(scored, dates, half_life_days=self.options.half_life_days, today=self._today())

    def _chosen(
        self, evidence: Evidence, ranked: list[Scored], floor: float, max_results: int
    ) -> list[Scored]:
        """The hits: the best that reach the floor, or hold the query word for word."""
        enough = len(ranked) >= max_results > 0 and ranked[max_results - 1].score >= floor
        if enough and not self.options.diversity:
            return ranked[:max_results]  # whatever is below the floor comes after them
        exact = self._exact(evidence, [item.rowid for item in ranked if item.score < floor])
        passing = rank.above(ranked, floor, lambda item: item.rowid in exact)
        return self._spread(passing, max_results)[:max_results]

    def _exact(self, evidence: Evidence, rowids: Sequence[int]) -> set[int]:
        """Those of the rows that hold the whole query in words."""
        rows = self.index.chunks(row for row in rowids if row in evidence.keyword)
        terms = evidence.terms
        return {row for row, stored in rows.items() if evidence.words.is_exact(row, _matched(stored, terms))}

    def _spread(self, scored: list[Scored], limit: int) -> list[Scored]:
        if not self.options.diversity or self.embedder is None:
            return scored
        vectors = self.index.vectors_of([item.rowid for item in scored], self.embedder.identity)
        return rank.spread(scored, vectors, diversity=self.options.diversity, limit=limit)

    def _hit(self, item: Scored, stored: StoredChunk, evidence: Evidence) -> Hit:
        chunk = stored.chunk
        matched = _matched(stored, evidence.terms) if evidence.words.may_hold(item.rowid) else ()
        return Hit(
            path=chunk.path,
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            score=item.score,
            snippet=snippet(chunk.text, matched, self.options.snippet_chars),
            source=chunk.source,
            citation=f"{chunk.path}#L{chunk.start_line}-L{chunk.end_line}",
            explain=Explanation(
                self.options.fusion, tuple(_in_words(part, matched) for part in item.parts), matched
            ),
            chunk_id=chunk.id,
            date=chunk.date,
            trust=chunk.trust,
        )


def _matched(stored: StoredChunk, terms: Sequence[str]) -> tuple[str, ...]:
    """The query's terms that the chunk, its headings or its date hold."""
    present = all_tokens(stored.chunk)
    return tuple(term for term in terms if term in present)


def _in_words(part: Part, matched: Sequence[str]) -> Part:
    matches = f"matches {', '.join(matched)}" if part.name == "keyword" else part.detail
    return Part(
        part.name, part.value, part.weight, part.contribution, detail=_DETAILS.get(part.name, matches)
    )
