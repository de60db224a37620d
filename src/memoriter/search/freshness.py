"""Freshness: of two statements about the same thing, the newer one comes first and the older one is marked.

The first hits of an answer are compared, each by the sentence that answers the query best. A newer sentence that
contradicts an older one by its words replaces it.

A statement that changes something often shares no word with the question: "where do I work?" finds where the person
worked before, not "left Tidewater for Halden". Therefore the lines nearest to the first hits are looked up by their
vectors, and a judge (`memoriter.search.changes`) reads the plausible ones together with the hit. If it is sure,
the older line is marked. A newer line that is probably about the same thing comes first, unless the older one answers
the question much better. One that may be about it comes along. Where many lines are as near, as in a record of runs or
payments, the like of it happens again and again, so only what the judge takes for a change counts. A newer line that is
trusted less comes along behind the older one and never replaces it. One that is not near must answer the question, as
far as the reranker can tell, unless the judge is sure: new brake pads do not change the frame number of a bike.

A date in the sentence counts before the date of the note. Lines of one log or session are in order of time, and entries
have theirs. Where that does not tell, the sentence that announces a change is the newer one. A question about the past
("where did I live before?", 以前) gets the older statement first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, islice

from memoriter.records import Explanation, Hit, Part, is_trusted_like
from memoriter.search.changes import (
    BESIDE,
    CERTAIN,
    CROWD,
    MARKED,
    MIN_COSINE,
    NEAR,
    NEARBY,
    NEWS,
    NO_NEIGHBOUR,
    PLAUSIBLE,
    PROBABLE,
    SAME,
    TELLS,
    UNSURE,
    Judge,
    about_the_same,
    announces_change,
    answers_by_change,
    change,
    comes_first,
)
from memoriter.search.rank import NEAR_WORDS
from memoriter.search.when import past_question
from memoriter.text import query_terms, token_set
from memoriter.text.dates import local_day
from memoriter.text.tokens import CJK, estimate_tokens
from memoriter.text.words import unless_abbreviated

#: Returns whether the second statement, which is newer, contradicts the first.
Contradicts = Callable[[str, str], bool]
#: Returns how well a line answers the query, as a logit: 0 means that it is as likely as not.
Answer = Callable[[str, str], float]
#: Returns the hits nearest to the line of a hit, with the cosine and the words in common.
FindSimilar = Callable[[str, Hit], Sequence[Hit]]
#: The number of the newer statement, by that of the older one.
_Pairs = Mapping[int, int]

#: Hits that are compared with each other.
COMPARED = 8
#: Two sentences that each have more words of their own are not about the same.
MAX_WORDS = 24

#: The least confidence of a hit that newer lines are looked for: of the first one, and of the others.
MIN_FIRST, MIN_CHASED = 0.05, 0.2
#: The hits near which newer lines are looked for, and the tokens after which the judge starts with no further hit.
CHASED, JUDGED_TOKENS = 3, 150
#: The hits that may answer by a change.
NEWEST = 2
#: The number of lines near a hit, and how many newer and older ones of them count.
SIMILAR, NEAREST = 24, 10
#: How many newer lines and older hits the judge reads near a hit; for a question about the past only older lines.
READ = (2, 1)
#: A longer line is a page or a long turn of a chat. In UTF-8, where a Chinese character has three bytes and says about
#: as much as three letters.
MAX_BYTES = 600

_PAST = re.compile(
    # "What do we need before Friday?" is not about the past.
    r"^(?=.*\b(?:did|was|were|had|\w+(?<!e)ed)\b).*\bbefore\b"
    r"|\b(?:previous(?:ly)?|former(?:ly)?|used to|earlier|originally|at first|in the past|back then)\b"
    r"|以前|之前|原来|原來|过去|過去|曾经|曾經|从前|從前|当初|當初|最初|上一[个個任家份]|前任|那时|那時",
    re.IGNORECASE,
)
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_LOG = re.compile(r"(?:^|/)\d{4}-\d\d-\d\d[^/]*\.md$")
_WHOLE = unless_abbreviated(r"\s")
_ENDS = re.compile(rf"(?<=[.!?…;])\s{_WHOLE}|(?<=[。！？；])")
_ENDS_IN_ASCII = re.compile(rf"\s(?<=[.!?;]\s){_WHOLE}")  # the same; the regex engine skips to the next space
_CJK = re.compile(f"[{CJK}]")
_HEADING = re.compile(r"^#{1,6} .*$", re.MULTILINE)
_LEAD = re.compile(
    r"^\s*(?:#+\s+)?(?:[-*+]\s+|\d{1,3}[.)]\s+)?(?:\d{1,2}:\d{2}(?::\d{2})?\s+)?(?:[Uu]ser: |[Aa]ssistant: )?"
)


@dataclass(frozen=True, slots=True)
class Lookup:
    """The questions of freshness beyond the hits. Without similar hits or a judge, only the hits are compared."""

    contradicts: Contradicts
    find_similar: FindSimilar | None = None
    judge: Judge | None = None
    answer: Answer = lambda _query, _line: 0.0


@dataclass(frozen=True, slots=True)
class _Sentence:
    """The content of a sentence, for any query."""

    text: str
    #: The only date in it, or empty.
    day: str
    announces: bool

    @property
    def words(self) -> frozenset[str]:
        """Its words without dates. Only few sentences are compared by them, so they are split at first use."""
        words: frozenset[str] = _words(self.text)
        return words


@dataclass(frozen=True, slots=True)
class Statement:
    """The sentence of a hit that is compared."""

    hit: Hit
    said: _Sentence
    #: The whole line of the sentence.
    line: str
    day: str


def asks_about_the_past(query: str) -> bool:
    """Return whether a question is about what was, not about what is.

    >>> [asks_about_the_past(query) for query in ("Where did I live before?", "我去年住在哪里", "where do I live")]
    [True, True, False]
    """
    return bool(_PAST.search(query)) or past_question(query, local_day()) is not None


def refresh(query: str, hits: Sequence[Hit], lookup: Lookup) -> tuple[Hit, ...]:
    """Return the hits with newer statements before the older ones that they replace, which are marked.

    A newer statement answers at least as well as the one that it replaces, so it gets its confidence. One that was not
    among the hits is added. For a question about the past it is the older one.
    """
    terms, past = frozenset(query_terms(query)), asks_about_the_past(query)
    first = [statement_of(hit, terms) for hit in hits[:COMPARED]]
    replaced = _replaced_among(first, lookup.contradicts)
    newer, beside = _chase(query, first, replaced, lookup, past=past)
    # From the oldest to the newest, since a newer statement may be replaced too.
    pairs = sorted((beside | newer | replaced).items(), key=lambda pair: (first[pair[1]].day, pair))
    order = _order(first, len(hits[:COMPARED]), dict(pairs), beside, past=past)
    marked = [one.hit for one in first]
    for old, new in pairs:
        sure = max((marked[old].confidence, marked[new].confidence), key=lambda value: value or 0.0)
        wanted = old if past else new
        marked[wanted] = replace(marked[wanted], confidence=sure)
        if old in replaced:
            marked[old] = replace(marked[old], superseded_by=first[new].hit.place)
        else:
            marked[old] = replace(marked[old], newer=first[new].hit.place)
            marked[new] = _raised(marked[new], marked[old])
    shown = [marked[number] for number in order]
    news = () if past else _surer(query, shown[:NEWEST], lookup.judge)
    return (*news, *shown[len(news) :], *hits[COMPARED:])


def _surer(query: str, hits: Sequence[Hit], judge: Judge | None) -> Sequence[Hit]:
    """Return hits with more confidence in a line that tells of a change in what the query asks for."""

    def surer(hit: Hit) -> Hit:
        sure = 0.0 if hit.confidence is None or hit.trust == "untrusted" else hit.confidence
        said = statement_of(hit, frozenset(query_terms(query))) if MIN_FIRST <= sure < UNSURE else None
        if said is None or not _is_short(said) or not answers_by_change(judge, query, said.line):
            return hit
        return replace(hit, confidence=1 / (1 + (1 - sure) / sure * math.exp(-NEWS)))

    return [surer(hit) for hit in hits]


def _replaced_among(first: Sequence[Statement], contradicts: Contradicts) -> dict[int, int]:
    """Return which statement is replaced by which, by their numbers."""
    replaced = dict[int, int]()
    for one, other in combinations(range(len(first)), 2):
        newer = _newer(first[one], first[other])
        new, old = (one, other) if newer is first[one] else (other, one)
        if newer is None or old in replaced or not _may_replace(first[new], first[old]):
            continue
        if _contradicts(first[new], first[old], contradicts):
            replaced[old] = new
    return replaced


def _chase(
    query: str, first: list[Statement], replaced: dict[int, int], lookup: Lookup, *, past: bool
) -> tuple[dict[int, int], dict[int, int]]:
    """Add what is sure to `replaced`. Return newer statements that come first, and those that only come along.

    Lines near the first hits are judged: newer ones, and older ones that are hits too; for a question about the past
    the other way round. The newest that is surely about the same stands for all. One that is trusted less comes along.
    A newer statement is looked up like a hit, since it may be replaced too.
    """
    newer, beside = dict[int, int](), dict[int, int]()
    numbers, tokens = chased(first, past=past)[:CHASED], 0
    for number in islice(numbers, 2 * COMPARED):  # a chain ends, so that a search stays quick
        likely = list[tuple[float, Near, float]]()
        is_open = number not in replaced and tokens < JUDGED_TOKENS
        for near in near_lines(first, lookup, number, past=past) if is_open else ():
            tokens += estimate_tokens(near.old.line) + estimate_tokens(near.new.line)
            kind, chance = change(lookup.judge, near.old.line, near.new.line)
            if near.is_crowded and chance < PROBABLE:
                continue
            # What was before is asked for, whether or not it still is.
            about = about_the_same(near.features, max(chance, 0.5) if past else chance)
            is_near = near.features[0] >= NEAR or near.nearness >= MARKED
            if kind == "retired" and about >= CERTAIN and is_near and _may_replace(near.new, near.old):
                replaced.setdefault(_number_of(near.old, first), _number_of(near.new, first))
            is_sure = kind == "retired" and about >= SAME and not _is_across(near.old, near.new)
            if about >= BESIDE and not is_sure and near.nearness < NEARBY:
                answer = lookup.answer(query, (near.old if past else near.new).line)
                about = about if answer > (TELLS if kind and about >= SAME else 0) else 0.0
            if about >= BESIDE:
                likely.append((about, near, chance))
        same = [one for one in likely if one[0] >= SAME] or sorted(likely, key=lambda one: -one[0])[:1]
        if same:
            about, near, chance = max(same, key=lambda one: (one[1].new.day, one[0]))
            old, new = _number_of(near.old, first), _number_of(near.new, first)
            if old not in replaced | newer | beside:
                is_first = _comes_first(query, near, lookup.answer, about, chance)
                (newer if is_first and _may_replace(near.new, near.old) else beside)[old] = new
        successor = (newer | replaced).get(number, number)
        numbers += [successor] if not past and successor not in numbers else []
    return newer, beside


def _comes_first(query: str, near: Near, answer: Answer, about: float, chance: float) -> bool:
    if near.nearness < NEAR and chance < PROBABLE:
        return False
    lead = answer(query, near.new.line) - answer(query, near.old.line)
    return comes_first(about, chance, lead, announced=announces_change(near.new.line))


def chased(first: Sequence[Statement], *, past: bool) -> list[int]:
    """Return the numbers of the hits that may enter a prompt."""
    sure = [1.0 if one.hit.confidence is None else one.hit.confidence for one in first[: 1 if past else None]]
    return [number for number, value in enumerate(sure) if value >= (MIN_CHASED if number else MIN_FIRST)]


@dataclass(frozen=True, slots=True)
class Near:
    """A hit and a line near it, as the older and the newer of two statements."""

    old: Statement
    new: Statement
    nearness: float
    #: What `about_the_same` needs to know about the neighbourhood: the cosine, and how it compares with other lines.
    features: tuple[float, ...]
    #: Whether many lines are as near, so that only the judge can tell a change from what happens again and again.
    is_crowded: bool


def near_lines(
    first: Sequence[Statement], lookup: Lookup, number: int = 0, *, past: bool = False, every: bool = False
) -> list[Near]:
    """Return the lines near a hit that are newer, or older and hits too, as far as the judge should read them.

    With ``every``, lines that it need not read are among them.
    """
    best = first[number]
    if lookup.find_similar is None or lookup.judge is None or not _is_short(best):
        return []
    terms = frozenset(query_terms(best.line))
    found = (statement_of(hit, terms) for hit in lookup.find_similar(best.line, best.hit))
    others = [
        (_part(one, "vector") + NEAR_WORDS * _part(one, "keyword"), one, _newer(best, one))
        for one in found
        if _is_short(one) and one.line != best.line and one.hit.trust != "untrusted"
        # The other lines of a hit are shown with it.
        if _number_of_hit(one.hit, (best,)) is None
    ]
    others.sort(key=lambda one: -one[0])
    size, crowded, clear = CROWD
    level = others[size - 1][0] if len(others) >= size else 0.0
    least = level + clear if level >= crowded else 0.0
    newer = [(nearness, one) for nearness, one, new in others if new is one]
    older = [(nearness, one) for nearness, one, new in others if new is best and _may_replace(best, one)]
    groups = dict[bool, list[Near]]()
    for is_newer, near in ((True, newer), (False, older)):
        group = groups.setdefault(is_newer != past, [])
        for nearness, one in near[:NEAREST]:
            known = _number_of_hit(one.hit, first)
            if is_newer != past or known is not None:
                # A line is compared with the others of its language.
                rivals = (value for value, other in near if other is not one and not _is_across(one, other))
                next_one = max(rivals, default=NO_NEIGHBOUR)
                features = (
                    _part(one, "vector"),
                    float(nearness >= next_one),
                    nearness - next_one,
                    float(known == (0 if number else 1)),
                )
                ends = (best, one) if is_newer else (one, best)
                group.append(Near(*ends, nearness, features, nearness < least))
        group.sort(key=lambda pair: -about_the_same(pair.features, PLAUSIBLE))
    if every:
        return [*groups[True], *groups[False]]
    counts = ((True, READ[0]), (False, 0 if past else READ[1]))
    return [pair for wanted, most in counts for pair in islice(filter(_is_plausible, groups[wanted]), most)]


def _is_plausible(pair: Near) -> bool:
    """Return whether the judge should read a pair."""
    return pair.features[0] >= MIN_COSINE and about_the_same(pair.features, PLAUSIBLE) >= BESIDE


def _is_short(statement: Statement) -> bool:
    return 0 < len(statement.line.encode()) <= MAX_BYTES


def _may_replace(new: Statement, old: Statement) -> bool:
    """Return whether the newer text is trusted at least as much. Text from outside never hides the owner's."""
    return is_trusted_like(new.hit.trust, old.hit.trust)


def _number_of_hit(hit: Hit, first: Sequence[Statement]) -> int | None:
    """Return the number of a hit that is or contains this one, since neighbouring chunks are joined."""
    for number, known in enumerate(one.hit for one in first):
        if known.path == hit.path and known.start_line <= hit.end_line and hit.start_line <= known.end_line:
            return number
    return None


def _number_of(statement: Statement, first: list[Statement]) -> int:
    """Return the number of a statement among the first. One that is not there is added with the first one's score."""
    known = _number_of_hit(statement.hit, first)
    if known is not None:
        return known
    best = first[0].hit
    detail = f"about the same as {best.place}"
    explain = Explanation("similar", (Part("similar", 1.0, best.score, best.score, detail),))
    first.append(replace(statement, hit=replace(statement.hit, score=best.score, explain=explain)))
    return len(first) - 1


def _raised(newer: Hit, older: Hit) -> Hit:
    """Return the newer of two hits with at least the score of the older one."""
    missing = older.score - newer.score
    if missing <= 0:
        return newer
    part = Part("similar", 1.0, missing, missing, f"newer line about the same as {older.place}")
    explain = replace(newer.explain, parts=(*newer.explain.parts, part))
    return replace(newer, score=older.score, explain=explain)


def _is_across(line: Statement, other: Statement) -> bool:
    """Return whether two lines have different languages."""
    return bool(_CJK.search(line.line)) != bool(_CJK.search(other.line))


def _part(statement: Statement, name: str) -> float:
    return next((part.value for part in statement.hit.explain.parts if part.name == name), 0.0)


def _order(first: Sequence[Statement], hits: int, pairs: _Pairs, beside: _Pairs, *, past: bool) -> list[int]:
    """Return the places with each newer statement directly before the older one, or the other way round.

    One that only comes along and was no hit is behind the older one, and behind others that answer half as surely.
    """
    order, sure = list(range(len(first))), [one.hit.confidence or 0.0 for one in first]
    for old, new in pairs.items():
        ahead, behind = (old, new) if past else (new, old)
        if beside.get(old) != new and order.index(ahead) > order.index(behind):
            order.remove(ahead)
            order.insert(order.index(behind), ahead)
    for old, new in beside.items():
        if new >= hits:
            order.remove(new)
            behind_old = order[order.index(old) + 1 :]
            order.insert(
                next((order.index(one) for one in behind_old if 2 * sure[one] < sure[old]), hits), new
            )
    return order


def statement_of(hit: Hit, terms: frozenset[str]) -> Statement:
    """Return the sentence of a hit that has most of these words, or else most of their Chinese characters."""
    found = _sentences(hit.snippet)
    text, line = found[0]
    if len(found) > 1:
        chars = {char for char in "".join(terms) if char > "\u2fff"}
        text, line = max(found, key=lambda one: (len(terms & token_set(one[0])), len(chars & set(one[0]))))
    said = _sentence(text)
    return Statement(hit, said, line, said.day or hit.date or "")


@lru_cache(maxsize=1024)  # here and below: questions about one thing have the same hits
def _sentences(snippet: str) -> tuple[tuple[str, str], ...]:
    """Return the sentences of a hit with their lines, at least one. Headings count only if there is nothing else."""
    text = _HEADING.sub("", snippet) if "#" in snippet else snippet
    lines = [_LEAD.sub("", line, count=1).strip() for line in (text if text.strip() else snippet).split("\n")]
    ends = _ENDS_IN_ASCII if snippet.isascii() else _ENDS
    pieces = ((piece.strip(), line) for line in lines for piece in ends.split(line))
    return tuple((piece, line) for piece, line in pieces if piece) or (("", ""),)


@lru_cache(maxsize=1024)
def _sentence(text: str) -> _Sentence:
    dates = _DATE.findall(text) if "-" in text else []
    return _Sentence(text, dates[0] if len(dates) == 1 else "", announces_change(text))


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(token for token in token_set(text) if token[0] != "@")


def _newer(one: Statement, other: Statement) -> Statement | None:
    """Return the newer statement, or None if nothing tells."""
    if one.day and other.day and one.day != other.day:
        return max(one, other, key=lambda statement: statement.day)
    if one.hit.entry and other.hit.entry:
        moments = [each.entry.valid_from for each in (one.hit.entry, other.hit.entry)]
        return None if moments[0] == moments[1] else (one if moments[0] > moments[1] else other)
    if one.hit.path == other.hit.path and (one.hit.source == "sessions" or _LOG.search(one.hit.path)):
        return max(one, other, key=lambda statement: statement.hit.start_line)
    if one.said.announces != other.said.announces:
        return one if one.said.announces else other
    return None


def _contradicts(newer: Statement, older: Statement, contradicts: Contradicts) -> bool:
    """Return whether the newer statement says otherwise about the same thing, by its words."""
    new, old = newer.said.words, older.said.words
    if not old or not new - old or min(len(new - old), len(old - new)) > MAX_WORDS:
        return False
    return contradicts(older.said.text, newer.said.text)
