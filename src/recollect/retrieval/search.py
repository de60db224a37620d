"""Join the legs: query in, hits with reasons out.

Not its duty: when to sync, who may ask, what the prompt is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from typing import TYPE_CHECKING

from recollect.records import Explanation, Hit, Part
from recollect.retrieval import rank
from recollect.retrieval.context import REACH, context_leg
from recollect.retrieval.dates import date_leg
from recollect.retrieval.fuse import FUSIONS, Leg, Scored, best, scored, worth
from recollect.retrieval.keyword import KeywordLeg, keyword_leg
from recollect.retrieval.vector import VectorLeg, complete, vector_leg
from recollect.store import Filter, Index, StoredChunk
from recollect.store.keywords import columns
from recollect.text import query_terms, snippet

if TYPE_CHECKING:
    from recollect.embedding import Embedder

#: Longer queries are cut before they reach the embedder, which reads a few hundred tokens at most.
MAX_QUERY_CHARS = 8_000

#: Of a score, what a chunk and the lines around it are worth together.
CONTEXT_SHARE = 0.5

#: Chunks whose surroundings are looked at, and from which the hits are chosen.
SHORTLIST = 32

#: What a date in the query counts, beside the 1 of words and meaning together.
DATE_WEIGHT = 0.3


@dataclass(frozen=True, slots=True)
class Options:
    """How to search; the defaults are those that win in `evals`."""

    fusion: str = "weighted"
    vector_weight: float = 0.6
    text_weight: float = 0.4
    candidates: int = 200
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

    def search(
        self, text: str, *, max_results: int, min_score: float | None = None, where: Filter | None = None
    ) -> Found:
        """The chunks that answer the text best, at most ``max_results``."""
        text, where = text[:MAX_QUERY_CHARS], where or Filter()
        with self.index.snapshot():
            evidence = self._evidence(text, max(self.options.candidates, max_results), where)
            # The best few more than asked are enough for whatever the ranking still drops or reorders.
            shortlist = best(worth(self._legs(evidence)), max(2 * max_results, SHORTLIST))
            ranked = self._in_context(evidence, shortlist)
            rows = self.index.chunks(shortlist)
            ranked = self._ranked([item for item in ranked if item.rowid in rows], rows)
            # Tokenising is dear: only for those that need it.
            matched = cache(lambda row: _matched(rows[row], evidence.terms))
            floor = self.options.min_score if min_score is None else min_score
            ranked = rank.above(ranked, floor, lambda item: evidence.words.is_exact(item.rowid, matched))
            chosen = self._spread(ranked, max_results)[:max_results]
        hits = tuple(self._hit(item, rows[item.rowid], matched(item.rowid)) for item in chosen)
        return Found(hits, evidence.meaning.degraded)

    def _evidence(self, text: str, limit: int, where: Filter) -> Evidence:
        """What both legs say about every chunk that one of them proposes."""
        terms = query_terms(text)
        words = keyword_leg(self.index, terms, limit=limit, where=where)
        meaning = vector_leg(self.index, self.embedder, text, limit=limit, where=where)
        cosines = complete(meaning, self.index, self.embedder, words.values)
        return Evidence(terms, words, meaning, words.values, cosines)

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
        if any(term.startswith("@") for term in evidence.terms):
            dates = self.index.dates_of(evidence.cosines.keys() | evidence.keyword.keys())
            legs.append(Leg("date", DATE_WEIGHT, date_leg(evidence.terms, dates)))
        return FUSIONS[options.fusion]([leg for leg in legs if leg.values])

    def _ranked(self, scored: Sequence[Scored], rows: Mapping[int, StoredChunk]) -> list[Scored]:
        if self.options.half_life_days is None:
            return list(scored)
        dates = {row: stored.chunk.date for row, stored in rows.items()}
        return rank.aged(scored, dates, half_life_days=self.options.half_life_days, today=self._today())

    def _spread(self, scored: list[Scored], limit: int) -> list[Scored]:
        if not self.options.diversity or self.embedder is None:
            return scored
        vectors = self.index.vectors_of([item.rowid for item in scored], self.embedder.identity)
        return rank.spread(scored, vectors, diversity=self.options.diversity, limit=limit)

    def _hit(self, item: Scored, stored: StoredChunk, matched: Sequence[str]) -> Hit:
        chunk = stored.chunk
        return Hit(
            path=chunk.path,
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            score=item.score,
            snippet=snippet(chunk.text, matched, self.options.snippet_chars),
            source=chunk.source,
            citation=f"{chunk.path}#L{chunk.start_line}-L{chunk.end_line}",
            explain=Explanation(
                self.options.fusion, tuple(_in_words(part, matched) for part in item.parts), tuple(matched)
            ),
            chunk_id=chunk.id,
            date=chunk.date,
            trust=chunk.trust,
        )


def _matched(stored: StoredChunk, terms: Sequence[str]) -> tuple[str, ...]:
    """The query's terms that the chunk, its headings or its date hold."""
    title, body = columns(stored.chunk)
    present = {*title.split(), *body.split()}
    return tuple(term for term in terms if term in present)


def _in_words(part: Part, matched: Sequence[str]) -> Part:
    if part.name == "keyword":
        return replace(part, detail=f"matches {', '.join(matched)}")
    details = {
        "vector": "nearness in meaning",
        "context": "worth of the lines around",
        "date": "the day that the query names",
    }
    return replace(part, detail=details.get(part.name, part.detail))
