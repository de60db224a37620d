"""A summary without a model: the sentences that carry a conversation, told apart into decisions, tasks and facts.

A sentence is worth more when it holds the words that the conversation keeps coming back to, when it decides something,
names somebody, gives a number, or was said by the person; and less when it only asks, greets or reports on the work.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from recollect.records import Turn
from recollect.text.tokens import tokenize
from recollect.writing.cues import DECISION, ECHO, EMPTY, FACT, LOOSE_END, NAMED, OPENING, POLITE, TASK
from recollect.writing.points import Points, is_chinese

MAX_EACH = 6
MAX_SENTENCES = 4000  #: looked at; of a longer conversation the beginning and the end

_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_END = re.compile(r"(?<=[。！？!?；])\s*|(?<=[.;])\s+(?=[A-Z0-9\u4e00-\u9fff\"“(])|\n+")
_BULLET = re.compile(r"^\s*(?:[-*+•>#]+|\d{1,2}[.)、])\s+")
_CODE = re.compile(r"[{}<>=|\\]|::|\(\)|\$ ")


@dataclass(slots=True)
class _Sentence:
    text: str
    role: str
    number: int  #: place in the conversation
    tokens: list[str]
    score: float = 0.0
    kinds: set[str] = field(default_factory=set)

    @property
    def asks(self) -> bool:
        return self.text.endswith(("?", "？", "吗", "呢"))


def extract(turns: Sequence[Turn]) -> Points:
    """The points of a conversation, each one of its own sentences."""
    sentences = _bounded(list(_sentences(turns)))
    _score(sentences)
    first = next((one for one in sentences if one.role == "user"), sentences[0] if sentences else None)
    taken: list[_Sentence] = []
    decisions = _best(sentences, "decision", taken)
    tasks = _best(sentences, "task", taken)
    facts = _best([one for one in sentences if one is not first], "", taken)
    return Points(
        title=_title(first, decisions or facts),
        summary=_summary(first),
        decisions=[_finished(one.text) for one in decisions],
        facts=[_finished(one.text) for one in facts],
        todo=[_finished(one.text) for one in tasks],
    )


# ---- sentences ------------------------------------------------------------------------------------------------


def _sentences(turns: Iterable[Turn]) -> Iterator[_Sentence]:
    number = 0
    for turn in turns:
        for piece in _END.split(_FENCE.sub("\n", turn.text)):
            text = _plain(piece)
            if _says_something(text) and not (turn.role == "assistant" and ECHO.match(text)):
                yield _Sentence(text, turn.role, number, tokenize(text))
                number += 1


def _plain(piece: str) -> str:
    """The sentence without list marks, emphasis, and the word that only takes up the other's."""
    text = _BULLET.sub("", piece).replace("**", "").replace("__", "").strip(" \t|*_")
    return OPENING.sub("", " ".join(text.split()))


def _says_something(text: str) -> bool:
    weight = len(text) + sum("\u3040" <= c <= "\u9fff" for c in text) * 2
    empty = EMPTY.match(text)
    if empty and weight - (empty.end() * (3 if is_chinese(empty[0]) else 1)) < 40:
        return False
    return weight >= 14 and len(text) <= 400 and len(_CODE.findall(text)) < 4


def _bounded(sentences: list[_Sentence]) -> list[_Sentence]:
    half = MAX_SENTENCES // 2
    return sentences if len(sentences) <= MAX_SENTENCES else sentences[:half] + sentences[-half:]


# ---- scores ---------------------------------------------------------------------------------------------------


def _score(sentences: Sequence[_Sentence]) -> None:
    counts = Counter(token for one in sentences for token in set(one.tokens))
    last = max(1, len(sentences) - 1)
    for place, one in enumerate(sentences):
        heavy = sum(math.log(counts[token]) + 0.3 for token in set(one.tokens))
        one.score = heavy / math.sqrt(len(one.tokens) + 4)
        one.score += 0.4 * (one.role == "user") + 0.3 * min(3, len(NAMED.findall(one.text)))
        one.score += 0.4 * (place / last)  # what is said last holds
        if not one.asks:
            _classify(one)


def _classify(one: _Sentence) -> None:
    if DECISION.search(one.text):
        one.kinds.add("decision")
        one.score += 1.0
    if TASK.search(one.text):
        one.kinds.add("task")
        one.score += 0.5
    if FACT.search(one.text):
        one.score += 0.8


def _best(sentences: Sequence[_Sentence], kind: str, taken: list[_Sentence]) -> list[_Sentence]:
    """The best sentences of a kind in the order of the conversation; none says what another said already."""
    chosen: list[_Sentence] = []
    floor = 0.0 if kind else 0.6
    for one in sorted(sentences, key=lambda sentence: -sentence.score):
        fits = (kind in one.kinds if kind else not one.asks) and one.score > floor
        if fits and len(chosen) < MAX_EACH and not any(_alike(one, other) for other in taken):
            chosen.append(one)
            taken.append(one)
    return sorted(chosen, key=lambda sentence: sentence.number)


def _alike(one: _Sentence, other: _Sentence) -> bool:
    mine, theirs = set(one.tokens), set(other.tokens)
    both, fewer = len(mine & theirs), min(len(mine), len(theirs))
    return one is other or (fewer >= 4 and both > 0.6 * fewer) or both > 0.6 * len(mine | theirs)


# ---- words ----------------------------------------------------------------------------------------------------


def _title(first: _Sentence | None, chosen: Sequence[_Sentence]) -> str:
    """What the person asked for, in a few words; without a question, what was decided or said."""
    source = first or next(iter(chosen), None)
    if source is None:
        return "Session"
    text = POLITE.sub("", source.text).strip(" ,，。.!！?？:：")
    clause = re.split(r"[，。！？；：,;:!?]|\s[—–-]\s|\.\s", text, maxsplit=1)[0].strip() or text
    if is_chinese(clause):
        return clause[:24]
    words = " ".join(clause.split()[:9])[:80].rstrip(" ,.")
    return LOOSE_END.sub("", words[:1].upper() + words[1:])


def _summary(first: _Sentence | None) -> str:
    if first is None:
        return ""
    return f"{'起因：' if is_chinese(first.text) else 'It began with: '}{_finished(first.text)}"


def _finished(text: str) -> str:
    """The sentence with a beginning and an end."""
    text = text[:1].upper() + text[1:]
    if text.endswith(tuple("。！？.!?…”\"'）)")):
        return text
    return text.rstrip("，,；;：:") + ("。" if is_chinese(text) else ".")
