"""Search of entries: by meaning, by keyword, or both.

An entry is scored like a note: 0.6 × cosine + 0.4 × keyword value is its own value (its similarity), and half of a
score is the context. An entry has no lines around it. Alone, its context is its own value. Beside notes, its context is
worth as much of its own value as the context of the best note is, so notes and entries can be sorted together. The
importance of an entry only decides between entries that match about equally well, unless
`retrieval.importance_weight` gives it more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypedDict, Unpack, get_args

from memoriter.entries.context import EntryContext
from memoriter.entries.drafts import type_of
from memoriter.errors import BadArgument
from memoriter.records import Answer, Entry, EntryHit, EntryState, Explanation, Hit, Part, Trust
from memoriter.search.freshness import Lookup, asks_about_the_past, refresh
from memoriter.search.rank import (
    KeywordLeg,
    Leg,
    Scored,
    VectorLeg,
    complete,
    keyword_leg,
    score_rows,
    total_scores,
    vector_leg,
)
from memoriter.search.rerank import Reading, Reranker, blend, worth_reading
from memoriter.search.search import CONTEXT_SHARE, MAX_QUERY_CHARS
from memoriter.search.shape import confidences, judge, unknown_identifiers
from memoriter.sentences import join
from memoriter.store import Filter
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.entry_store import IN_FORCE, INDEXED
from memoriter.text import query_terms, tokenize
from memoriter.text.markdown import tag_list

Mode = Literal["semantic", "keyword", "hybrid"]
STATES: tuple[EntryState, ...] = get_args(EntryState)

#: Minimum number of rows that each leg proposes; more when the filter drops many.
CANDIDATES = 50
#: How many entries the reranker reads beside the notes. Entries that answer are rarely further behind.
RERANKED = 8
#: Beside a line that surely answers, others need up to this many times the minimum confidence to be recalled.
BESIDE_SURE = 2.0
#: An entry whose keyword value is below this cannot contain every word of the query.
MIN_EXACT = 0.3


class EntryFilters(TypedDict, total=False):
    """Filters of entries. Every filter that is given must match."""

    types: Sequence[str]
    #: Tags that the entry must all have.
    tags: Sequence[str]
    #: Empty means any state; None means entries in force.
    states: Sequence[EntryState] | None
    trust: Sequence[Trust]
    session: str | None
    #: Only entries learned in one of these sessions, or outside sessions.
    within: Sequence[str] | None
    source: str | None
    #: Only entries learned in the workspace with this path, or in none.
    workspace: str | None
    #: Created at or after, in seconds since the epoch.
    since: float | None
    #: Created before.
    until: float | None
    min_importance: float
    #: Whether it has been used: found by an agent or added to a prompt. None: either.
    used: bool | None


@dataclass(frozen=True, slots=True)
class FoundEntries:
    """Hits, best first, and what was missing."""

    hits: tuple[EntryHit, ...]
    degraded: str | None = None
    #: Identifiers of the query that no entry contains.
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoteScale:
    """The scale of the scores of an answer's notes."""

    #: Whether words count in the scores of the notes.
    words: bool = False
    #: The value of the lines around the best note, as a share of the note's own value; None without notes.
    context: float | None = None

    @classmethod
    def of(cls, notes: Sequence[Hit]) -> NoteScale:
        """Read the scale from the parts of the notes' scores."""
        if not notes:
            return cls()
        parts = {part.name: part.contribution for part in notes[0].explain.parts}
        own = sum(parts.get(name, 0.0) for name in ("vector", "keyword", "date"))
        context = min(1.0, parts["context"] / own) if own > 0 and "context" in parts else None
        words = any(part.name == "keyword" for hit in notes for part in hit.explain.parts)
        return cls(words, context)


@dataclass(frozen=True, slots=True)
class _Legs:
    words: KeywordLeg
    own: Mapping[int, float]
    legs: Sequence[Leg]
    #: A wider search would find nothing more.
    exhausted: bool


@dataclass(frozen=True, slots=True)
class _Scored:
    """An entry with the parts of its score; explained only when it is shown."""

    entry: Entry
    #: The text that matches: the entry's own, or that of an entry that it superseded.
    text: str
    similarity: float
    scored: Scored
    keyword: float
    #: The share of importance in the score.
    share: float

    @property
    def score(self) -> float:
        return (1 - self.share) * self.scored.score + self.share * self.entry.importance / 5

    def is_exact(self, terms: Sequence[str]) -> bool:
        """Return whether the entry contains every word of the query."""
        return bool(terms) and self.keyword >= MIN_EXACT and len(self.matched(terms)) == len(terms)

    def matched(self, terms: Sequence[str]) -> tuple[str, ...]:
        present = set(tokenize(self.text)) if self.keyword else set()
        return tuple(term for term in terms if term in present)

    def hit(self, terms: Sequence[str], words: KeywordLeg, logit: float | None) -> EntryHit:
        matched, share = self.matched(terms), 1 - self.share
        details = {
            "vector": "similarity in meaning",
            "keyword": f"matches {', '.join(matched)}",
            "context": "as much as the lines around the best note",
        }
        parts = [
            Part(
                part.name,
                part.value,
                share * part.weight,
                share * part.contribution,
                details.get(part.name, part.detail),
            )
            for part in self.scored.parts
            if part.value
        ]
        value = self.entry.importance / 5
        detail = f"{self.entry.importance:g} of 5"
        parts.append(Part("importance", value, self.share, self.share * value, detail))
        explain = Explanation("entries", tuple(parts), matched, logit, words.coverage(matched))
        before = self.text if self.text != self.entry.text else ""
        return EntryHit(self.entry, self.score, self.similarity, explain, before=before)


def _ordered(found: Iterable[_Scored]) -> list[_Scored]:
    return sorted(found, key=lambda one: (-one.score, -one.entry.updated_at, one.entry.id))


def _once(found: Iterable[_Scored]) -> list[_Scored]:
    """Return each entry once, with the best of the statements by which it is found."""
    return list({one.entry.id: one for one in reversed(_ordered(found))}.values())[::-1]


def _reread(found: Sequence[_Scored], reading: Reading) -> Iterator[_Scored]:
    """Yield the entries with the reranker's part in their scores."""
    scores = {item.rowid: item for item in blend([one.scored for one in found], reading)}
    return (replace(one, scored=scores[one.scored.rowid]) for one in found)


def limited(context: EntryContext, filters: EntryFilters) -> EntryFilter:
    """Return the filter, limited to this workspace if the options say so and the caller names no other."""
    if context.options.workspace_only and filters.get("workspace") is None:
        filters = {**filters, "workspace": context.options.workspace}
    return build_filter(filters)


def build_filter(filters: EntryFilters) -> EntryFilter:
    """Return the filter as the store takes it."""
    states, within = filters.get("states"), filters.get("within")
    if states is not None and (isinstance(states, str) or not {*states} <= {*STATES}):
        message = f"`states` must be a list of these: {', '.join(STATES)}."
        raise BadArgument(message, "states")
    return EntryFilter(
        types=tuple(type_of(name) for name in filters.get("types", ())),
        tags=tag_list(filters["tags"]) if "tags" in filters else (),
        states=("active",) if states is None else tuple(states),
        trust=tuple(filters.get("trust", ())),
        session=filters.get("session"),
        within=None if within is None else tuple(within),
        source=filters.get("source"),
        workspace=filters.get("workspace"),
        since=filters.get("since"),
        until=filters.get("until"),
        min_importance=filters.get("min_importance", 0.0),
        used=filters.get("used"),
    )


def search(
    context: EntryContext,
    query: str,
    *,
    limit: int = 10,
    threshold: float | None = None,
    mode: Mode = "hybrid",
    rerank: bool = True,
    beside: Sequence[Hit] = (),
    as_of: float | None = None,
    **filters: Unpack[EntryFilters],
) -> FoundEntries:
    """Return the entries in force that answer a query, best first.

    ``threshold`` is the minimum similarity (default: `retrieval.similarity_threshold`). ``mode`` is "hybrid",
    "semantic" or "keyword". A hybrid search without ``rerank`` leaves the reranker out. ``beside`` are hits of
    notes for the same query: the scores of the entries then can be compared with theirs. ``as_of`` is a time in
    seconds since the epoch: the entries that were valid then answer, also those that were superseded later.
    """
    floor, where = context.options.threshold if threshold is None else threshold, limited(context, filters)
    return find(
        context,
        query,
        limit=limit,
        threshold=floor,
        mode=mode,
        rerank=rerank,
        where=where,
        beside=beside,
        at=as_of,
    )


def find(
    context: EntryContext,
    query: str,
    *,
    limit: int = 10,
    threshold: float = 0.0,
    mode: Mode = "hybrid",
    rerank: bool = True,
    where: EntryFilter = IN_FORCE,
    beside: Sequence[Hit] = (),
    at: float | None = None,
) -> FoundEntries:
    """Return the entries that match the query, best first. Exact keyword matches pass any threshold.

    ``beside`` are the notes of the same answer: the scores of the entries are made comparable with theirs. ``at`` asks
    for the entries that were valid at that time.
    """
    context.follower.follow()
    scale, reranker = NoteScale.of(beside), context.options.reranker if rerank and mode == "hybrid" else None

    def attempt() -> FoundEntries:
        text, width = query[:MAX_QUERY_CHARS], max(CANDIDATES, 4 * limit)
        terms = query_terms(text) if mode != "semantic" else []
        while True:
            meaning = _meaning(context, text, width, mode)
            legs = _look(context, terms, meaning, width, scale)
            admitted = _load_candidates(context, legs, where, at)
            if len({one.entry.id for one in admitted}) >= limit or legs.exhausted:
                break
            width *= 8  # the filter dropped many: search wider
        passing = [one for one in admitted if one.similarity >= threshold or one.is_exact(terms)]
        reading = _read(context, text, passing, reranker)
        best = _once(_reread(passing, reading))[:limit]
        hits = [one.hit(terms, legs.words, reading.calibrated(one.scored.rowid)) for one in best]
        model = context.embedder.identity.model if context.embedder else ""
        sure = confidences([(hit.explain, hit.score) for hit in hits], model, text)
        return FoundEntries(
            tuple(replace(hit, confidence=value) for hit, value in zip(hits, sure, strict=True)),
            join(meaning.degraded or context.follower.degraded, reading.degraded),
            unknown_identifiers(text, legs.words.unknown),
        )

    return context.follower.healing(attempt)


def _read(context: EntryContext, text: str, passing: Sequence[_Scored], reranker: Reranker | None) -> Reading:
    """Let the reranker read the best entries, as it reads notes."""
    if reranker is None or context.embedder is None:
        return Reading()
    first = {one.scored.rowid: one for one in _ordered(passing)[:RERANKED]}
    rows = worth_reading(reranker, {row: one.similarity for row, one in first.items()})
    return reranker.read(text, {row: first[row].text for row in rows})


def _meaning(context: EntryContext, text: str, width: int, mode: Mode) -> VectorLeg:
    embedder = context.embedder if mode != "keyword" else None
    return vector_leg(context.follower.index, embedder, text, limit=width, where=Filter())


def _look(
    context: EntryContext, terms: Sequence[str], meaning: VectorLeg, width: int, scale: NoteScale
) -> _Legs:
    index = context.follower.index
    words = keyword_leg(index, terms, limit=width, where=Filter())
    cosines = complete(meaning, index, context.embedder, set(words.values), words.values)
    own = total_scores(context.options.weights.legs(cosines, words))
    legs = context.options.weights.legs(cosines, words, split=scale.words)
    if scale.context is not None:
        weight = sum(leg.weight for leg in legs) * CONTEXT_SHARE / (1 - CONTEXT_SHARE)
        values = {row: value * scale.context for row, value in total_scores(legs).items()}
        legs = [*legs, Leg("context", weight, values)]
    return _Legs(words, own, legs, max(len(meaning.values), len(words.values)) < width)


def _load_candidates(
    context: EntryContext, legs: _Legs, where: EntryFilter, at: float | None
) -> list[_Scored]:
    """Return the entries that the legs propose and the filter allows. What was superseded leads to its successor.

    ``at`` is the time of a question about the past: entries that were valid then are returned.
    """
    chunks = {row: stored.chunk for row, stored in context.follower.index.chunks(sorted(legs.own)).items()}
    known = context.store.load(chunk.path for chunk in chunks.values())
    states = ("active", "superseded") if at is None else INDEXED
    entries = context.store.successors(
        {id_: entry for id_, entry in known.items() if entry.state in states}, at
    )
    admitted = [
        row
        for row, chunk in chunks.items()
        if chunk.path in entries and is_in_force(context, entries[chunk.path], where, at)
    ]
    return [
        _Scored(
            entries[chunks[one.rowid].path],
            chunks[one.rowid].text if at is None else entries[chunks[one.rowid].path].text,
            legs.own[one.rowid],
            one,
            legs.words.values.get(one.rowid, 0.0),
            context.options.importance_weight,
        )
        for one in score_rows(legs.legs, admitted)
    ]


def is_in_force(context: EntryContext, entry: Entry, where: EntryFilter, at: float | None) -> bool:
    """Return whether an entry may answer, now or for a question about a time."""
    if at is not None:
        return replace(where, states=INDEXED).admits(entry)
    expired = entry.expires_at is not None and entry.expires_at <= context.clock()
    return not expired and where.admits(entry)


#: The prefix of the path under which an entry appears in an answer.
PREFIX = "entries/"


def as_hit(found: EntryHit, *, cited: bool) -> Hit:
    """Return an entry as a hit of a mixed answer. Its path and citation contain its id, not a place on disk."""
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
        date=entry.day,
        trust=entry.trust,
        entry=found,
        superseded_by=f"entry:{entry.superseded_by}" if entry.superseded_by else None,
    )


def add_entries(answer: Answer, found: FoundEntries, limit: int) -> Answer:
    """Join notes and entries in one answer, best first."""
    entries = [as_hit(hit, cited=answer.citations) for hit in found.hits]
    return replace(
        answer,
        hits=tuple(_merge(answer.hits, entries))[:limit],
        degraded=join(answer.degraded, found.degraded),
        unknown=tuple(name for name in answer.unknown if name in found.unknown),
    )


def _merge(notes: Sequence[Hit], entries: Sequence[Hit]) -> Iterator[Hit]:
    """Yield the better of the next note and the next entry. Both keep their order, which is not only by score."""
    left, right = list(notes), list(entries)
    while left or right:
        take_note = left and (not right or left[0].score >= right[0].score)
        yield (left if take_note else right).pop(0)


def judge_together(query: str, answer: Answer, found: FoundEntries, lookup: Lookup) -> Sequence[Hit]:
    """Return notes and entries with their confidence among both, best first, as `refresh` orders them.

    Statements that a newer one replaces have no confidence, but a question about the past keeps them.
    """
    joined = judge(add_entries(answer, found, len(answer.hits) + len(found.hits)), query)
    past = asks_about_the_past(query)
    return [
        replace(hit, confidence=0.0) if hit.superseded_by and not past else hit
        for hit in refresh(query, joined.hits, lookup)
    ]


def needed_confidence(minimum: float, hits: Sequence[Hit]) -> Callable[[Hit], float]:
    """Return what each line needs: more beside a sure answer, unless it is newer or has as many words of the query.

    A newer line about the same thing as another never needs more than that one.
    """
    best = max(hits, key=lambda hit: hit.confidence or 0.0, default=None)
    if best is None:
        return lambda _: minimum
    day, words = best.date or "", best.explain.coverage or 1.0
    more = max(1.0, BESIDE_SURE * (best.confidence or 0.0))

    def needed(hit: Hit) -> float:
        return minimum * (1.0 if (hit.date or "") > day or hit.explain.coverage >= words else more)

    return lambda hit: min(map(needed, (hit, *(one for one in hits if one.newer == hit.place))))
