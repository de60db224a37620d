"""A query, its answer and the explanation of each hit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from memoriter.records.documents import Source, Trust

if TYPE_CHECKING:
    from memoriter.records.entries import EntryHit

CitationMode = Literal["on", "off", "auto"]
Level = Literal["high", "medium", "low"]

#: The least confidence of each level. A hit below the second is shown only if there is nothing better.
HIGH_CONFIDENCE, MEDIUM_CONFIDENCE = 0.5, 0.15


@dataclass(frozen=True, slots=True)
class Query:
    """A search request. None means the configured default, or no restriction."""

    text: str
    max_results: int | None = None
    min_score: float | None = None
    source: Source | None = None
    #: Search only files whose path starts with this prefix.
    path_prefix: str | None = None
    #: Search only the notes of this collection.
    collection: str | None = None
    #: The session that asks. It decides whether the memory may be used and whether citations are shown.
    session: str | None = None
    #: False leaves the reranker out, which takes most of the time.
    rerank: bool = True

    @classmethod
    def of(cls, query: str | Query, **fields: Any) -> Query:
        """Return the query with these fields. A field that is None does not replace one that is set."""
        given = {name: value for name, value in fields.items() if value is not None}
        return cls(query, **given) if isinstance(query, str) else replace(query, **given)


@dataclass(frozen=True, slots=True)
class Part:
    """One term of a hit's score. The contributions of all parts sum to the score."""

    #: "vector", "keyword", "decay" and others.
    name: str
    #: The measure of this part, 0 to 1.
    value: float
    weight: float
    contribution: float
    #: Matched terms, rank or age, as text.
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The parts of a hit's score."""

    fusion: str
    parts: tuple[Part, ...]
    #: Tokens of the query that the chunk contains.
    matched: tuple[str, ...] = ()
    #: How well the text answers, according to the reranker. None if it did not read this text.
    logit: float | None = None
    #: The share of the query's weight that these tokens hold, 0 to 1. Rare tokens weigh most.
    coverage: float = 0.0


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk or entry that answers a query, with its citation, its score and the reasons for it."""

    path: str
    start_line: int
    end_line: int
    score: float
    snippet: str
    source: Source
    #: Such as "memory/2026-02-08.md#L10-L25". None if this session does not see citations.
    citation: str | None
    explain: Explanation
    chunk_id: str = ""
    #: The title and the headings above the lines. A list item often means nothing without them.
    heading: str | None = None
    date: str | None = None
    trust: Trust = "owner"
    #: The entry and its similarity, if the hit is an entry.
    entry: EntryHit | None = None
    #: The probability that this hit answers the query, 0 to 1. None if an external engine found it.
    confidence: float | None = None
    #: The place of a newer statement about the same thing, which says otherwise.
    superseded_by: str | None = None

    @property
    def level(self) -> Level | None:
        """The confidence in words."""
        return level_of(self.confidence)


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a search: the hits, the embedder that was used, and what is missing."""

    hits: tuple[Hit, ...]
    #: The provider of the vectors, such as "local" or "none".
    provider: str
    model: str
    #: Whether another provider or backend than the configured one answered. ``degraded`` says why.
    fallback: bool = False
    #: Whether this session sees citations.
    citations: bool = True
    #: What is missing from this answer, as text.
    degraded: str | None = None
    #: Identifiers of the query that no note, session or entry contains, as they were written.
    unknown: tuple[str, ...] = ()
    #: What to say before the hits, as when nothing is relevant.
    notice: str | None = None

    @property
    def relevant(self) -> bool:
        """Whether any hit is likely to answer the query. If not, the hits are the nearest lines."""
        return any(hit.level != "low" for hit in self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __bool__(self) -> bool:
        return bool(self.hits)


def level_of(confidence: float | None) -> Level | None:
    """Return a confidence in words."""
    if confidence is None:
        return None
    return "high" if confidence >= HIGH_CONFIDENCE else "medium" if confidence >= MEDIUM_CONFIDENCE else "low"
