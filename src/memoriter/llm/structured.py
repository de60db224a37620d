"""An answer in a given shape: asked for as JSON, read tolerantly, validated, and asked for once more if it is wrong."""

from __future__ import annotations

import json
import re
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from memoriter.errors import ChatError
from memoriter.llm import Chat

Shape = TypeVar("Shape", bound=BaseModel)

_SMALL = 4000  #: characters of a wrong answer that are shown to the model again


def ask(chat: Chat, system: str, user: str, shape: type[Shape], *, max_tokens: int = 1024) -> Shape:
    """The model's answer as ``shape``; raises `ChatError` when it is wrong twice."""
    text = chat.complete(system, user, max_tokens=max_tokens).text
    try:
        return read(text, shape)
    except ValueError as wrong:
        again = (
            f"{user}\n\nYour last answer could not be read ({_brief(wrong)}):\n\n{text[:_SMALL]}\n\n"
            "Answer again, with the JSON object alone."
        )
    try:
        return read(chat.complete(system, again, max_tokens=max_tokens).text, shape)
    except ValueError as wrong:
        raise ChatError(
            f"{chat.name} did not answer in the form that was asked for ({_brief(wrong)})."
        ) from wrong


def read(text: str, shape: type[Shape]) -> Shape:
    """The shape that the text holds; raises `ValueError`."""
    return shape.model_validate(loads(text))


def loads(text: str) -> object:
    """The JSON in a text: alone, in a fence or among words, with trailing commas, or cut off before its end."""
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0:
        raise ValueError("there is no JSON")
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, start)[0]
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    except ValueError:
        return json.loads(_repaired(text[start:]), strict=False)


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+("?)|[{}\[\]]|,|[^"{}\[\],]+', re.DOTALL)
_PYTHON = re.compile(r"\b(True|False|None)\b")
_LITERALS = {"True": "true", "False": "false", "None": "null"}


def _repaired(text: str) -> str:
    """The text with trailing commas dropped, Python's words replaced, and everything closed that was left open."""
    parts, closers = list[str](), list[str]()
    for token in _TOKEN.finditer(text):
        part = token.group()
        if part.startswith('"'):
            part += "" if token.group(1) else '"'
        elif part in "{[":
            closers.append("}" if part == "{" else "]")
        elif part in "}]":
            _drop_comma(parts)
            if not closers or closers.pop() != part:
                break
        else:
            part = _PYTHON.sub(lambda word: _LITERALS[word[1]], part)
        parts.append(part)
        if not closers:
            break
    _drop_half_pair(parts, in_object=closers[-1:] == ["}"])
    return "".join([*parts, *reversed(closers)])


def _drop_comma(parts: list[str]) -> None:
    while parts and not parts[-1].strip():
        parts.pop()
    if parts and parts[-1] == ",":
        parts.pop()


def _drop_half_pair(parts: list[str], *, in_object: bool) -> None:
    """A key without its value, at the end of what was cut off."""
    _drop_comma(parts)
    if parts and parts[-1].strip() == ":":
        parts.pop()
        parts.pop()
    elif in_object and parts[-1:] and parts[-1].startswith('"') and _before_last(parts) in ("{", ","):
        parts.pop()
    _drop_comma(parts)


def _before_last(parts: list[str]) -> str:
    return next((part.strip() for part in reversed(parts[:-1]) if part.strip()), "")


def _brief(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc'])) or 'the whole'}: {first['msg']}"[:200]
    return str(error)[:200]
