"""One search: the legs propose chunks, the fusion scores them, the ranking chooses the hits.

1. The keyword leg, the vector leg and the days that the query names propose candidates.
2. Their values add up to a score. The best candidates form the shortlist.
3. The shortlist is scored again, together with the chunks around each candidate and others of its day, and aged.
4. The reranker reads the first candidates.
5. The hits are the best chunks above the threshold, spread over files and joined with their neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from memoriter.records import Chunk, Explanation, Hit, Part, Query
from memoriter.search import rank, shape
from memoriter.search.rank import (
    CONTEXT_REACH,
    FUSIONS,
    KeywordLeg,
    Leg,
    NamedDays,
    Scored,
    VectorLeg,
    Weights,
    add_days,
    complete,
    context_leg,
    date_leg,
    keyword_leg,
    neighbours,
    vector_leg,
    word_weights,
)
from memoriter.search.rerank import CANDIDATES, DATED_SHARE, Reading, Reranker, blend, text_of, worth_reading
from memoriter.search.shape import Neighbours, Place, unknown_identifiers
from memoriter.search.when import date_tokens_of, named_days
from memoriter.sentences import join
from memoriter.store import Filter, Index
from memoriter.store.keywords import contained
from memoriter.text import query_terms, snippet
from memoriter.text.words import is_identifier

if TYPE_CHECKING:
    from memoriter.embedding import Embedder
    from memoriter.embedding.protocol import Matrix

#: Longer queries are truncated before they reach the embedder, which reads a few hundred tokens at most.
MAX_QUERY_CHARS = 8_000

#: The share of a score that comes from the chunk together with the chunks around it.
CONTEXT_SHARE = 0.5

#: The number of chunks whose surroundings are scored, and from which the hits are chosen.
SHORTLIST = 32

#: The hits are chosen from this many times as many chunks, since some join others.
DEPTH = 3

#: How many times as many candidates a search of an earlier day looks at.
AS_OF_WIDTH = 10

#: The weight of a date in the query, relative to 1 for keywords and vectors together.
DATE_WEIGHT = 0.3

_DETAILS = {
    "vector": "similarity in meaning",
    "context": "score of the surrounding lines, and of others of the same day",
    "date": "date that the query names",
}


@dataclass(frozen=True, slots=True)
class Options:
    """Parameters of a search. The defaults score best in `evals`."""

    fusion: str = "weighted"
    vector_weight: float = 0.6
    text_weight: float = 0.4
    candidates: int = 200
    max_results: int = 6
    min_score: float = 0.1
    snippet_chars: int = 700
    hits_per_file: int = 2
    diversity: float = 0.0
    half_life_days: float | None = None
    #: 0 switches a part off, so that an evaluation can measure what it contributes.
    context_share: float = CONTEXT_SHARE
    date_weight: float = DATE_WEIGHT
    rerank_share: float = 1.0


@dataclass(frozen=True, slots=True)
class Found:
    """Hits, best first. ``degraded`` says what the search lacked."""

    hits: tuple[Hit, ...]
    degraded: str | None = None
    #: Identifiers of the query that the index does not contain.
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidates:
    """The chunk rows that a leg proposes, with what every leg says about them."""

    terms: Sequence[str]
    keywords: KeywordLeg
    vectors: VectorLeg
    #: By row. Includes rows that only another leg proposes.
    cosines: Mapping[int, float]
    days: Sequence[NamedDays] = ()

    @property
    def names_a_date(self) -> bool:
        return bool(self.days) or any(term.startswith("@") for term in self.terms)

    @property
    def rows(self) -> set[int]:
        return {*self.cosines, *self.keywords.values, *(row for days in self.days for row in days.rows)}


class _Shortlist:
    """Chunks that may become hits, and the words of the query in them. Each is loaded and split into words once."""

    def __init__(self, index: Index, candidates: Candidates) -> None:
        self._index = index
        self._candidates = candidates
        self.chunks: dict[int, Chunk] = {}
        #: Whose vector each chunk has; empty if it has none.
        self.models: dict[int, str] = {}
        self._matched: dict[int, tuple[str, ...]] = {}

    def load(self, rows: Iterable[int]) -> None:
        """Load the chunks of these rows."""
        missing = [row for row in rows if row not in self.chunks]
        if missing:
            found = self._index.chunks(missing)
            self.chunks |= {row: stored.chunk for row, stored in found.items()}
            self.models |= {row: stored.model for row, stored in found.items()}

    def matched(self, row: int) -> tuple[str, ...]:
        """Return the query terms that occur in the chunk, its headings or its date."""
        if row not in self._matched:
            may_match = self._candidates.keywords.may_contain(row)
            self._matched[row] = contained(self._candidates.terms, self.chunks[row]) if may_match else ()
        return self._matched[row]

    def coverage(self, matched: Sequence[str]) -> float:
        """Return the share of the query's weight that these terms hold."""
        return self._candidates.keywords.coverage(matched)

    def is_exact(self, row: int) -> bool:
        """Return whether the chunk contains every word of the query, so that no threshold may drop it."""
        return self._candidates.keywords.is_exact(row, self.matched(row))

    def is_named(self, row: int) -> bool:
        """Return whether the chunk contains every word of the query or an identifier that the query names."""
        return self.is_exact(row) or any(is_identifier(term) for term in self.matched(row))


@dataclass(frozen=True, slots=True, eq=False)
class _Texts(Mapping[int, str]):
    """What a reranker reads of each row. Each text is cut when it is read, since few of the long ones are."""

    found: _Shortlist
    rows: Sequence[int]

    def __getitem__(self, row: int) -> str:
        return text_of(self.found.chunks[row], partial(self.found.matched, row))

    def __iter__(self) -> Iterator[int]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(slots=True)
class Searcher:
    """Answers queries from one index."""

    index: Index
    embedder: Embedder | None
    options: Options = Options()
    reranker: Reranker | None = None
    today: Callable[[], date] = date.today

    def using(self, embedder: Embedder | None) -> Searcher:
        """Return this searcher with the vectors of another embedder."""
        return self if embedder is self.embedder else replace(self, embedder=embedder)

    def search(self, query: Query) -> Found:
        """Return the chunks that answer the query best, at most ``query.max_results``."""
        limit = self.options.max_results if query.max_results is None else max(0, query.max_results)
        min_score = self.options.min_score if query.min_score is None else query.min_score
        with self.index.snapshot():
            wider = AS_OF_WIDTH if query.as_of else 1  # most candidates may be newer
            candidates = self._propose(query, wider * max(self.options.candidates, limit))
            scores = rank.total_scores(self._legs(candidates))
            # A few more than requested are enough for what the ranking still drops or reorders.
            shortlist = rank.best(scores, max(2 * limit, SHORTLIST))
            around = self.index.around(shortlist, reach=CONTEXT_REACH)
            ranked = self._rank(candidates, {row: found.all for row, found in around.items()})
            found = _Shortlist(self.index, candidates)
            reading = self._read(query, found, ranked)
            share = DATED_SHARE if candidates.names_a_date else 1.0
            blended = blend(ranked, reading, share * self.options.rerank_share)
            passing = self._choose(found, blended, min_score, limit)
            near = {item.rowid: around[item.rowid].nearest for item in passing[: DEPTH * limit]}
            places = self._shape(found, near, ranked, passing[: DEPTH * limit], limit)
        hits = tuple(self._hit(place, found, reading) for place in places)
        unknown = unknown_identifiers(query.text, candidates.keywords.unknown)
        return Found(hits, join(candidates.vectors.degraded, reading.degraded), unknown)

    def near(self, line: str, vector: Matrix, query: Query, limit: int) -> tuple[Hit, ...]:
        """Return the chunks nearest to a line. The parts of their scores are the cosine and the words in common."""
        if self.embedder is None:
            return ()
        where = Filter(query.source, query.path_prefix)
        with self.index.snapshot():
            cosines = dict(self.index.nearest(vector, self.embedder.identity, limit=limit, where=where))
            words = word_weights(self.index, query_terms(line))
            found = _Shortlist(self.index, Candidates([*words.idf], words, VectorLeg(), cosines))
            found.load(cosines)
            rows = neighbours(cosines, {row: found.coverage(found.matched(row)) for row in found.chunks})
        return tuple(self._hit(Place(item, (item.rowid,)), found, Reading()) for item in rows)

    def _propose(self, query: Query, limit: int) -> Candidates:
        """Let each leg propose chunks, and look up the cosines of those that the vector leg did not propose."""
        text, where = query.text[:MAX_QUERY_CHARS], Filter(query.source, query.path_prefix)
        terms = query_terms(text)
        keywords = keyword_leg(self.index, terms, limit=limit, where=where)
        vectors = vector_leg(self.index, self.embedder, text, limit=limit, where=where)
        days = []
        for span in named_days(text, self.today()) if self.options.date_weight else ():
            matches = self.index.keyword(date_tokens_of(span), limit=limit, where=where)
            days.append(NamedDays(span, frozenset(match.rowid for match in matches)))
        proposed = {*keywords.values, *(row for named in days for row in named.rows)}
        cosines = complete(vectors, self.index, self.embedder, proposed, keywords.values)
        found = Candidates(terms, keywords, vectors, cosines, days)
        return self._until(query.as_of, found) if query.as_of else found

    def _until(self, day: str, found: Candidates) -> Candidates:
        """Return only the candidates of dated notes up to a day."""
        rows = {row for row, date_ in self.index.dates_of(found.rows).items() if date_ <= day}

        def kept(values: Mapping[int, float]) -> dict[int, float]:
            return {row: value for row, value in values.items() if row in rows}

        return replace(
            found,
            keywords=replace(
                found.keywords, values=kept(found.keywords.values), evidence=kept(found.keywords.evidence)
            ),
            vectors=replace(found.vectors, values=kept(found.vectors.values)),
            cosines=kept(found.cosines),
            days=[replace(named, rows=rows.intersection(named.rows)) for named in found.days],
        )

    def _legs(self, candidates: Candidates) -> list[Leg]:
        """Return the weighted legs that found something."""
        options = self.options
        weights = Weights(options.vector_weight, options.text_weight)
        legs = weights.legs(candidates.cosines, candidates.keywords)
        if candidates.names_a_date and options.date_weight:
            dates = self.index.dates_of(candidates.rows)
            legs.append(Leg("date", options.date_weight, date_leg(candidates.terms, dates, candidates.days)))
        return FUSIONS[options.fusion]([leg for leg in legs if leg.values])

    def _rank(self, candidates: Candidates, around: Mapping[int, Sequence[int]]) -> list[Scored]:
        """Score the shortlist again, each chunk with the chunks around it and of its day, and lower old notes."""
        rows = set[int]().union(*around.values())
        known = replace(candidates.vectors, values=candidates.cosines)
        cosines = complete(known, self.index, self.embedder, rows, candidates.keywords.values)
        legs = self._legs(replace(candidates, cosines=cosines))
        if share := self.options.context_share:
            weight = sum(leg.weight for leg in legs) * share / (1 - share)
            own = rank.total_scores(legs)
            context = context_leg(own, around)
            values = {row: (1 - share) * own.get(row, 0.0) + share * context[row] for row in around}
            days = self.index.dates_of(around)
            legs.append(Leg("context", weight, add_days(context, values, days, around)))
        ranked = rank.score_rows(legs, around)
        if self.options.half_life_days is None:
            return ranked
        dates = self.index.dates_of(item.rowid for item in ranked)
        return rank.apply_age(ranked, dates, half_life_days=self.options.half_life_days, today=self.today())

    def _read(self, query: Query, found: _Shortlist, ranked: Sequence[Scored]) -> Reading:
        """Let the reranker read the first candidates. Keyword search alone stays light and does without it."""
        if self.reranker is None or self.embedder is None or not query.rerank:
            return Reading()
        values = {item.rowid: self._own_value(item) for item in ranked[:CANDIDATES]}
        rows = worth_reading(self.reranker, values)
        found.load(rows)
        return self.reranker.read(query.text[:MAX_QUERY_CHARS], _Texts(found, rows))

    def _own_value(self, item: Scored) -> float:
        """Return the value of a chunk without the chunks around it."""
        options, values = self.options, {part.name: part.value for part in item.parts}
        weights = {
            "vector": options.vector_weight,
            "keyword": options.text_weight,
            "date": options.date_weight,
        }
        return sum(weight * values.get(name, 0.0) for name, weight in weights.items())

    def _choose(
        self, found: _Shortlist, ranked: Sequence[Scored], min_score: float, limit: int
    ) -> list[Scored]:
        """Return those that reach the threshold or contain all words of the query, best first."""
        below = [item.rowid for item in ranked if item.score < min_score]
        if below and len(below) > len(ranked) - limit:
            found.load(below)
            passing = rank.above(ranked, min_score, lambda item: found.is_exact(item.rowid))
        else:
            passing = [item for item in ranked if item.score >= min_score]
        if self.options.diversity and self.embedder is not None:
            vectors = self.index.vectors_of([item.rowid for item in passing], self.embedder.identity)
            return rank.diversify(passing, vectors, diversity=self.options.diversity, limit=limit)
        return passing

    def _shape(
        self,
        found: _Shortlist,
        near: Neighbours,
        first_stage: Sequence[Scored],
        passing: Sequence[Scored],
        limit: int,
    ) -> list[Place]:
        """Return the hits as places in files.

        The reranker pushes no chunk out of the answer that contains all words of the query, or an identifier in it.
        """
        found.load(item.rowid for item in passing)
        near = shape.within_notes(near, found.chunks)
        order = shape.spread(passing, found.chunks, near, self.options.hits_per_file)
        places = shape.join_neighbours(order, found.chunks, near, limit)
        shown = {row for place in places for row in place.rows}
        before = {item.rowid for item in first_stage[:limit]}
        out = [item for item in passing if item.rowid in before and item.rowid not in shown]
        return shape.keep(places, out, lambda row: row in before and found.is_named(row))

    def _hit(self, place: Place, found: _Shortlist, reading: Reading) -> Hit:
        item = place.best
        chunk = shape.joined(place.rows, found.chunks)
        matched = tuple(dict.fromkeys(term for row in place.rows for term in found.matched(row)))
        details = _DETAILS | {"keyword": f"matches {', '.join(matched)}"}
        if self.embedder is not None and found.models[item.rowid] != str(self.embedder.identity):
            details["vector"] = "no vector yet: its words count instead"
        parts = tuple(
            Part(part.name, part.value, part.weight, part.contribution, details.get(part.name, part.detail))
            for part in item.parts
        )
        return Hit(
            path=chunk.path,
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            score=item.score,
            snippet=snippet(chunk.text, matched, self.options.snippet_chars),
            source=chunk.source,
            citation=cite(chunk),
            explain=Explanation(
                self.options.fusion, parts, matched, reading.calibrated(item.rowid), found.coverage(matched)
            ),
            chunk_id=found.chunks[item.rowid].id,
            heading=shape.heading_of(chunk),
            date=chunk.date,
            trust=chunk.trust,
        )


_PAGE = re.compile(r"Page (\d+)")


def cite(chunk: Chunk) -> str:
    """Return the place of a chunk. One of a document with pages also names the page, as links to such files do."""
    begins = chunk.text.split("\n", 1)[0].lstrip("# ")
    pages = filter(None, map(_PAGE.fullmatch, (begins, *reversed(chunk.headings))))
    found = next(pages, None) if chunk.path.lower().endswith(".pdf") else None
    page = f"page={found[1]}&" if found else ""
    return f"{chunk.path}#{page}L{chunk.start_line}-L{chunk.end_line}"
