"""No rule for secrets makes matching slow: the steps of a matcher are counted on text made for each rule."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from memoriter.text import redaction, secret_forms

RESOURCE = Path(redaction.__file__).with_name("secret_rules.json")
#: More steps for each character than any rule needs, and fewer than the length of the text.
MAX_STEPS = 100
LENGTH = 300

Continue = Callable[[int], bool]
_CATEGORIES = {
    sre.CATEGORY_DIGIT: "[0-9]", sre.CATEGORY_NOT_DIGIT: "[^0-9]",
    sre.CATEGORY_SPACE: r"\s", sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w", sre.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip


class Counter:
    """A backtracking matcher that counts the characters it compares."""

    def __init__(self, pattern: str) -> None:
        self.tree = parser.parse(pattern)
        self.fold = bool(self.tree.state.flags & re.IGNORECASE)
        self.steps = 0

    def count(self, text: str) -> int:
        """Return the steps of a search in the whole text."""
        self.text, self.steps, at = text, 0, 0
        while at <= len(text):
            self.end = at
            at = max(at + 1, self.end) if self._match(self.tree, 0, at, self._stop) else at + 1
        return self.steps

    def _stop(self, at: int) -> bool:
        self.end = at
        return True

    def _match(self, items: Sequence[Any], index: int, at: int, then: Continue) -> bool:  # noqa: PLR0911
        if index == len(items):
            return then(at)
        kind, value = items[index]
        rest: Continue = lambda place: self._match(items, index + 1, place, then)  # noqa: E731
        if kind in (sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY):
            return self._one(kind, value, at) and rest(at + 1)
        if kind == sre.SUBPATTERN:
            return self._match(value[3], 0, at, rest)
        if kind == sre.ATOMIC_GROUP:
            return self._match(value, 0, at, self._stop) and rest(self.end)
        if kind == sre.BRANCH:
            return any(self._match(branch, 0, at, rest) for branch in value[1])
        if kind in (sre.ASSERT, sre.ASSERT_NOT):
            direction, inner = value
            start = at if direction > 0 else at - inner.getwidth()[0]
            held = start >= 0 and self._match(inner, 0, start, lambda place: True)
            return held == (kind == sre.ASSERT) and rest(at)
        if kind == sre.AT:
            return self._stands(value, at) and rest(at)
        return self._repeat(kind, value, at, rest)

    def _repeat(self, kind: Any, value: Any, at: int, rest: Continue) -> bool:
        least, most, inner = value
        places = [at]
        if kind == sre.MIN_REPEAT:
            while True:
                if len(places) > least and rest(places[-1]):
                    return True
                if len(places) > most or not self._match(inner, 0, places[-1], self._stop):
                    return False
                places.append(self.end)
        while len(places) <= most and self._match(inner, 0, places[-1], self._stop) and self.end > places[-1]:
            places.append(self.end)
        if kind == sre.POSSESSIVE_REPEAT:
            return len(places) > least and rest(places[-1])
        return any(rest(place) for place in reversed(places[least:]))

    def _one(self, kind: Any, value: Any, at: int) -> bool:
        self.steps += 1
        if at >= len(self.text):
            return False
        char = self.text[at]
        return any(
            self._fits(kind, value, form) for form in ({char.lower(), char.upper()} if self.fold else {char})
        )

    def _fits(self, kind: Any, value: Any, char: str) -> bool:
        if kind == sre.ANY:
            return char != "\n"
        if kind in (sre.LITERAL, sre.NOT_LITERAL):
            return (ord(char) == value) == (kind == sre.LITERAL)
        found = any(
            ord(char) == one if what == sre.LITERAL
            else one[0] <= ord(char) <= one[1] if what == sre.RANGE
            else re.match(_CATEGORIES[one], char) is not None
            for what, one in value if what != sre.NEGATE
        )  # fmt: skip
        return found != (value[0][0] == sre.NEGATE)

    def _stands(self, place: Any, at: int) -> bool:
        if place in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
            return at == 0
        if place in (sre.AT_END, sre.AT_END_STRING):
            return at == len(self.text)
        around = [
            bool(re.match(r"\w", part)) for part in (self.text[max(0, at - 1) : at], self.text[at : at + 1])
        ]
        return (around[0] != around[1]) == (place == sre.AT_BOUNDARY)


def sample(items: Sequence[Any], most: int) -> str:
    """Return a text that a pattern matches, with repeats as long as allowed."""
    parts = list[str]()
    for kind, value in items:
        if kind == sre.LITERAL:
            parts.append(chr(value))
        elif kind in (sre.NOT_LITERAL, sre.ANY):
            parts.append("x")
        elif kind == sre.IN:
            parts.append(_member(value))
        elif kind == sre.SUBPATTERN:
            parts.append(sample(value[3], most))
        elif kind == sre.ATOMIC_GROUP:
            parts.append(sample(value, most))
        elif kind == sre.BRANCH:
            parts.append(sample(value[1][0], most))
        elif kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            parts.append(sample(value[2], most) * max(value[0], min(value[1], most)))
    return "".join(parts)


def _member(ranges: Sequence[Any]) -> str:
    if ranges[0][0] == sre.NEGATE:
        return "x"
    what, one = ranges[0]
    return chr(one) if what == sre.LITERAL else chr(one[0]) if what == sre.RANGE else "1"


def patterns() -> dict[str, str]:
    data = json.loads(RESOURCE.read_text("utf-8"))
    vendors = redaction._vendor_rules()
    own = (
        *secret_forms.TOKEN_RULES,
        *secret_forms.LONG_RULES,
        *secret_forms.PROSE_RULES,
        *secret_forms.NUMBER_RULES,
    )
    assert len(data["tokens"]) > 100
    return {
        **{f"{rule.kind} {number}": rule.pattern for number, rule in enumerate(own)},
        **{
            f"{rules[0].kind} {word}": rule.pattern
            for word, rules in vendors.tokens.items()
            for rule in rules
        },
        **{
            f"{rules[0].kind} {word}": rule.pattern for word, rules in vendors.named.items() for rule in rules
        },
        "name": secret_forms.NAME,
        "link": secret_forms.LINK,
        "shape": vendors.shape,
    }


@pytest.mark.parametrize("pattern", [pytest.param(pattern, id=name) for name, pattern in patterns().items()])
def test_a_rule_takes_a_bounded_number_of_steps_for_each_character(pattern: str) -> None:
    re.compile(pattern, re.ASCII)
    counter = Counter(pattern)
    texts = [sample(counter.tree, most)[:LENGTH] for most in (1, LENGTH)]
    for whole in texts:
        for text in (whole[:-1] + "\x00", whole[: max(1, len(whole) // 2)]):
            long = (text * (LENGTH // len(text) + 1))[:LENGTH]
            assert counter.count(long) <= MAX_STEPS * LENGTH, f"slow on {text[:80]!r}"


def test_a_pattern_that_takes_quadratic_time_is_noticed() -> None:
    assert Counter(r"(?:a{0,1000}b{0,1}){0,1000}c").count("a" * LENGTH) > MAX_STEPS * LENGTH


def test_the_rules_of_gitleaks_carry_their_licence() -> None:
    data = json.loads(RESOURCE.read_text("utf-8"))
    assert data["licence"].startswith("MIT License\n\nCopyright (c) 2019 Zachary Rice")
    assert "gitleaks" in data["source"]
