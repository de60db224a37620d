"""Freshness: of two statements about the same thing, the newer one comes first and the older one is marked.

Only the first hits of an answer are compared, each by the sentence that answers the query best. A newer sentence
replaces an older one if it contradicts it, or if it announces a change ("now", "moved to", 改成) of something that both
sentences and the query name.

A date in the sentence counts before the date of the note. Lines of one log or session are in order of time. Where that
does not tell, the sentence that announces a change is the newer one. A question about the past ("where did I live
before?", 以前) gets the older statement first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

from memoriter.records import Hit
from memoriter.text import query_terms, token_set

#: Returns whether the second statement, which is newer, contradicts the first.
Contradicts = Callable[[str, str], bool]

#: Hits that are compared with each other.
COMPARED = 8
#: A hit whose confidence is a smaller share of the other's is not about the same thing.
MIN_RATIO = 0.1
#: The share of the shorter sentence's words that both have, if the newer one announces a change.
MIN_SHARED = 0.4
#: The same, and the number of words that the query has too, if they name different numbers.
MIN_BESIDE_NUMBERS, MIN_ASKED = 0.25, 2
#: A sentence with more words says too many things. Two that each have more words of their own are not about the same.
MAX_WORDS = 24

_PAST = re.compile(
    r"\b(?:before|previous(?:ly)?|former(?:ly)?|used to|earlier|originally|at first|in the past|back then)\b"
    r"|以前|之前|原来|原來|过去|過去|曾经|曾經|从前|從前|当初|當初|最初|上一[个個任家份]|前任",
    re.IGNORECASE,
)
_CHANGES_IN_ENGLISH = (
    *("now", "no longer", "any more", "anymore", "moved", "relocated", "switched", "changed", "migrated"),
    *("replaced", "instead of", "joined", "rescheduled", "postponed", "updated", "adjusted", "raised"),
    *("lowered", "increased", "decreased", "reached", "improved to", "grew to", "grown to", "risen to"),
    *("dropped to", "reduced to"),
)
_CHANGE_IN_CHINESE = re.compile(
    "改[用成为為到]|[换換][成到了]|搬[到去]|[迁遷][到移]|跳槽|[转轉]到|不再|[现現]在|目前|如今|取代|推[迟遲]"
    "|提前到|[涨漲降升]到|[变變]成"
)
_CHANGE_IN_ENGLISH = re.compile(rf"\b(?:{'|'.join(_CHANGES_IN_ENGLISH)})\b")
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_LOG = re.compile(r"(?:^|/)\d{4}-\d\d-\d\d[^/]*\.md$")
_ENDS = re.compile(r"(?<=[.!?…;])\s|(?<=[。！？；])|\n+")
_LEAD = re.compile(
    r"^\s*(?:#+\s+)?(?:[-*+]\s+|\d{1,3}[.)]\s+)?(?:\d{1,2}:\d{2}(?::\d{2})?\s+)?(?:[Uu]ser: |[Aa]ssistant: )?"
)


@dataclass(frozen=True, slots=True)
class _Sentence:
    """What a sentence says, whatever the query is."""

    text: str
    words: frozenset[str]
    numbers: frozenset[str]
    #: The only date in it, or empty.
    day: str
    announces: bool


@dataclass(frozen=True, slots=True)
class _Statement:
    """The sentence of a hit that is compared."""

    hit: Hit
    said: _Sentence
    #: Words of the query that it contains.
    asked: frozenset[str]
    day: str


def asks_about_the_past(query: str) -> bool:
    """Return whether a question is about what was, not about what is.

    >>> [asks_about_the_past(query) for query in ("Where did I live before?", "我以前住在哪里", "where do I live")]
    [True, True, False]
    """
    return bool(_PAST.search(query))


def refresh(query: str, hits: Sequence[Hit], contradicts: Contradicts) -> tuple[Hit, ...]:
    """Return the hits with newer statements before the older ones that they replace, which are marked.

    A newer statement answers at least as well as the one that it replaces, so it gets its confidence.
    """
    terms = frozenset(query_terms(query))
    first = [_statement(hit, terms) for hit in hits[:COMPARED]]
    replaced = dict[int, int]()
    for one, other in combinations(range(len(first)), 2):
        newer = _newer(first[one], first[other])
        if newer is None:
            continue
        new, old = (one, other) if newer is first[one] else (other, one)
        if old not in replaced and _replaces(first[new], first[old], contradicts):
            replaced[old] = new
    order = _order(len(first), replaced, past=asks_about_the_past(query))
    marked = [one.hit for one in first]
    for old, new in replaced.items():
        sure = max((marked[old].confidence, marked[new].confidence), key=lambda value: value or 0.0)
        marked[old] = replace(marked[old], superseded_by=_place(first[new].hit))
        marked[new] = replace(marked[new], confidence=sure)
    return (*(marked[number] for number in order), *hits[COMPARED:])


def _order(count: int, replaced: dict[int, int], *, past: bool) -> list[int]:
    """Return the places with each newer statement directly before the older one, or the other way round."""
    order = list(range(count))
    for old, new in sorted(replaced.items()):
        ahead, behind = (old, new) if past else (new, old)
        if order.index(ahead) > order.index(behind):
            order.remove(ahead)
            order.insert(order.index(behind), ahead)
    return order


def _statement(hit: Hit, terms: frozenset[str]) -> _Statement:
    sentences = _sentences(hit.snippet)
    text = max(sentences, key=lambda one: len(terms & token_set(one))) if len(sentences) > 1 else sentences[0]
    said = _sentence(text)
    return _Statement(hit, said, terms & said.words, said.day or hit.date or "")


# Cached, since questions about one thing have the same hits.


@lru_cache(maxsize=1024)
def _sentences(snippet: str) -> tuple[str, ...]:
    """Return the sentences of a hit, at least one."""
    pieces = (_LEAD.sub("", piece).strip() for piece in _ENDS.split(snippet))
    return tuple(piece for piece in pieces if piece) or ("",)


@lru_cache(maxsize=1024)
def _sentence(text: str) -> _Sentence:
    words = frozenset(token for token in token_set(text) if token[0] != "@")
    dates = _DATE.findall(text)
    numbers = frozenset(_NUMBER.findall(text))
    return _Sentence(text, words, numbers, dates[0] if len(dates) == 1 else "", _announces_change(text))


def _announces_change(text: str) -> bool:
    lower = text.lower()
    if not text.isascii() and _CHANGE_IN_CHINESE.search(text):
        return True
    # A search for each word is much faster than the pattern, which tells "now" from "know".
    return any(word in lower for word in _CHANGES_IN_ENGLISH) and _CHANGE_IN_ENGLISH.search(lower) is not None


def _newer(one: _Statement, other: _Statement) -> _Statement | None:
    """Return the newer statement, or None if nothing tells."""
    if one.day and other.day and one.day != other.day:
        return max(one, other, key=lambda statement: statement.day)
    if one.hit.path == other.hit.path and (one.hit.source == "sessions" or _LOG.search(one.hit.path)):
        return max(one, other, key=lambda statement: statement.hit.start_line)
    if one.said.announces != other.said.announces:
        return one if one.said.announces else other
    return None


def _replaces(newer: _Statement, older: _Statement, contradicts: Contradicts) -> bool:
    """Return whether the newer statement says otherwise about the same thing."""
    new, old = newer.said, older.said
    if not old.words or not new.words - old.words:
        return False
    if min(len(new.words - old.words), len(old.words - new.words)) > MAX_WORDS:
        return False
    if contradicts(old.text, new.text):
        return True
    low, high = sorted((newer.hit.confidence or 0.0, older.hit.confidence or 0.0))
    if not new.announces or low < MIN_RATIO * high or max(len(new.words), len(old.words)) > MAX_WORDS:
        return False
    asked, shared = (
        newer.asked & older.asked,
        len(new.words & old.words) / min(len(new.words), len(old.words)),
    )
    if new.numbers - old.numbers and old.numbers - new.numbers:
        return len(asked) >= MIN_ASKED and shared >= MIN_BESIDE_NUMBERS
    return bool(asked) and newer.day > older.day and shared >= MIN_SHARED


def _place(hit: Hit) -> str:
    return hit.citation or hit.path
