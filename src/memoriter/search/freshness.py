"""Freshness: of two statements about the same thing, the newer one comes first and the older one is marked.

The first hits of an answer are compared, each by the sentence that answers the query best. A newer sentence replaces
an older one if it contradicts it, or if it announces a change ("now", "moved to", 改成) of something that both
sentences and the query name.

A statement that changes something often shares no word with the question: "where do I work?" finds where the person
worked before, not "left Tidewater for Halden". Therefore the line of the first hit is the query of a second search, and
the reranker compares it with the newer lines that are nearest to it. A logistic model decides whether one of them
replaces the hit, by the cosine, by what the reranker says about a replacement, and by how far the newer line is ahead
of the others. ``python -m lab.evals.updates --fit`` fits it.

A date in the sentence counts before the date of the note. Lines of one log or session are in order of time. Where that
does not tell, the sentence that announces a change is the newer one. A question about the past ("where did I live
before?", 以前) gets the older statement first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from memoriter.records import Explanation, Hit, Part, is_trusted_like
from memoriter.text import query_terms, token_set
from memoriter.text.dates import has_digit

if TYPE_CHECKING:
    from memoriter.search.rerank import Comparison, Reranker

#: Returns whether the second statement, which is newer, contradicts the first.
Contradicts = Callable[[str, str], bool]
#: Returns hits about the same thing as a statement, by the first stage of the search.
FindSimilar = Callable[[str], Sequence[Hit]]

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

#: Hits of the second search, and how many of them the reranker reads: the nearest ones that are newer.
SIMILAR, READ = 8, 4
#: A longer line is a paragraph or a turn of a chat. The next similar turn is newer too, but replaces nothing. In UTF-8,
#: where a Chinese character has three bytes and says about as much as three letters.
MAX_BYTES = 130
#: The model of a replacement, and the least probability.
BIAS, COSINE, AHEAD, REPLACES = -5.05, 7.1, 0.23, 0.55
MIN_PROBABILITY = 0.5
#: The logit of a line that has nothing to do with the query.
UNRELATED = -11.0

_PAST = re.compile(
    r"\b(?:before|previous(?:ly)?|former(?:ly)?|used to|earlier|originally|at first|in the past|back then"
    r"|last (?:year|winter|spring|summer|autumn|fall))\b"
    r"|以前|之前|原来|原來|过去|過去|曾经|曾經|从前|從前|当初|當初|最初|上一[个個任家份]|前任|去年|前年|那时|那時",
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
_PERSONS = re.compile(
    r"\b(?:mum|mom|mother|dad|father|parents|son|daughter|wife|husband|brother|sister|aunt|uncle|cousin|grandm|grandf"
    r"|grandp|friend|neighbou?r|colleague|boss|his|her|their)"
    "|[爸妈爹娘哥姐弟妹姨姑叔舅婶爷岳]|儿子|女儿|老公|老婆|丈夫|妻子|奶奶|外公|外婆|公公|婆婆|同事|邻居|朋友|老板"
)
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_LOG = re.compile(r"(?:^|/)\d{4}-\d\d-\d\d[^/]*\.md$")
_ENDS = re.compile(r"(?<=[.!?…;])\s|(?<=[。！？；])")
_ENDS_IN_ASCII = re.compile(r"\s(?<=[.!?;]\s)")  # the same; the regex engine skips to the next space
_HEADING = re.compile(r"^#{1,6} .*$", re.MULTILINE)
_LEAD = re.compile(
    r"^\s*(?:#+\s+)?(?:[-*+]\s+|\d{1,3}[.)]\s+)?(?:\d{1,2}:\d{2}(?::\d{2})?\s+)?(?:[Uu]ser: |[Aa]ssistant: )?"
)


@dataclass(frozen=True, slots=True)
class Lookup:
    """The questions of freshness beyond the hits. Without similar hits or a reranker, only the hits are compared."""

    contradicts: Contradicts
    find_similar: FindSimilar | None = None
    reranker: Reranker | None = None


class Features(NamedTuple):
    """Tells whether the newer of two similar statements replaces the older one."""

    cosine: float
    #: How far the reranker's logit is ahead of the other similar statements'.
    ahead: float
    #: The reranker's logit of a replacement.
    replaces: float


@dataclass(frozen=True, slots=True)
class _Sentence:
    """The content of a sentence, for any query."""

    text: str
    numbers: frozenset[str]
    #: The only date in it, or empty.
    day: str
    announces: bool

    @property
    def words(self) -> frozenset[str]:
        """Its words without dates. Only few sentences are compared by them, so they are split at first use."""
        return _words(self.text)


@dataclass(frozen=True, slots=True)
class _Statement:
    """The sentence of a hit that is compared."""

    hit: Hit
    said: _Sentence
    #: The whole line of the sentence.
    line: str
    #: The words of the query.
    terms: frozenset[str]
    day: str

    @property
    def asked(self) -> frozenset[str]:
        """Words of the query that it contains."""
        return self.terms & self.said.words


def asks_about_the_past(query: str) -> bool:
    """Return whether a question is about what was, not about what is.

    >>> [asks_about_the_past(query) for query in ("Where did I live before?", "我以前住在哪里", "where do I live")]
    [True, True, False]
    """
    return bool(_PAST.search(query))


def refresh(query: str, hits: Sequence[Hit], lookup: Lookup) -> tuple[Hit, ...]:
    """Return the hits with newer statements before the older ones that they replace, which are marked.

    A newer statement answers at least as well as the one that it replaces, so it gets its confidence. One that was not
    among the hits is added.
    """
    terms, past = frozenset(query_terms(query)), asks_about_the_past(query)
    first = [_statement(hit, terms) for hit in hits[:COMPARED]]
    replaced = _replaced_among(first, lookup.contradicts)
    _look_further(first, replaced, lookup, past=past)
    order = _order(len(first), replaced, past=past)
    marked = [one.hit for one in first]
    for old, new in replaced.items():
        sure = max((marked[old].confidence, marked[new].confidence), key=lambda value: value or 0.0)
        marked[old] = replace(marked[old], superseded_by=_place(first[new].hit))
        marked[new] = replace(marked[new], confidence=sure)
    return (*(marked[number] for number in order), *hits[COMPARED:])


def _replaced_among(first: Sequence[_Statement], contradicts: Contradicts) -> dict[int, int]:
    """Return which statement is replaced by which, by their numbers."""
    replaced = dict[int, int]()
    for one, other in combinations(range(len(first)), 2):
        newer = _newer(first[one], first[other])
        if newer is None:
            continue
        new, old = (one, other) if newer is first[one] else (other, one)
        if (
            old not in replaced
            and _may_replace(first[new], first[old])
            and _replaces(first[new], first[old], contradicts)
        ):
            replaced[old] = new
    return replaced


def _look_further(first: list[_Statement], replaced: dict[int, int], lookup: Lookup, *, past: bool) -> None:
    """Search for what replaces the first hit; for a question about the past, for what the first hit replaces."""
    if not first or 0 in replaced or 0 in replaced.values():
        return
    likely, found = 0.0, None
    for other, features in _compare_similar(first[0], lookup, past=past):
        if (chance := probability(features)) > likely:
            likely, found = chance, other
    if found is not None and likely >= MIN_PROBABILITY:
        number = _number_of(found, first)
        replaced.update({number: 0} if past else {0: number})


def compare_similar(query: str, hit: Hit, lookup: Lookup) -> list[tuple[Hit, Features]]:
    """Return newer hits that are similar to this one, with the features that say whether they replace it."""
    found = _compare_similar(_statement(hit, frozenset(query_terms(query))), lookup, past=False)
    return [(other.hit, features) for other, features in found]


def _compare_similar(best: _Statement, lookup: Lookup, *, past: bool) -> list[tuple[_Statement, Features]]:
    if lookup.find_similar is None or lookup.reranker is None or not _is_short(best):
        return []
    terms = frozenset(query_terms(best.line))
    found = [_statement(hit, terms) for hit in lookup.find_similar(best.line)]
    later = [one for one in found if _is_later(*((best, one) if past else (one, best)))]
    nearest = sorted(later, key=lambda one: -_cosine(one.hit))[:READ]
    compared = lookup.reranker.compare(best.line, {number: one.line for number, one in enumerate(nearest)})
    return [
        (nearest[number], _features(number, compared, nearest[number].hit))
        for number in compared
        if _is_short(nearest[number]) and not _names_other_person(best.line, nearest[number].line)
    ]


def _features(number: int, compared: Mapping[int, Comparison], hit: Hit) -> Features:
    others = (compared[other].answers for other in compared if other != number)
    ahead = compared[number].answers - max(others, default=UNRELATED)
    return Features(_cosine(hit), ahead, compared[number].replaces)


def probability(features: Features) -> float:
    """Return the probability that the newer of two similar statements replaces the older one."""
    cosine, ahead, replaces = features
    return 1 / (1 + math.exp(-(BIAS + COSINE * cosine + AHEAD * ahead + REPLACES * replaces)))


def _is_short(statement: _Statement) -> bool:
    return 0 < len(statement.line.encode()) <= MAX_BYTES


def _is_later(new: _Statement, old: _Statement) -> bool:
    return bool(new.day and old.day) and new.day > old.day and _may_replace(new, old)


def _may_replace(new: _Statement, old: _Statement) -> bool:
    """Return whether the newer text is trusted at least as much. Text from outside never hides the owner's."""
    return is_trusted_like(new.hit.trust, old.hit.trust)


def _names_other_person(line: str, other: str) -> bool:
    """Return whether the other line is about a relative or colleague whom the line does not name."""
    return not {*_PERSONS.findall(other.lower())} <= {*_PERSONS.findall(line.lower())}


def _number_of(statement: _Statement, first: list[_Statement]) -> int:
    """Return the number of a statement among the first. One that is not there is added with the first one's score."""
    hit, best = statement.hit, first[0].hit
    for number, one in enumerate(first):
        if (one.hit.path, one.hit.start_line) == (hit.path, hit.start_line):
            return number
    detail = f"about the same as {_place(best)}"
    explain = Explanation("similar", (Part("similar", 1.0, best.score, best.score, detail),))
    first.append(replace(statement, hit=replace(hit, score=best.score, explain=explain)))
    return len(first) - 1


def _cosine(hit: Hit) -> float:
    return next((part.value for part in hit.explain.parts if part.name == "vector"), 0.0)


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
    found = _sentences(hit.snippet)
    text, line = max(found, key=lambda one: len(terms & token_set(one[0]))) if len(found) > 1 else found[0]
    said = _sentence(text)
    return _Statement(hit, said, line, terms, said.day or hit.date or "")


# Cached, since questions about one thing have the same hits.


@lru_cache(maxsize=1024)
def _sentences(snippet: str) -> tuple[tuple[str, str], ...]:
    """Return the sentences of a hit with their lines, at least one. Headings count only if there is nothing else."""
    text = _HEADING.sub("", snippet) if "#" in snippet else snippet
    lines = [_without_lead(line).strip() for line in (text if text.strip() else snippet).split("\n")]
    ends = _ENDS_IN_ASCII if snippet.isascii() else _ENDS
    pieces = ((piece.strip(), line) for line in lines for piece in ends.split(line))
    return tuple((piece, line) for piece, line in pieces if piece) or (("", ""),)


def _without_lead(line: str) -> str:
    lead = _LEAD.match(line)
    return line[lead.end() :] if lead else line


@lru_cache(maxsize=1024)
def _sentence(text: str) -> _Sentence:
    numbers = frozenset(_NUMBER.findall(text)) if has_digit(text) or not text.isascii() else frozenset[str]()
    dates = _DATE.findall(text) if numbers else []
    return _Sentence(text, numbers, dates[0] if len(dates) == 1 else "", _announces_change(text))


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(token for token in token_set(text) if token[0] != "@")


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
