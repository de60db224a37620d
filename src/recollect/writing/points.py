"""What is worth keeping of a conversation, and how it looks as Markdown; by a model if there is one, else by rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from recollect.errors import ChatError
from recollect.llm import Chat, Nobody
from recollect.llm.prompts import conversation, prompt
from recollect.llm.structured import ask
from recollect.records import Turn
from recollect.text.encodable import encodable
from recollect.text.redaction import redact, without_private

MAX_POINTS = 8
MAX_OUTPUT_TOKENS = 1200

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_ASCII_WORDS = re.compile(r"[A-Za-z]+")


def _lines(value: object) -> object:
    """Models like to give one text where a list was asked for, and lists with empty items."""
    items = [value] if isinstance(value, str) else value
    return (
        [kept for item in items if (kept := _line(item))][:MAX_POINTS] if isinstance(items, list) else items
    )


def _line(value: object) -> str:
    """One line without marks of its own, and without secrets: a model may repeat what it was told."""
    text = redact(without_private(encodable(str(value))))
    return " ".join(text.split()).lstrip("-*•#> ").strip()


Line = Annotated[str, BeforeValidator(_line)]
Lines = Annotated[list[str], BeforeValidator(_lines)]


class Points(BaseModel):
    """What is worth keeping of a conversation."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    title: Line = Field(min_length=1, max_length=200)
    summary: Line = ""
    decisions: Lines = []
    facts: Lines = []
    todo: Lines = []

    @property
    def empty(self) -> bool:
        return not (self.summary or self.decisions or self.facts or self.todo)


class Made(NamedTuple):
    """Points, by whom, and what went wrong on the way."""

    points: Points
    by: str  #: the model's name, or "extractive"
    note: str | None


def make_points(turns: Sequence[Turn], chat: Chat, *, task: str, date: str) -> Made:
    """Ask the model; if it fails or there is none, take sentences by rules and say so."""
    from recollect.writing.extractive import extract

    if isinstance(chat, Nobody):
        return Made(extract(turns), "extractive", None)
    try:
        asked = prompt(task, date=date, conversation=conversation(turns))
        points = ask(chat, asked.system, asked.user, Points, max_tokens=MAX_OUTPUT_TOKENS)
        failure = f"{chat.name} found nothing to keep." if points.empty else None
    except ChatError as error:
        failure = str(error)
    if failure:
        return Made(extract(turns), "extractive", f"Summarised without a language model: {failure}")
    return Made(points, chat.name, None)


_HEADINGS = {
    False: {"decisions": "Decisions", "todo": "To do", "facts": "Points"},
    True: {"decisions": "决定", "todo": "待办", "facts": "要点"},
}


def is_chinese(text: str) -> bool:
    """Whether a text reads as Chinese: a character says about as much as a word."""
    return len(_CJK.findall(text)) > 2 * len(_ASCII_WORDS.findall(text))


def render(points: Points, *, level: int = 2) -> str:
    """The points as Markdown, under headings of the language that they are in."""
    said = " ".join([points.title, points.summary, *points.decisions, *points.facts])
    parts = [points.summary] if points.summary else []
    for name, heading in _HEADINGS[is_chinese(said)].items():
        items: list[str] = getattr(points, name)
        if items:
            parts.append("\n".join([f"{'#' * level} {heading}", "", *(f"- {item}" for item in items)]))
    return "\n\n".join(parts)
