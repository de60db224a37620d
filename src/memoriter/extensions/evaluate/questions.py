"""Questions about a memory, made from its own lines.

By rules, a question consists of some words of a line, and what is left out of it would be the answer. If a language
model is configured, it writes questions as a person would.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memoriter.errors import ChatError
from memoriter.memory import Memory, parts_of
from memoriter.text.tokens import find_words, query_terms, split_lines

if TYPE_CHECKING:
    from memoriter.llm.chat import Chat

#: Characters of a line that says something, and fits into a prompt.
LINE_CHARS = (24, 300)
#: Words that a line must have apart from those that say little.
MIN_TERMS = 5
#: Share of the words that a question keeps.
KEPT = 0.6
MAX_LINES = 20_000
MODEL_TOKENS = 60
WRITE = (
    "Write one short question that the given line of a personal memory answers. Do not repeat the answer. "
    "Use the language of the line. Reply with the question only."
)
_MARKS = re.compile(r"^[\s>#*+-]*(?:\[[ xX]\]\s*)?(?:\d+[.)]\s*)?")
#: Questions that no personal memory answers.
UNRELATED = (
    "What is the boiling point of mercury?",
    "Who won the chess olympiad of 1972?",
    "How do bees find their way home?",
    "What is the longest river of South America?",
    "Which key is a French horn tuned to?",
    "How many moons does Neptune have?",
    "珠穆朗玛峰有多高？",
    "光合作用需要哪些条件？",
    "谁写了《红楼梦》？",
    "蜜蜂怎样辨认方向？",
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the line that answers it."""

    text: str
    line: str
    path: str
    number: int


def ask_about(memory: Memory, count: int, *, seed: int, chat: Chat | None) -> list[Question]:
    """Return questions about lines that are chosen at random, from notes and from entries."""
    lines = list(_lines(memory))
    common = Counter(term for line, _, _ in lines for term in set(query_terms(line)))
    chosen = random.Random(seed).sample(lines, min(count, len(lines)))  # noqa: S311 - a sample
    return [
        Question(_written(chat, line) or _by_rules(line, common), line, path, number)
        for line, path, number in chosen
    ]


def _lines(memory: Memory) -> Iterator[tuple[str, str, int]]:
    """Yield the lines that say something, with their places."""
    left = MAX_LINES
    for file in memory.notes.list(source="memory"):
        text = memory.read(file.path, 1, left).text
        for number, line in enumerate(split_lines(text), 1):
            plain = _MARKS.sub("", line).strip()
            if not line.lstrip().startswith("#") and _says_something(plain):
                yield plain, file.path, number
        left -= text.count("\n")
        if left <= 0:
            break
    if memory.has_entries:
        yield from (
            (entry.text, f"entry:{entry.id}", 1)
            for entry in memory.entries.list(limit=MAX_LINES)
            if _says_something(entry.text)
        )


def _says_something(line: str) -> bool:
    least, most = LINE_CHARS
    wide = least // 2 if any(char > "⺀" for char in line) else least
    return wide <= len(line) <= most and len(query_terms(line)) >= MIN_TERMS


def _by_rules(line: str, common: Counter[str]) -> str:
    """Return the frequent words of a line, in their order. The rare ones are what a person would ask for."""
    words = [(start, end, terms) for start, end, terms in find_words(line) if terms]
    ranked = sorted(words, key=lambda word: min(common[term] for term in word[2]), reverse=True)
    kept = sorted(ranked[: max(2, round(KEPT * len(words)))])
    return " ".join(line[start:end] for start, end, _ in kept)


def _written(chat: Chat | None, line: str) -> str:
    if chat is None:
        return ""
    try:
        return chat.complete(WRITE, line, max_tokens=MODEL_TOKENS).text.strip()
    except ChatError:
        return ""


def model_of(memory: Memory) -> Chat | None:
    """Return the configured language model, or None."""
    chat = parts_of(memory).chat
    return None if chat.name == "none" else chat


def share(part: Sequence[bool]) -> float:
    """Return the share of questions, as a number between 0 and 1."""
    return round(sum(part) / len(part), 3) if part else 0.0
