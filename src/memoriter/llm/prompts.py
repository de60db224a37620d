"""Prompts, and answers to them as data.

A prompt is a file in `prompts/` with a system part and a user part, and ``{{name}}`` where values go. Conversations are
data in a prompt: they are between tags that they cannot close. Answers are JSON. An invalid answer is requested once
more, with the reason, and one that was cut off with a larger limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from memoriter.errors import ChatError
from memoriter.llm.chat import Chat, Reply, Schema
from memoriter.records import Turn
from memoriter.text.tokens import estimate_tokens

ModelT = TypeVar("ModelT", bound=BaseModel)

NAMES = ("flush", "session_summary")
#: Characters of an invalid answer that the model sees again.
MAX_QUOTED_CHARS = 4000
#: The limit of tokens of the second request, if the first answer was cut off, as a multiple of the first.
LARGER_LIMIT = 3

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_PARTS = re.compile(r"\A<!-- system -->\n(.+?)\n<!-- user -->\n(.+)\Z", re.DOTALL)


class Prompt(NamedTuple):
    """The two parts of a prompt."""

    system: str
    user: str


def prompt(name: str, **values: str) -> Prompt:
    """Return a prompt with its values. Raises KeyError if a value is missing or unknown."""
    system, user = _template(name)
    expected = set(_PLACEHOLDER.findall(system + user))
    if expected != values.keys():
        raise KeyError(f"the prompt {name} takes {sorted(expected)}, not {sorted(values)}")
    return Prompt(*(_PLACEHOLDER.sub(lambda place: values[place.group(1)], part) for part in (system, user)))


@cache
def _template(name: str) -> Prompt:
    text = (resources.files("memoriter.llm") / "prompts" / f"{name}.md").read_text(encoding="utf-8")
    found = _PARTS.match(text)
    if not found:
        raise ValueError(f"the prompt {name} has no system and user part")
    return Prompt(found[1].strip(), found[2].strip())


def conversation(turns: Iterable[Turn], *, max_tokens: int = 24_000) -> str:
    """Return the turns as text for a prompt. A long session keeps its beginning and most of its end."""
    lines = [f"{turn.role}: {turn.text}".replace("<", "‹").replace(">", "›") for turn in turns]
    costs = [estimate_tokens(line) + 2 for line in lines]
    if sum(costs) <= max_tokens:
        return "\n\n".join(lines)
    first = _count_fitting(costs, max_tokens // 4)
    last = _count_fitting(costs[first:][::-1], max_tokens - sum(costs[:first]))
    return "\n\n".join(
        [*lines[:first], f"[{len(lines) - first - last} turns left out]", *lines[len(lines) - last :]]
    )


def _count_fitting(costs: list[int], budget: int) -> int:
    """Return how many of the first items fit into the budget."""
    count, used = 0, 0
    while count < len(costs) and used + costs[count] <= budget:
        used += costs[count]
        count += 1
    return count


def ask(
    chat: Chat, request: Prompt, shape: type[ModelT], *, schema: Schema | None = None, max_tokens: int = 1024
) -> ModelT:
    """Return the model's answer as ``shape``. Raises `ChatError` when it is invalid twice.

    An answer that was cut off is requested again with a larger limit. What it contains is not used.
    ``schema`` is what the provider is asked for, if it differs from what ``shape`` accepts.
    """
    schema = schema or shape.model_json_schema()
    reply = chat.complete(request.system, request.user, max_tokens=max_tokens, schema=schema)
    again, limit = request.user, max_tokens * LARGER_LIMIT
    if not _is_cut_off(reply):
        try:
            return shape.model_validate(loads(reply.text))
        except ValueError as error:
            limit = max_tokens
            again = (
                f"{request.user}\n\nYour last answer was invalid ({_brief(error)}):\n\n"
                f"{reply.text[:MAX_QUOTED_CHARS]}\n\nAnswer again with only the JSON object."
            )
    reply = chat.complete(request.system, again, max_tokens=limit, schema=schema)
    if _is_cut_off(reply):
        raise ChatError(f"{chat.name} returned an answer that was cut off at {limit} tokens.")
    try:
        return shape.model_validate(loads(reply.text))
    except ValueError as error:
        raise ChatError(f"{chat.name} returned an invalid answer twice{_fields(error)}.") from error


def _is_cut_off(reply: Reply) -> bool:
    """Return whether an answer ended at the limit. Not every server says so: then the JSON ends in the middle."""
    if reply.cut_off:
        return True
    try:
        loads(reply.text)
    except json.JSONDecodeError as error:
        return error.pos >= len(reply.text.rstrip()) or error.msg.startswith("Unterminated string")
    except ValueError:
        pass
    return False


def loads(text: str) -> object:
    """Return the JSON in a text: alone, in a fenced code block, or between sentences. Raises ValueError."""
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0:
        raise ValueError("there is no JSON")
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, start)[0]
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _fields(error: ValueError) -> str:
    """Name the invalid fields for the user, without the wording of the validation library."""
    if not isinstance(error, ValidationError):
        return ": it was not JSON"
    names = dict.fromkeys(".".join(map(str, detail["loc"])) for detail in error.errors(include_url=False))
    return f": {', '.join(names)[:200]} missing or wrong" if any(names) else ""


def _brief(error: ValueError) -> str:
    """Describe the error for the model."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc'])) or 'the answer'}: {first['msg']}"[:200]
    return str(error)[:200]
