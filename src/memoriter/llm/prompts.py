"""Prompts are files in `prompts/`: a system part and a user part, with ``{{name}}`` where values go.

What people said is data in a prompt: it stands between tags that it cannot close.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import NamedTuple

from memoriter.records import Turn
from memoriter.text.measure import estimate_tokens

NAMES = ("flush", "session_summary")

_PLACE = re.compile(r"\{\{(\w+)\}\}")
_PARTS = re.compile(r"\A<!-- system -->\n(.+?)\n<!-- user -->\n(.+)\Z", re.DOTALL)


class Prompt(NamedTuple):
    """What is sent."""

    system: str
    user: str


def prompt(name: str, **values: str) -> Prompt:
    """A prompt with its values; a value that is missing or not asked for is a mistake of ours."""
    system, user = _template(name)
    wanted = set(_PLACE.findall(system + user))
    if wanted != values.keys():
        raise KeyError(f"the prompt {name} takes {sorted(wanted)}, not {sorted(values)}")
    return Prompt(*(_PLACE.sub(lambda place: values[place.group(1)], part) for part in (system, user)))


@cache
def _template(name: str) -> Prompt:
    text = (resources.files("memoriter.llm") / "prompts" / f"{name}.md").read_text(encoding="utf-8")
    found = _PARTS.match(text)
    if not found:
        raise ValueError(f"the prompt {name} has no system and user part")
    return Prompt(found[1].strip(), found[2].strip())


def conversation(turns: Iterable[Turn], *, max_tokens: int = 24_000) -> str:
    """The turns as data for a prompt; of a long session its beginning and, mostly, its end."""
    lines = [f"{turn.role}: {turn.text}".replace("<", "‹").replace(">", "›") for turn in turns]
    costs = [estimate_tokens(line) + 2 for line in lines]
    if sum(costs) <= max_tokens:
        return "\n\n".join(lines)
    first = _fitting(costs, max_tokens // 4)
    last = _fitting(costs[first:][::-1], max_tokens - sum(costs[:first]))
    return "\n\n".join(
        [*lines[:first], f"[{len(lines) - first - last} turns left out]", *lines[len(lines) - last :]]
    )


def _fitting(costs: list[int], budget: int) -> int:
    """How many of the first items fit."""
    count, used = 0, 0
    while count < len(costs) and used + costs[count] <= budget:
        used += costs[count]
        count += 1
    return count
