"""What a turn is worth remembering, by rules: no model, no cost, in English and Chinese.

Only the owner's own words are looked at: never an agent's, a tool's, or what came from outside, and never a block
that recall put there. A sentence is kept when it has a sign of lasting, and no sign of being a question, a quotation,
code, or about the work at hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from memoriter.entries.capture_rules import (
    EMAIL,
    FOREIGN,
    HYPOTHETICAL,
    INJECTION,
    MINE,
    PASSING,
    PHONE,
    QUESTION,
    RULES,
    STRONG,
    WEIGHTY,
    Rule,
)
from memoriter.entries.drafts import Draft, from_share
from memoriter.text import width
from memoriter.text.redaction import redact, without_private

BASE_IMPORTANCE = from_share(0.7)
LEAST_WIDTH = 10  #: in Latin letters; a Chinese character counts for four
MOST_READ = 20_000  #: characters; a longer turn is a paste, and is not even cleaned
CONFIDENCE = 0.8  #: of what a rule notices; asked for: 1

_SENTENCES = re.compile(r"[^.!?。！？\n]+(?:[.!?](?=\S)[^.!?。！？\n]*)*[.!?。！？]*")
_EXPLICIT = re.compile(
    r"^(?:please )?(?:remember|note|keep in mind|bear in mind|don'?t forget)(?: that|:|,)?\s*", re.IGNORECASE
)
_EXPLICIT_ZH = re.compile(
    r"^(?:请|請|帮我|幫我)?(?:记住|記住|记下|記下|记得|記得|记一下|備忘|备忘)[:：，,\s]*"
)


class TurnLike(Protocol):
    """What capture and extraction need to know of a turn."""

    @property
    def role(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def trust(self) -> str: ...


@dataclass(frozen=True, slots=True)
class CaptureLimits:
    """How much of a turn is read, and how many statements are kept."""

    max_chars: int = 500
    per_turn: int = 3
    roles: tuple[str, ...] = ("user",)


DEFAULT_LIMITS = CaptureLimits()


def capture(
    turns: Iterable[TurnLike], *, session: str | None = None, limits: CaptureLimits = DEFAULT_LIMITS
) -> Iterator[Draft]:
    """What the turns are worth remembering, in their order."""
    for turn in turns:
        if turn.role not in limits.roles:
            continue
        if turn.trust == "owner":
            yield from _of_turn(turn.text, session, limits)
        elif turn.trust == "agent" and turn.role == "user":
            # Said to be the owner's by somebody who does not speak for the owner.
            yield from (replace(draft, trust="agent") for draft in _of_turn(turn.text, session, limits))


def _of_turn(text: str, session: str | None, limits: CaptureLimits) -> list[Draft]:
    if len(text) > MOST_READ:
        return []
    text = redact(without_private(text))
    if (
        not width(text) >= LEAST_WIDTH
        or len(text) > limits.max_chars
        or FOREIGN.search(text)
        or INJECTION.search(text)
    ):
        return []
    drafts: list[Draft] = []
    for sentence in _SENTENCES.findall(text):
        draft = _of_sentence(sentence.strip(), session)
        if draft and len(drafts) < limits.per_turn:
            drafts.append(draft)
    return drafts


def _of_sentence(sentence: str, session: str | None) -> Draft | None:
    rule = rule_of(sentence)
    if rule is None:
        return None
    text = sentence
    if rule.explicit:
        text = _EXPLICIT_ZH.sub("", _EXPLICIT.sub("", sentence))
        text = text[:1].upper() + text[1:]
        inner = rule_of(text)
        rule = inner._replace(explicit=True) if inner else rule
    return Draft(
        text,
        rule.type,
        importance=_importance(sentence.lower()),
        confidence=1.0 if rule.explicit else CONFIDENCE,
        session=session,
        source="capture",
        on_purpose=False,
    )


def rule_of(sentence: str) -> Rule | None:
    """The rule by which a sentence is kept; None when it is not."""
    lowered = sentence.lower().strip()
    if width(lowered) < LEAST_WIDTH or QUESTION.search(lowered) or HYPOTHETICAL.search(lowered):
        return None
    if PASSING.search(lowered):
        return None
    for rule in RULES:
        if rule.pattern.search(lowered):
            return rule
    if MINE.search(lowered) and (PHONE.search(sentence) or EMAIL.search(sentence)):
        return CONTACT
    return None


CONTACT = Rule("relationship", PHONE)


def _importance(lowered: str) -> float:
    """As the extractor's: a strong wish counts for half a star more, a weighty word for a little."""
    boost = 0.5 * bool(STRONG.search(lowered)) + 0.3 * bool(WEIGHTY.search(lowered))
    return min(4.9, BASE_IMPORTANCE + boost)
