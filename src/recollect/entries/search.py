"""Which entries answer this query? By meaning, by keyword, or both; the important ones weigh more.

A hit's score is 0.7 × similarity + 0.3 × importance/5. Similarity is the cosine; words that fit as well add to it and
never take away, so a threshold on it means the same in every mode.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from recollect.entries.following import Following
from recollect.records import Entry, EntryHit, Explanation, Part
from recollect.retrieval.keyword import KeywordLeg, keyword_leg
from recollect.retrieval.vector import VectorLeg, complete, vector_leg
from recollect.store import Filter
from recollect.store.entries import IN_FORCE
from recollect.store.entry_rows import EntryFilter
from recollect.text import query_terms, tokenize

if TYPE_CHECKING:
    from recollect.embedding import Embedder

Mode = Literal["semantic", "keyword", "hybrid"]
MODES: tuple[Mode, ...] = ("semantic", "keyword", "hybrid")

SIMILARITY_WEIGHT = 0.7
IMPORTANCE_WEIGHT = 0.3
KEYWORD_SHARE = 0.3  #: of what the cosine leaves open, that matching words may fill
CANDIDATES = 200  #: rows that each leg proposes at first; more when the filter drops many
MAX_QUERY_CHARS = 8_000


@dataclass(frozen=True, slots=True)
class FoundEntries:
    """Hits, best first, and what the search went without."""

    hits: tuple[EntryHit, ...]
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class _Legs:
    words: KeywordLeg
    cosines: Mapping[int, float]
    exhausted: bool  #: a wider look would find nothing more


class EntrySearch:
    """Answers queries from the entries in force."""

    def __init__(
        self, following: Following, embedder: Embedder | None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.following = following
        self.embedder = embedder
        self._clock = clock

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        threshold: float = 0.0,
        mode: Mode = "hybrid",
        where: EntryFilter = IN_FORCE,
    ) -> FoundEntries:
        """The entries that fit the query, at most ``limit``; exact keyword hits pass any threshold."""
        self.following.follow()
        text, hits, width = query[:MAX_QUERY_CHARS], list[EntryHit](), CANDIDATES
        terms = query_terms(text) if mode != "semantic" else []
        meaning = self._meaning(text, width, mode)
        while True:
            legs = self._look(terms, meaning, width)
            hits = self._hits(legs, terms, where, threshold)
            if len(hits) >= limit or legs.exhausted:
                break
            width *= 8
            meaning = self._meaning(text, width, mode)
        return FoundEntries(tuple(hits[:limit]), meaning.degraded or self.following.degraded)

    def _meaning(self, text: str, width: int, mode: Mode) -> VectorLeg:
        embedder = self.embedder if mode != "keyword" else None
        return vector_leg(self.following.index, embedder, text, limit=width, where=Filter())

    def _look(self, terms: Sequence[str], meaning: VectorLeg, width: int) -> _Legs:
        index = self.following.index
        words = keyword_leg(index, terms, limit=width, where=Filter())
        cosines = complete(meaning, index, self.embedder, set(words.values))
        return _Legs(words, cosines, max(len(meaning.values), len(words.values)) < width)

    def _hits(
        self, legs: _Legs, terms: Sequence[str], where: EntryFilter, threshold: float
    ) -> list[EntryHit]:
        rows = self.following.index.chunks(sorted({*legs.words.values, *legs.cosines}))
        entries = self.following.entries.load(stored.chunk.path for stored in rows.values())
        hits = []
        for row, stored in rows.items():
            entry = entries.get(stored.chunk.path)
            if entry is None or not self._in_force(entry, where):
                continue
            hit = _hit(entry, legs.cosines.get(row, 0.0), legs.words.values.get(row, 0.0), terms)
            if hit.similarity >= threshold or (terms and len(hit.explain.matched) == len(terms)):
                hits.append(hit)
        return sorted(hits, key=lambda hit: (-hit.score, -hit.entry.updated_at, hit.entry.id))

    def _in_force(self, entry: Entry, where: EntryFilter) -> bool:
        expired = entry.expires_at is not None and entry.expires_at <= self._clock()
        return not expired and where.admits(entry)


def _hit(entry: Entry, cosine: float, words: float, terms: Sequence[str]) -> EntryHit:
    matched = tuple(term for term in terms if term in set(tokenize(entry.text))) if words else ()
    keyword_weight = KEYWORD_SHARE * (1 - cosine) if cosine else 1.0
    similarity = min(1.0, cosine) + keyword_weight * words
    stars = entry.importance / 5
    parts = [
        Part("importance", stars, IMPORTANCE_WEIGHT, IMPORTANCE_WEIGHT * stars, f"{entry.importance:g} of 5")
    ]
    for name, value, weight, detail in (
        ("keyword", words, SIMILARITY_WEIGHT * keyword_weight, f"matches {', '.join(matched)}"),
        ("vector", cosine, SIMILARITY_WEIGHT, "nearness in meaning"),
    ):
        if value:
            parts.insert(0, Part(name, value, weight, weight * value, detail))
    score = sum(part.contribution for part in parts)
    return EntryHit(entry, score, similarity, Explanation("entries", tuple(parts), matched))
