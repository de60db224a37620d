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
from recollect.retrieval.dates import date_leg
from recollect.retrieval.fuse import FUSIONS, Leg, Scored
from recollect.retrieval.keyword import keyword_leg
from recollect.retrieval.vector import complete, vector_leg
from recollect.store.index import Filter, Index, StoredChunk
from recollect.store.keywords import columns
from recollect.text import query_terms, snippet

if TYPE_CHECKING:
    from recollect.embedding import Embedder

#: Longer queries are cut before they reach the embedder, which reads a few hundred tokens at most.
MAX_QUERY_CHARS = 8_000

#: What a date in the query counts, beside the 1 of words and meaning together.
DATE_WEIGHT = 0.3


@dataclass(frozen=True, slots=True)
class Options:
    """How to search; the defaults are those that win in `evals`."""

    fusion: str = "weighted"
    vector_weight: float = 0.7
    text_weight: float = 0.3
    candidates: int = 200
    min_score: float = 0.35
    snippet_chars: int = 700
    diversity: float = 0.0
    half_life_days: float | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """Hits, best first, and what the search went without."""

    hits: tuple[Hit, ...]
    degraded: str | None = None


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
        text, where, options = text[:MAX_QUERY_CHARS], where or Filter(), self.options
        limit = max(options.candidates, max_results)
        terms = query_terms(text)
        words = keyword_leg(self.index, terms, limit=limit, where=where)
        meaning = vector_leg(self.index, self.embedder, text, limit=limit, where=where)
        cosines = complete(meaning, self.index, self.embedder, set(words.values))
        scored = FUSIONS[options.fusion](self._legs(terms, cosines, words.values))
        # The best few more than asked are enough for whatever the ranking still drops or reorders.
        scored = scored[: max(4 * max_results, 50)]
        rows = self.index.chunks([item.rowid for item in scored])
        scored = self._ranked([item for item in scored if item.rowid in rows], rows)
        matched = cache(
            lambda row: _matched(rows[row], terms)
        )  # tokenising is dear: only for those that need it
        floor = options.min_score if min_score is None else min_score
        scored = rank.above(scored, floor, lambda item: words.is_exact(item.rowid, matched))
        chosen = self._spread(scored, max_results)[:max_results]
        return Found(
            tuple(self._hit(item, rows[item.rowid], matched(item.rowid)) for item in chosen), meaning.degraded
        )

    def _legs(
        self, terms: Sequence[str], cosines: Mapping[int, float], words: Mapping[int, float]
    ) -> list[Leg]:
        """The legs that found something. Between meaning and words, an empty one leaves its weight to the other."""
        both = self.options.vector_weight + self.options.text_weight
        legs = [
            Leg("vector", self.options.vector_weight if words else both, cosines),
            Leg("keyword", self.options.text_weight if cosines else both, words),
        ]
        if any(term.startswith("@") for term in terms):
            days = date_leg(terms, self.index.dates_of(cosines.keys() | words.keys()))
            legs.append(Leg("date", DATE_WEIGHT, days))
        return [leg for leg in legs if leg.values]

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
    details = {"vector": "nearness in meaning", "date": "the day that the query names"}
    return replace(part, detail=details.get(part.name, part.detail))
