"""The shape of an answer: from ranked chunks to a few hits that a reader with little room can use.

One long file must not fill the answer, so after some hits of a file the best of the other files come first. Chunks that
follow each other in their file become one hit with its true lines.

A citation helps the owner in a direct chat. In a group or channel it is noise, and it reveals the names of the owner's
files. A person may keep a password in a note, and sees it. An agent sends what it reads to a model, so secrets are
masked for agents. Transcripts and entries need no masking: they are redacted before they are stored.

A score orders the hits of one query. It does not say whether the best of them is an answer, because the nearest line to
"thanks, that works" has a score too. Confidence is the probability that a hit answers, on one scale for notes, sessions
and entries. It comes from a logistic model of a few features:

- ``rerank``: the reranker's logit. It has read the query and the text together.
- ``meaning``: the cosine of the query and the text.
- ``words``: the share of the query's words that the text contains, weighted by how rare they are.
- ``gap``: how far the score is behind the best score of the answer.

``python -m lab.evals.calibrate`` fits the model and writes ``confidence.json``. There is one set of coefficients for
each combination of features, since a search may have no reranker or no vectors. Other embedders have cosines on another
scale, so beside a reranker only those of the bundled embedder count.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from memoriter.errors import MemoriterError
from memoriter.records import (
    MEDIUM_CONFIDENCE,
    Answer,
    Chunk,
    CitationMode,
    EntryHit,
    Explanation,
    Hit,
    level_of,
)
from memoriter.search.rank import Scored
from memoriter.sentences import join, sentence
from memoriter.sessions.scope import SessionKey
from memoriter.text import estimate_tokens
from memoriter.text.redaction import redact, redact_part
from memoriter.text.tokens import find_words, is_joined, last_boundary, query_terms

Neighbours = Mapping[int, Collection[int]]
"""By row: the rows directly before and after it in its file. Their numbers do not tell, because a chunk that gets its
vector later moves to a new row."""

#: Another file's best goes before a hit only if it has at least this share of the hit's score.
MIN_SHARE = 0.5
MAX_HEADING_CHARS = 160
#: Neighbours are joined up to this many tokens. Longer hits push the best line of the next one out of a small prompt.
MAX_JOINED_TOKENS = 64
#: The heading of a note in a daily log, of a later addition to a note, or of a page.
_STARTS_NOTE = re.compile(r"## (?:\d{4}-\d\d-\d\d )?\d\d:\d\d\b|# Page \d+\n")


@dataclass(frozen=True, slots=True)
class Place:
    """Consecutive chunks of one file that become one hit."""

    #: The best of the chunks. The hit has its score.
    best: Scored
    #: In the order of the file.
    rows: tuple[int, ...]


def within_notes(near: Neighbours, chunks: Mapping[int, Chunk]) -> Neighbours:
    """Return the neighbours without those in another note of a daily log, or on another page: citations name one."""

    def is_same_note(*rows: int) -> bool:
        later = max((chunks[row] for row in rows if row in chunks), key=lambda chunk: chunk.start_line)
        return not _STARTS_NOTE.match(later.text)

    return {row: [other for other in rows if is_same_note(row, other)] for row, rows in near.items()}


def spread(
    ranked: Sequence[Scored], chunks: Mapping[int, Chunk], near: Neighbours, per_file: int
) -> list[Scored]:
    """Return the rows in an order where a file has at most ``per_file`` hits before the best of another file."""
    first_of = dict[str, Scored]()
    for item in ranked:
        first_of.setdefault(chunks[item.rowid].path, item)
    bests = deque(first_of.values())
    order, shown, taken = list[Scored](), Counter[str](), set[int]()

    def take(item: Scored) -> None:
        if item.rowid not in taken:
            if taken.isdisjoint(near[item.rowid]):
                shown[chunks[item.rowid].path] += 1
            taken.add(item.rowid)
            order.append(item)

    for item in ranked:
        path = chunks[item.rowid].path
        while shown[path] >= per_file and bests and bests[0].score >= MIN_SHARE * item.score:
            take(bests.popleft())
        take(item)
    return order


def join_neighbours(
    order: Sequence[Scored],
    chunks: Mapping[int, Chunk],
    near: Neighbours,
    limit: int,
    max_tokens: int = MAX_JOINED_TOKENS,
) -> list[Place]:
    """Return the first ``limit`` hits. As many rows as possible are used, so that joined rows leave room for others."""
    places = _join(order[:limit], chunks, near, max_tokens)
    for count in range(limit + 1, len(order) + 1):
        more = _join(order[:count], chunks, near, max_tokens)
        if len(more) > limit:
            break
        places = more
    return places


def _join(
    order: Sequence[Scored], chunks: Mapping[int, Chunk], near: Neighbours, max_tokens: int
) -> list[Place]:
    rank_of = {item.rowid: rank for rank, item in enumerate(order)}
    places: list[list[int]] = []
    for row in sorted(rank_of, key=lambda row: (chunks[row].path, chunks[row].start_line, row)):
        if places and row in near[places[-1][-1]] and _fits(places[-1], row, chunks, max_tokens):
            places[-1].append(row)
        else:
            places.append([row])
    best = [Place(order[min(rank_of[row] for row in rows)], tuple(rows)) for rows in places]
    return sorted(best, key=lambda place: rank_of[place.best.rowid])


def _fits(rows: Sequence[int], row: int, chunks: Mapping[int, Chunk], max_tokens: int) -> bool:
    """Return whether the row may join the rows before it."""
    last, chunk = chunks[rows[-1]], chunks[row]
    return (last.trust, last.date) == (chunk.trust, chunk.date) and (
        sum(estimate_tokens(chunks[other].text) for other in (*rows, row)) <= max_tokens
    )


def keep(places: Sequence[Place], others: Sequence[Scored], is_kept: Callable[[int], bool]) -> list[Place]:
    """Return the places, the last of which make room for others that must be kept."""
    missing = [Place(item, (item.rowid,)) for item in others if is_kept(item.rowid)]
    if not missing:
        return list(places)
    free = [place for place in reversed(places) if not any(map(is_kept, place.rows))][: len(missing)]
    return [place for place in places if place not in free] + missing[: len(free)]


def joined(rows: Collection[int], chunks: Mapping[int, Chunk]) -> Chunk:
    """Return the consecutive chunks of one file as one chunk, with the id of the first."""
    first, *more = (chunks[row] for row in rows)
    for chunk in more:
        first = replace(first, end_line=max(first.end_line, chunk.end_line), text=_joined_text(first, chunk))
    return first


def heading_of(chunk: Chunk) -> str | None:
    """Return the title and the headings above a chunk in one line, or None without any."""
    heading = " > ".join(" ".join(part.split()) for part in chunk.headings)
    if not heading:
        return None
    return heading if len(heading) <= MAX_HEADING_CHARS else heading[: MAX_HEADING_CHARS - 1].rstrip() + "…"


def _joined_text(first: Chunk, chunk: Chunk) -> str:
    gap = chunk.start_line - first.end_line
    if first.source == "sessions":  # the lines of a transcript are not the lines of its text
        return first.text + "\n" + chunk.text
    if gap > 0:
        return first.text + "\n" * gap + chunk.text
    if chunk.start_line == chunk.end_line:  # a piece of the same long line
        return first.text + chunk.text
    repeated = 1 - gap
    return "\n".join([first.text, *chunk.text.split("\n")[repeated:]])


# ---- citations ------------------------------------------------------------------------------------------------


def shows_citations(mode: CitationMode, session: str | None = None) -> bool:
    """Return whether answers to this session have citations.

    No session key means the owner's terminal or program.
    """
    if mode != "auto":
        return mode == "on"
    return session is None or SessionKey.parse(session).chat_type not in ("group", "channel")


def source_line(hit: Hit) -> str:
    """Return the line below a snippet, ``Source: memory/2026-02-08.md#L10-L25``, or nothing without a citation."""
    return f"\n\nSource: {hit.citation}" if hit.citation else ""


def with_source(hit: Hit) -> Hit:
    """Return the hit with its citation below its snippet."""
    return replace(hit, snippet=hit.snippet.strip() + source_line(hit))


_CITATION = re.compile(r"(?P<path>.+)#(?:page=\d+&)?L(?P<first>[1-9]\d{0,8})(?:-L?(?P<last>[1-9]\d{0,8}))?")


def parse_citation(citation: str) -> tuple[str, int, int] | None:
    """Return path, first line and number of lines of a citation, or None for any other text."""
    found = _CITATION.fullmatch(citation)
    if not found:
        return None
    first = int(found["first"])
    return found["path"], first, max(1, int(found["last"] or first) - first + 1)


ELLIPSIS = "…"
#: A hit that would be shortened to less than this is left out.
MIN_CHARS = 24


def for_prompt(answer: Answer, max_chars: int) -> Answer:
    """Return the answer with citations below its snippets, all snippets together at most ``max_chars`` long."""
    return replace(answer, hits=tuple(fit(answer.hits, max_chars)))


def fit(hits: Iterable[Hit], max_chars: int) -> Iterable[Hit]:
    """Yield the hits that fit, with their citations. The last one may be shortened."""
    left = max_chars
    for hit in hits:
        whole = with_source(hit)
        if len(whole.snippet) > left:
            short = shorten(hit.snippet.strip(), left - len(source_line(hit)))
            if short:
                yield with_source(replace(hit, snippet=short))
            return
        yield whole
        left -= len(whole.snippet)


def shorten(text: str, max_chars: int) -> str:
    """Return the start of the text with an ellipsis, or nothing if there is too little room."""
    if len(text) <= max_chars:
        return text
    if max_chars < MIN_CHARS:
        return ""
    room = max_chars - len(ELLIPSIS)
    cut = last_boundary(text, room, room // 2)
    while 0 < cut < len(text) and is_joined(text, cut):
        cut -= 1  # never inside a combined character
    return text[:cut].rstrip() + ELLIPSIS if cut else ""


# ---- secrets --------------------------------------------------------------------------------------------------

ReadWhole = Callable[[str], str]
"""Returns the whole text of a note by its path."""

#: A line of a key contains one. Without one, the whole note is not needed to recognise it.
_LONG_WORD = re.compile(r"[A-Za-z0-9+/=_-]{20}")


def mask_answer(answer: Answer, read_whole: ReadWhole) -> Answer:
    """Return the answer with the secrets in its notes replaced."""
    return replace(answer, hits=tuple(mask_hit(hit, read_whole) for hit in answer.hits))


def mask_hit(hit: Hit, read_whole: ReadWhole) -> Hit:
    """Return a hit with the secrets in its note replaced."""
    if hit.source != "memory":
        return hit
    heading = hit.heading and mask(hit.heading, hit.path, read_whole)
    return replace(hit, snippet=mask(hit.snippet, hit.path, read_whole), heading=heading)


def mask(part: str, path: str, read_whole: ReadWhole) -> str:
    """Replace the secrets in a part of a note. A key of many lines is recognised in the whole note."""
    if _LONG_WORD.search(part):
        with suppress(MemoriterError):  # the note was removed since it was indexed
            return redact_part(part, read_whole(path))
    return redact(part)


# ---- confidence ------------------------------------------------------------------------------------------------

TABLE = Path(__file__).with_name("confidence.json")
#: The embedder whose cosines the coefficients are fitted to.
FITTED_MODEL = "memoriter-embed-1"
#: The number of nearest lines in an answer in which nothing is relevant.
NEAREST = 3
#: A hit with less than this share of the best confidence is left out, because relevance ends before it.
MIN_CONFIDENCE_SHARE = 0.1
#: How much the confidence of what was valid at the time of a question counts, compared with what was said later.
EARLIER = 2.0
#: The coverage of a hit that contains every word of the query, with room for rounding.
ALL_WORDS = 0.999
#: Words, or pairs of Chinese characters, of a query that can be a list of keywords.
MAX_KEYWORDS = 4
#: Confidence below `MEDIUM_CONFIDENCE`, for hits that lack the identifier that the query asks for.
_CAPPED = MEDIUM_CONFIDENCE / 2

Features = Mapping[str, float]
AnyHit = TypeVar("AnyHit", Hit, EntryHit)


def confidences(found: Sequence[tuple[Explanation, float]], model: str, query: str) -> list[float | None]:
    """Return the confidence of each hit of one answer, from explanations and scores; None for external engines.

    ``model`` is the embedder that computed the cosines. A hit with all keywords of a query may always answer it: the
    coefficients are fitted to questions, and the models do not know every name.
    """
    best = max((score for explain, score in found if _is_ours(explain)), default=0.0)
    is_exact = are_keywords(query)
    fitted = model in ("", FITTED_MODEL)
    confidence: list[float | None] = []
    for explain, score in found:
        least = MEDIUM_CONFIDENCE if is_exact and explain.coverage >= ALL_WORDS else 0.0
        value = probability(features_of(explain, best - score, fitted=fitted)) if _is_ours(explain) else None
        confidence.append(value and max(value, least))
    return confidence


def _is_ours(explain: Explanation) -> bool:
    return any(part.name in ("vector", "keyword") for part in explain.parts)


def features_of(explain: Explanation, behind: float, *, fitted: bool = True) -> dict[str, float]:
    """Return the features of a hit. ``fitted``: its cosine has the scale of the bundled embedder."""
    parts = {part.name: part.value for part in explain.parts}
    features = {"words": explain.coverage, "gap": max(-2.0, -8 * behind)}
    if explain.logit is not None:
        features["rerank"] = max(-2.0, min(2.0, explain.logit / 5))
    if "vector" in parts and (fitted or explain.logit is None):
        features["meaning"] = 4 * parts["vector"]
    return features


def probability(features: Features) -> float:
    """Return the probability that a hit with these features answers the query."""
    coefficients = _coefficients()[name_of(features)]
    total = coefficients["bias"] + sum(coefficients[name] * value for name, value in features.items())
    return 1 / (1 + math.exp(-total))


def name_of(features: Collection[str]) -> str:
    """Return the name of the set of coefficients for these features."""
    return "+".join(name for name in ("rerank", "meaning") if name in features) or "words"


@cache
def _coefficients() -> Mapping[str, Mapping[str, float]]:
    coefficients: Mapping[str, Mapping[str, float]] = json.loads(TABLE.read_text("utf-8"))["coefficients"]
    return coefficients


def judge(answer: Answer, query: str) -> Answer:
    """Return the answer with the confidence of each hit."""
    found = confidences([(hit.explain, hit.score) for hit in answer.hits], answer.model, query)
    if answer.unknown:
        found = [value and min(value, _CAPPED) for value in found]
    hits = (replace(hit, confidence=value) for hit, value in zip(answer.hits, found, strict=True))
    return replace(answer, hits=tuple(hits))


def add_earlier(answer: Answer, earlier: Answer) -> Answer:
    """Add what was valid at the time that a question is about. It comes first if it answers about as well."""
    known = {(hit.path, hit.start_line): hit for hit in (*earlier.hits, *answer.hits)}
    then = {(hit.path, hit.start_line) for hit in earlier.hits}

    def weight(hit: Hit) -> float:
        return (hit.confidence or 0.0) * (EARLIER if (hit.path, hit.start_line) in then else 1.0)

    hits = tuple(sorted(known.values(), key=weight, reverse=True))
    return replace(answer, hits=hits, degraded=answer.degraded or earlier.degraded)


def conclude(answer: Answer, *, cut: bool) -> Answer:
    """Return a judged answer with its notice. ``cut`` leaves out what is not relevant.

    If nothing is relevant, the nearest lines stay, and the notice says so.
    """
    concluded = replace(answer, hits=tuple(relevant(_once(answer.hits)))) if cut else answer
    return replace(concluded, notice=_notice(concluded))


def _once(hits: Sequence[Hit]) -> Sequence[Hit]:
    """Drop notes that say only what a better one of the same trust says, such as a line of several daily notes."""
    first = dict[tuple[object, ...], Hit]()
    for hit in hits:
        words = _HEADING.sub("", hit.snippet).split() if hit.source == "memory" else ()
        first.setdefault((hit.trust, *words) if words else (hit.path, hit.start_line), hit)
    return list(first.values())


def relevant(hits: Sequence[AnyHit]) -> Sequence[AnyHit]:
    """Drop hits that are far less likely to answer than the best. If all are unlikely, return the nearest."""
    best = max((hit.confidence or 0.0 for hit in hits), default=0.0)
    if all(level_of(hit.confidence) == "low" for hit in hits):
        return hits[:NEAREST]
    return [hit for hit in hits if hit.confidence is None or hit.confidence >= MIN_CONFIDENCE_SHARE * best]


def _notice(answer: Answer) -> str | None:
    """Return what a reader must know before the hits; None if there is nothing to say."""
    unknown = sentence("search.unknown", names=", ".join(answer.unknown)) if answer.unknown else None
    nothing = "search.nothing_relevant" if answer.hits else "search.nothing"
    return join(unknown, None if answer.relevant else sentence(nothing))


_HEADING = re.compile(r"^#{1,6} .*$", re.MULTILINE)
_LETTER, _DIGITS = re.compile("[a-z]"), re.compile(r"\d.*\d.*\d|_.*\d|\d.*_")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def are_keywords(query: str) -> bool:
    """Return whether a query consists of a few keywords, without a word such as "the", "what" or 的."""
    words, terms = list(find_words(query)), set(query_terms(query))
    return 0 < len(words) <= MAX_KEYWORDS and all(terms.intersection(tokens) for *_, tokens in words)


def identifiers(query: str) -> tuple[str, ...]:
    """Return the names such as OPS-1077 or ERR_CONN_42 in a query, as they are written.

    Names with fewer digits, such as UTF-8, often have another spelling, and a description finds them too.
    """
    return tuple(_identifiers(query).values())


def unknown_identifiers(query: str, unknown: Collection[str]) -> tuple[str, ...]:
    """Return the identifiers in a query that are among the unknown tokens."""
    return tuple(name for token, name in _identifiers(query).items() if token in unknown)


def _identifiers(query: str) -> dict[str, str]:
    """Return identifiers by their token."""
    words = ((tokens[0], query[start:end]) for start, end, tokens in find_words(query) if tokens)
    return {token: word for token, word in words if _is_identifier(token)}


def _is_identifier(token: str) -> bool:
    is_name = _LETTER.search(token) and _DIGITS.search(token) and not _DATE.match(token)
    return token.isascii() and bool(is_name)
