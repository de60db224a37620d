"""Which entries answer this query? By meaning, by keyword, or both; the important ones weigh more.

A hit's score is 0.7 × similarity + 0.3 × importance/5. Similarity is the cosine; words that fit as well add to it and
never take away, so a threshold on it means the same in every mode.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from memoriter.index.follow import Follower
from memoriter.records import Answer, Entry, EntryHit, Explanation, Hit, Part
from memoriter.search.legs import KeywordLeg, VectorLeg, complete, keyword_leg, vector_leg
from memoriter.sentences import join
from memoriter.store import Filter
from memoriter.store.entry_rows import EntryFilter, chunk_of
from memoriter.store.entry_store import IN_FORCE, EntryStore
from memoriter.text import query_terms, tokenize

if TYPE_CHECKING:
    from memoriter.embedding import Embedder


Mode = Literal["semantic", "keyword", "hybrid"]
MODES: tuple[Mode, ...] = ("semantic", "keyword", "hybrid")

SIMILARITY_WEIGHT = 0.7
IMPORTANCE_WEIGHT = 0.3
KEYWORD_SHARE = 0.3  #: of what the cosine leaves open, that matching words may fill
CANDIDATES = 50  #: rows that each leg proposes at least; more when the filter drops many
HOLDS = 0.3  #: keyword value below which no entry holds every word: there is no need to look
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


@dataclass(frozen=True, slots=True)
class _Scored:
    """An entry with what the legs say of it; explained only when it is shown."""

    entry: Entry
    cosine: float
    words: float

    @property
    def keyword_weight(self) -> float:
        return KEYWORD_SHARE * (1 - self.cosine) if self.cosine else 1.0

    @property
    def similarity(self) -> float:
        return self.cosine + self.keyword_weight * self.words

    @property
    def score(self) -> float:
        return SIMILARITY_WEIGHT * self.similarity + IMPORTANCE_WEIGHT * self.entry.importance / 5

    def holds(self, terms: Sequence[str]) -> bool:
        """Whether every word of the query is here."""
        return bool(terms) and self.words >= HOLDS and len(self.matched(terms)) == len(terms)

    def matched(self, terms: Sequence[str]) -> tuple[str, ...]:
        present = set(tokenize(self.entry.text)) if self.words else set()
        return tuple(term for term in terms if term in present)

    def hit(self, terms: Sequence[str]) -> EntryHit:
        matched, stars = self.matched(terms), self.entry.importance / 5
        parts = [
            _part("vector", self.cosine, SIMILARITY_WEIGHT, "nearness in meaning"),
            _part(
                "keyword",
                self.words,
                SIMILARITY_WEIGHT * self.keyword_weight,
                f"matches {', '.join(matched)}",
            ),
            _part("importance", stars, IMPORTANCE_WEIGHT, f"{self.entry.importance:g} of 5"),
        ]
        explain = Explanation("entries", tuple(part for part in parts if part.value), matched)
        return EntryHit(self.entry, self.score, self.similarity, explain)


def _part(name: str, value: float, weight: float, detail: str) -> Part:
    return Part(name, value, weight, weight * value, detail)


class EntrySearch:
    """Answers queries from the entries in force."""

    def __init__(
        self,
        store: EntryStore,
        follower: Follower,
        embedder: Embedder | None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self.follower = follower
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
        self.follower.follow()
        text, width = query[:MAX_QUERY_CHARS], max(CANDIDATES, 4 * limit)
        terms = query_terms(text) if mode != "semantic" else []
        while True:
            meaning = self._meaning(text, width, mode)
            legs = self._look(terms, meaning, width)
            admitted = self._admitted(legs, where)
            if len(admitted) >= limit or legs.exhausted:
                break
            width *= 8  # the filter dropped many: look further
        passing = [one for one in admitted if one.similarity >= threshold or one.holds(terms)]
        best = sorted(passing, key=lambda one: (-one.score, -one.entry.updated_at, one.entry.id))[:limit]
        return FoundEntries(tuple(one.hit(terms) for one in best), meaning.degraded or self.follower.degraded)

    def _meaning(self, text: str, width: int, mode: Mode) -> VectorLeg:
        embedder = self.embedder if mode != "keyword" else None
        return vector_leg(self.follower.index, embedder, text, limit=width, where=Filter())

    def _look(self, terms: Sequence[str], meaning: VectorLeg, width: int) -> _Legs:
        index = self.follower.index
        words = keyword_leg(index, terms, limit=width, where=Filter())
        cosines = complete(meaning, index, self.embedder, set(words.values))
        return _Legs(words, cosines, max(len(meaning.values), len(words.values)) < width)

    def _admitted(self, legs: _Legs, where: EntryFilter) -> list[_Scored]:
        """The entries that the legs propose and the filter lets through."""
        rows = self.follower.index.chunks(sorted({*legs.words.values, *legs.cosines}))
        entries = self._store.load(stored.chunk.path for stored in rows.values())
        return [
            _Scored(entry, min(1.0, legs.cosines.get(row, 0.0)), legs.words.values.get(row, 0.0))
            for row, stored in rows.items()
            if (entry := entries.get(stored.chunk.path)) and self._in_force(entry, where)
        ]

    def _in_force(self, entry: Entry, where: EntryFilter) -> bool:
        expired = entry.expires_at is not None and entry.expires_at <= self._clock()
        return not expired and where.admits(entry)


PREFIX = "entries/"  #: of the path that stands for an entry


def as_hit(found: EntryHit, *, cited: bool) -> Hit:
    """An entry as a hit among others: its path and citation name it, and lead nowhere on the disk."""
    entry = found.entry
    return Hit(
        path=f"{PREFIX}{entry.id}",
        start_line=1,
        end_line=1,
        score=found.score,
        snippet=entry.text,
        source="entries",
        citation=f"entry:{entry.id}" if cited else None,
        explain=found.explain,
        chunk_id=entry.id,
        date=chunk_of(entry).date,
        trust=entry.trust,
    )


def joined(answer: Answer, found: FoundEntries, limit: int) -> Answer:
    """One answer of both, best first."""
    entries = [as_hit(hit, cited=answer.citations) for hit in found.hits]
    hits: Sequence[Hit] = sorted([*answer.hits, *entries], key=lambda hit: -hit.score)
    return replace(answer, hits=tuple(hits[:limit]), degraded=join(answer.degraded, found.degraded))
