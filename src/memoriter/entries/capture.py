"""Capture: finds the statements in a turn that are worth remembering, in any language, without a language model.

Only the owner's words are read: not those of agents, tools or outside sources, no recalled block, and no text that the
owner pasted. Rules for English and Chinese recognise the type of a statement. In other words or another language,
`plain` tells a lasting statement from a question, a request, chat, or a remark about the current work.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Protocol

from memoriter.entries.capture_rules import (
    ASKED_FIRST,
    ASKED_LAST,
    FOREIGN,
    HYPOTHETICAL,
    INJECTION,
    QUESTION,
    REASON,
    RULES,
    STRONG,
    WEIGHTY,
    CaptureRule,
)
from memoriter.entries.drafts import MAX_CHARS, Draft
from memoriter.records import EntryType, from_share
from memoriter.search.when import add_dates
from memoriter.text import width
from memoriter.text.dates import local_day
from memoriter.text.likelihood import likelihood
from memoriter.text.pasted import own_words
from memoriter.text.redaction import redact, without_private
from memoriter.text.words import split_sentences

BASE_IMPORTANCE = from_share(0.7)
#: Minimum width of a sentence in Latin letters. A Chinese character counts as four.
MIN_WIDTH = 10
#: Maximum number of characters of a turn. A longer turn is pasted text and is not read.
MAX_TURN_CHARS = 20_000
#: How likely a sentence must be a lasting statement, without a rule that applies and with one.
MIN_LIKELIHOOD = 0.6
MIN_LIKELIHOOD_OF_RULES = 0.4
#: The confidence of a statement that a rule found. If the owner asked to remember it, the confidence is 1.
CONFIDENCE = 0.8

_EXPLICIT = re.compile(
    r"^(?:please )?(?:remember|note|keep in mind|bear in mind|don'?t forget)(?: that|:|,)?\s*", re.IGNORECASE
)
_EXPLICIT_ZH = re.compile(
    r"^(?:请|請|帮我|幫我)?(?:记住|記住|记下|記下|记得|記得|记一下|備忘|备忘)[:：，,\s]*"
)

#: Ends of a sentence before text that counts as pasted. That text may say whose words the sentence is.
LEADING = (":", "：", "-", "–", "—")
#: The last clause of a sentence that ends with a colon.
_LEAD = re.compile(r"[,，、،;；][^,，、،;；]{0,200}[:：]\s*\Z")


class TurnLike(Protocol):
    """A turn as capture and extraction read it."""

    @property
    def role(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def trust(self) -> str: ...


@dataclass(frozen=True, slots=True)
class CaptureLimits:
    """Limits of the text that is read and of the statements that are stored."""

    max_chars: int = 500
    per_turn: int = 3
    roles: tuple[str, ...] = ("user",)


DEFAULT_LIMITS = CaptureLimits()


def capture(
    turns: Iterable[TurnLike],
    *,
    session: str | None = None,
    limits: CaptureLimits = DEFAULT_LIMITS,
    now: float | None = None,
) -> Iterator[Draft]:
    """Yield the statements worth remembering, in the order of the turns.

    Days such as "on Saturday" get their dates, relative to the day of the turn. ``now`` is the time of a turn that has
    none.
    """
    for turn in turns:
        if turn.role not in limits.roles:
            continue
        day, said_at = day_of(turn, now), getattr(turn, "time", None)
        found = [
            replace(draft, text=add_dates(draft.text, day), said_at=said_at)
            for draft in _of_turn(turn.text, session, limits)
        ]
        if turn.trust == "owner":
            yield from found
        elif turn.trust == "agent" and turn.role == "user":
            # A caller that does not speak for the owner says that the owner wrote this.
            yield from (replace(draft, trust="agent") for draft in found)


def day_of(turn: TurnLike, now: float | None = None) -> date:
    """Return the day of a turn, or today if the turn has no time."""
    at = getattr(turn, "time", None)
    at = at if at is not None else time.time() if now is None else now
    return local_day(at)  # the speaker's calendar, not UTC


def _of_turn(text: str, session: str | None, limits: CaptureLimits) -> list[Draft]:
    if len(text) > MAX_TURN_CHARS:
        return []
    text = redact(without_private(text))
    if INJECTION.search(text):
        return []
    text = own_words(text)
    if not width(text) >= MIN_WIDTH or len(text) > limits.max_chars or FOREIGN.search(text):
        return []
    drafts: list[Draft] = []
    for sentence in split_sentences(text):
        draft = _of_sentence(sentence, session)
        if draft and len(drafts) < limits.per_turn:
            drafts.append(draft)
    return drafts


def _of_sentence(sentence: str, session: str | None) -> Draft | None:
    # A clause that ends with a colon introduces a text of which nothing is known.
    sentence = _LEAD.sub("", sentence)
    rule = rule_of(sentence)
    if rule is None and (reason := REASON.match(sentence)):
        sentence = reason["own"][:1].upper() + reason["own"][1:]
        rule = rule_of(sentence)
    if rule is None:
        return None
    text = sentence
    if rule.explicit:
        if width(ASKED_LAST.sub("", sentence)) < 2 * MIN_WIDTH and ASKED_LAST.search(sentence):
            return None  # "OK, remember that." is about something else
        text = _EXPLICIT_ZH.sub("", _EXPLICIT.sub("", ASKED_FIRST.sub("", sentence)))
        text = ASKED_LAST.sub("", text.rstrip("?？") if ASKED_FIRST.search(sentence) else text)
        text = text[:1].upper() + text[1:]
        inner = rule_of(text)
        rule = inner._replace(explicit=True) if inner else rule
    return Draft(
        text,
        rule.type,
        importance=_importance(sentence, rule),
        confidence=1.0 if rule.explicit else CONFIDENCE,
        session=session,
        source="capture",
        on_purpose=False,
        requested=rule.explicit,
    )


def rule_of(sentence: str) -> CaptureRule | None:
    """Return the rule by which a sentence is kept; None if it is not kept."""
    lowered = sentence.lower().strip()
    asked = ASKED_FIRST.match(lowered)
    said = lowered[asked.end() :].rstrip("?？ ") if asked else lowered
    if (
        width(said) < MIN_WIDTH
        or said.endswith(LEADING)
        or QUESTION.search(said)
        or HYPOTHETICAL.search(said)
    ):
        return None
    rule = next((rule for rule in RULES if rule.pattern.search(lowered)), None)
    if rule and rule.explicit:
        return rule
    minimum = MIN_LIKELIHOOD if rule is None else MIN_LIKELIHOOD_OF_RULES
    return rule or PLAIN if likelihood(sentence, "statements") >= minimum else None


def classify(text: str) -> EntryType:
    """Return the type that the rules give a statement; "other" if none applies, or if it is too long for an entry."""
    rule = rule_of(text) if len(text) <= MAX_CHARS else None
    return rule.type if rule else "other"


#: The rule of a statement that no other rule covers.
PLAIN = CaptureRule("fact", "")


def _importance(sentence: str, rule: CaptureRule) -> float:
    """Return the importance, as in `extract`: a strong wish adds 0.5, an important word 0.3. Doubt lowers it."""
    lowered = sentence.lower()
    boost = 0.5 * bool(STRONG.search(lowered)) + 0.3 * bool(WEIGHTY.search(lowered))
    doubt = 1.25 * (1 - likelihood(sentence, "statements")) if rule is PLAIN else 0.0
    return round(min(4.9, BASE_IMPORTANCE + boost - doubt), 1)
