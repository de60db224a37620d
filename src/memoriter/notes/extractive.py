"""Summarise a conversation: with a language model, or without one by choosing its most important sentences.

Without a model, sentences are classified as decisions, tasks and facts. A sentence scores higher if it contains words
that the conversation repeats, decides something, contains names or numbers, or was said by the person. Questions,
greetings and reports about the work score lower.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from memoriter.errors import ChatError
from memoriter.llm import Chat, NoChat
from memoriter.llm.prompts import ask, conversation, prompt
from memoriter.records import Turn
from memoriter.text.encoding import encodable
from memoriter.text.redaction import redact, without_private
from memoriter.text.tokens import shorten_title, tokenize
from memoriter.text.words import unless_abbreviated


def _any(*alternatives: str, start: bool = False) -> re.Pattern[str]:
    return re.compile(("^" if start else "") + f"(?:{'|'.join(alternatives)})", re.IGNORECASE)


DECISION = _any(
    r"\bdecid|\bagree[ds]?\b|\bchose\b|\bwe(?:'ll| will)\b|\bwill (?:use|go|keep|move|run|be)\b",
    r"\blet's (?:use|go|keep|make|take|do)\b|\bgo(?:ing)? with\b|\bfrom now on\b|\bit is(?:,|\.|$)|\bsettled?\b",
    r"\bswitch(?:ed|ing)? to\b|\bmoved? to\b|\binstead of\b|\bfinal(?:ly|ised|ized)\b",
    "决定|定下来|就定|确定|敲定|改为|改成|改到|改用|采用|选用|统一用|以后都|今后|约定|结论|最终|就用|決定",
)

TASK = _any(
    r"\bto-?do\b|\bnext step|\bneeds? to\b|\bha(?:ve|s) to\b|\bremember to\b|\bdon't forget|\bremind\b",
    r"\bfollow[- ]up\b|\bstill (?:open|missing)\b|\b(?:tell|ask) (?-i:[A-Z])",
    r"\b(?:before|by|until) (?:tomorrow|next|mon|tue|wed|thu|fri|sat|sun)",
    "待办|下一步|记得|别忘|还要|还没|尚未|提醒|跟进|待定|(?:需要|得|要)(?:先|再|把|去|在)|(?:明天|下周|周[一二三四五六日])前",
)

FACT = _any(
    r"\bprefer|\bmy \w+ is\b|\bi(?:'m| am) (?:a|an|the|in|at|from)\b|\bwe use\b|\bour \w+ (?:is|are|runs?)\b",
    r"\balways\b|\bnever\b|\bbecause\b|\bthe reason",
    "喜欢|偏好|讨厌|总是|从不|我的[^，。]{1,12}是|我们用|我们的[^，。]{1,12}是|习惯|希望|因为|原因",
)

#: Names, numbers and code, which people search for later.
NAMED = re.compile(
    r"(?<=[a-z,;:] )[A-Z][a-z]+|\b[A-Z]{2,}\b|\d|`[^`]+`|[\w-]+\.[a-z]{2,4}\b|[A-Za-z]+(?=[\u4e00-\u9fff])"
)

#: Starts of sentences without content, unless they are long.
EMPTY = _any(
    "ok(?:ay)?|sure|thanks?(?: you)?|great|got it|hello|hi|hey|yes|no|good (?:morning|evening|night)|sorry|certainly",
    "of course|absolutely|you(?:'re| are) welcome|done|let me|anything else|happy to",
    "here(?:'s| is| are) (?:the|what|a|my|some)",
    "i(?:'ll| will| am going to|'m going to) (?:now |first )?(?:check|look|take|read|search|open|start|run)",
    "好的?|嗯+|行|谢谢|多谢|感谢|不客气|不用谢|收到|明白|没问题|你好|您好|是的|对|让我|我来|我先|稍等|可以吗|还有什么",
    start=True,
)

#: Starts of sentences in which an agent reports that it stored or found something.
ECHO = _any(
    r"i(?:'ve| have)? (?:wrote|written|noted|saved|stored|recorded|remembered) (?:that|this|it|them)\b",
    r"as (?:far as )?i (?:can )?(?:remember|recall)\b|i (?:have )?looked (?:it|that|this) up\b",
    r"i(?:'ll| will) remember\b|(?:understood|noted)\b[^,:;]{0,20}$",
    "我?(?:已经?|会)(?:帮[你您]|为[你您])?(?:把[^，。]{1,8})?(?:记下|记住|记录|保存|写下)|(?:据我所?记|我记得|我查到)",
    start=True,
)

#: Words that only acknowledge the previous turn.
OPENING = re.compile(
    r"^(?:(?:ok(?:ay)?|sure|great|yes|well|so|and|good|right|alright|thanks|hi|hello|hey|done)(?: there)?[,.!:—-]+\s*"
    r"|(?:好的?|嗯+|行|是的|对|那么|你好|您好|谢谢)[，。！、,!]\s*)+",
    re.IGNORECASE,
)

#: Polite starts of requests.
POLITE = _any(
    "(?:can|could|would|will) you (?:please )?(?:help me (?:to )?)?|please (?:help me (?:to )?)?|help me (?:to )?",
    "i(?:'d| would) like (?:you )?to |i want (?:you )?to |(?:请问|请|麻烦你?|帮我|我想要?|能不能|可以|看看|看一下)+",
    start=True,
)

#: Words that do not end a title.
LOOSE_END = re.compile(
    r"(?:\s+(?:of|the|a|an|to|in|on|at|for|and|or|with|from|by|our|my|your|is|are|that))+$", re.IGNORECASE
)


MAX_POINTS = 8
#: The width of a title that is cut from a sentence: 24 Chinese characters, or 96 letters of at most nine words.
MAX_TITLE_WIDTH, MAX_TITLE_WORDS = 96, 9
MAX_OUTPUT_TOKENS = 1200

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_ASCII_WORDS = re.compile(r"[A-Za-z]+")


def _lines(value: object) -> object:
    """Clean a list. Models sometimes return one text instead of a list, or empty items."""
    items = [value] if isinstance(value, str) else value
    return (
        [line for item in items if (line := _line(item))][:MAX_POINTS] if isinstance(items, list) else items
    )


def _line(value: object) -> str:
    """Return one line without list marks and secrets. A model may repeat secrets from its input."""
    text = redact(without_private(encodable(str(value))))
    return " ".join(text.split()).lstrip("-*•#> ").strip()


SingleLine = Annotated[str, BeforeValidator(_line)]
Lines = Annotated[list[str], BeforeValidator(_lines)]


class Points(BaseModel):
    """The important points of a conversation."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    title: SingleLine = Field(min_length=1, max_length=200)
    summary: SingleLine = ""
    decisions: Lines = []
    facts: Lines = []
    todo: Lines = []

    @property
    def empty(self) -> bool:
        return not (self.summary or self.decisions or self.facts or self.todo)


class PointsResult(NamedTuple):
    """Points, who made them, and a note about problems."""

    points: Points
    #: The name of the model, or "extractive".
    by: str
    note: str | None


def make_points(turns: Sequence[Turn], chat: Chat, *, task: str, date: str) -> PointsResult:
    """Summarise with the language model. If there is none or it fails, choose sentences by rules."""
    if isinstance(chat, NoChat):
        return PointsResult(extract(turns), "extractive", None)
    try:
        asked = prompt(task, date=date, conversation=conversation(turns))
        points = ask(chat, asked, Points, max_tokens=MAX_OUTPUT_TOKENS)
        failure = f"{chat.name} returned an empty summary." if points.empty else None
    except ChatError as error:
        failure = str(error)
    if failure:
        return PointsResult(extract(turns), "extractive", f"Summarised without a language model: {failure}")
    return PointsResult(points, chat.name, None)


_HEADINGS = {
    False: {"decisions": "Decisions", "todo": "To do", "facts": "Points"},
    True: {"decisions": "决定", "todo": "待办", "facts": "要点"},
}


def is_chinese(text: str) -> bool:
    """Return whether a text is Chinese. One character counts about as much as one word."""
    return len(_CJK.findall(text)) > 2 * len(_ASCII_WORDS.findall(text))


def render(points: Points, *, level: int = 2) -> str:
    """Format the points as Markdown, with headings in their language."""
    text = " ".join([points.title, points.summary, *points.decisions, *points.facts])
    parts = [points.summary] if points.summary else []
    for name, heading in _HEADINGS[is_chinese(text)].items():
        items: list[str] = getattr(points, name)
        if items:
            parts.append("\n".join([f"{'#' * level} {heading}", "", *(f"- {item}" for item in items)]))
    return "\n\n".join(parts)


#: Points of each kind.
MAX_EACH = 6
#: Sentences that are considered. Of a longer conversation, the start and the end are used.
MAX_SENTENCES = 4000

_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_END = re.compile(
    rf"(?<=[。！？!?；])\s*|(?<=[.;]){unless_abbreviated()}\s+(?=[A-Z0-9\u4e00-\u9fff\"“(])|\n+"
)
_BULLET = re.compile(r"^\s*(?:[-*+•>#]+|\d{1,2}[.)、])\s+")
_CODE = re.compile(r"[{}<>=|\\]|::|\(\)|\$ ")


@dataclass(slots=True)
class _Sentence:
    text: str
    role: str
    #: Position in the conversation.
    number: int
    tokens: list[str]
    score: float = 0.0
    kinds: set[str] = field(default_factory=set)

    @property
    def asks(self) -> bool:
        return self.text.endswith(("?", "？", "吗", "呢"))


def extract(turns: Sequence[Turn]) -> Points:
    """Choose the points of a conversation from its sentences."""
    sentences = _limit_count(list(_sentences(turns)))
    _score(sentences)
    first = next(
        (sentence for sentence in sentences if sentence.role == "user"), sentences[0] if sentences else None
    )
    taken: list[_Sentence] = []
    decisions = _best(sentences, "decision", taken)
    tasks = _best(sentences, "task", taken)
    facts = _best([sentence for sentence in sentences if sentence is not first], "", taken)
    return Points(
        title=_title(first, decisions or facts),
        summary=_summary(first),
        decisions=[_finish(sentence.text) for sentence in decisions],
        facts=[_finish(sentence.text) for sentence in facts],
        todo=[_finish(sentence.text) for sentence in tasks],
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
    """Remove list marks, emphasis and acknowledgements from a sentence."""
    text = _BULLET.sub("", piece).replace("**", "").replace("__", "").strip(" \t|*_")
    return OPENING.sub("", " ".join(text.split()))


def _says_something(text: str) -> bool:
    weight = len(text) + sum("\u3040" <= c <= "\u9fff" for c in text) * 2
    empty = EMPTY.match(text)
    if empty and weight - (empty.end() * (3 if is_chinese(empty[0]) else 1)) < 40:
        return False
    return weight >= 14 and len(text) <= 400 and len(_CODE.findall(text)) < 4


def _limit_count(sentences: list[_Sentence]) -> list[_Sentence]:
    half = MAX_SENTENCES // 2
    return sentences if len(sentences) <= MAX_SENTENCES else sentences[:half] + sentences[-half:]


# ---- scores ---------------------------------------------------------------------------------------------------


def _score(sentences: Sequence[_Sentence]) -> None:
    counts = Counter(token for sentence in sentences for token in set(sentence.tokens))
    last = max(1, len(sentences) - 1)
    for place, sentence in enumerate(sentences):
        heavy = sum(math.log(counts[token]) + 0.3 for token in set(sentence.tokens))
        sentence.score = heavy / math.sqrt(len(sentence.tokens) + 4)
        sentence.score += 0.4 * (sentence.role == "user") + 0.3 * min(3, len(NAMED.findall(sentence.text)))
        sentence.score += 0.4 * (place / last)  # later sentences are more likely to be final
        if not sentence.asks:
            _classify(sentence)


def _classify(sentence: _Sentence) -> None:
    if DECISION.search(sentence.text):
        sentence.kinds.add("decision")
        sentence.score += 1.0
    if TASK.search(sentence.text):
        sentence.kinds.add("task")
        sentence.score += 0.5
    if FACT.search(sentence.text):
        sentence.score += 0.8


def _best(sentences: Sequence[_Sentence], kind: str, taken: list[_Sentence]) -> list[_Sentence]:
    """Return the best sentences of a kind in the order of the conversation, without repetitions."""
    chosen: list[_Sentence] = []
    floor = 0.0 if kind else 0.6
    for sentence in sorted(sentences, key=lambda sentence: -sentence.score):
        fits = (kind in sentence.kinds if kind else not sentence.asks) and sentence.score > floor
        if fits and len(chosen) < MAX_EACH and not any(_alike(sentence, other) for other in taken):
            chosen.append(sentence)
            taken.append(sentence)
    return sorted(chosen, key=lambda sentence: sentence.number)


def _alike(sentence: _Sentence, other: _Sentence) -> bool:
    mine, theirs = set(sentence.tokens), set(other.tokens)
    both, fewer = len(mine & theirs), min(len(mine), len(theirs))
    return sentence is other or (fewer >= 4 and both > 0.6 * fewer) or both > 0.6 * len(mine | theirs)


# ---- text -----------------------------------------------------------------------------------------------------


def _title(first: _Sentence | None, chosen: Sequence[_Sentence]) -> str:
    """Return a short title: what the person asked for, or else what was decided or said."""
    source = first or next(iter(chosen), None)
    if source is None:
        return "Session"
    text = POLITE.sub("", source.text).strip(" ,，。.!！?？:：")
    clause = re.split(r"[，。！？；：]|[,;:!?.](?=\s|$)|\s[—–-]\s", text, maxsplit=1)[0].strip() or text
    if is_chinese(clause):
        return shorten_title(clause, MAX_TITLE_WIDTH)
    said = clause.split()
    end = MAX_TITLE_WORDS
    while end < len(said) and said[end][0].isdigit():
        end += 1  # a number belongs to the word before it
    words = shorten_title(" ".join(said[:end]), MAX_TITLE_WIDTH)
    return LOOSE_END.sub("", words[:1].upper() + words[1:])


def _summary(first: _Sentence | None) -> str:
    if first is None:
        return ""
    return f"{'起因：' if is_chinese(first.text) else 'It began with: '}{_finish(first.text)}"


def _finish(text: str) -> str:
    """Capitalise a sentence and add a full stop."""
    text = text[:1].upper() + text[1:]
    if text.endswith(tuple("。！？.!?…”\"'）)")):
        return text
    return text.rstrip("，,；;：:") + ("。" if is_chinese(text) else ".")
