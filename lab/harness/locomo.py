"""LoCoMo's questions and scores, as its authors ask and count them (`task_eval` of their repository).

Answers are compared by the stems of their words, without case, punctuation and articles. A question with several
answers (`multi-hop`) counts each by the nearest part of what was said. An adversarial question asks for something that
the other person said or did: the model chooses between "Not mentioned in the conversation" and the wrong answer.
"""

from __future__ import annotations

import json
import re
import string
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any

from lab.evals.sets import Item, parse_day

ADVERSARIAL = "adversarial"
MISSING = "Not mentioned in the conversation"


@dataclass(frozen=True, slots=True)
class Question:
    """One question."""

    id: str
    group: str
    text: str
    category: str
    answer: str
    relevant: tuple[str, ...]

    @property
    def asked(self) -> str:
        """The question with what the authors add to it."""
        if self.category == "temporal":
            return f"{self.text} Use DATE of CONVERSATION to answer with an approximate date."
        if self.category == ADVERSARIAL:
            return "{} Select the correct answer: (a) {} (b) {}.".format(self.text, *self.choices)
        return self.text

    @property
    def choices(self) -> tuple[str, str]:
        """The two answers of an adversarial question, in an order that is the same in every run."""
        return (MISSING, self.answer) if _draw(self.id) % 2 else (self.answer, MISSING)

    def score(self, said: str) -> float:
        """Return how right an answer is, from 0 to 1."""
        if self.category == ADVERSARIAL:
            return float(self._is_missing(said.strip().lower()))
        if self.category == "multi-hop":
            parts = said.split(",")
            return fmean(max(f1(part, right) for part in parts) for right in self.answer.split(","))
        return f1(said, self.answer.split(";")[0] if self.category == "open-domain" else self.answer)

    def _is_missing(self, said: str) -> bool:
        if len(said) in (1, 3):  # "a" or "(a)"
            return self.choices["a" not in said] == MISSING
        return "not mentioned" in said or "no information available" in said


def _draw(text: str) -> int:
    return int(sha256(text.encode()).hexdigest(), 16)


@cache
def _porter() -> Any:
    return import_module("snowballstemmer").stemmer("porter")


def words(text: str) -> list[str]:
    """Return the stems of an answer."""
    plain = "".join(char for char in text.lower() if char not in string.punctuation)
    kept: list[str] = _porter().stemWords(re.sub(r"\b(a|an|the|and)\b", " ", plain).split())
    return kept


def f1(said: str, right: str) -> float:
    """Return the harmonic mean of precision and recall of the words."""
    found, wanted = words(said), words(right)
    shared = (Counter(found) & Counter(wanted)).total()
    return 2 * shared / (len(found) + len(wanted)) if shared else 0.0


def read(folder: Path) -> tuple[list[Item], list[Question]]:
    """Return what was said and what is asked, from a folder as `lab.evals` reads it."""
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text("utf-8").splitlines()]
    items = [Item(row["id"], row["group"], row["text"], parse_day(row["time"])) for row in rows]
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text("utf-8").splitlines()]
    questions = [
        Question(
            row["id"], row["group"], row["query"], row["category"], str(row["answer"]), tuple(row["relevant"])
        )
        for row in rows
        if row["relevant"]
    ]
    return items, questions


def sample(questions: Sequence[Question], most: int) -> list[Question]:
    """Return about this many questions: the same in every run, and the same share of every kind in every group."""
    if len(questions) <= most:
        return list(questions)
    kinds = defaultdict[tuple[str, str], list[Question]](list)
    for question in sorted(questions, key=lambda question: _draw(question.id)):
        kinds[question.group, question.category].append(question)
    share = most / len(questions)
    chosen = {one.id for kind in kinds.values() for one in kind[: max(1, round(share * len(kind)))]}
    return [question for question in questions if question.id in chosen]
