"""Ask the questions, and count what a search and a prompt contain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memoriter.errors import ChatError
from memoriter.extensions.evaluate.questions import UNRELATED, Question, ask_about, model_of, share
from memoriter.memory import Memory, parts_of
from memoriter.recall.inject import Budget, Injector, Recalled
from memoriter.text.tokens import estimate_tokens, token_set

if TYPE_CHECKING:
    from memoriter.llm.chat import Chat

MAX_HITS = 5
ANSWER_TOKENS = 80
ANSWER = "Answer in a few words. If you do not know, say that you do not know."


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The figures. Shares are between 0 and 1."""

    questions: int
    #: Who wrote the questions: "rules", or the model.
    written_by: str
    found_first: float
    found: float
    in_the_prompt: float
    #: Answerable questions for which nothing entered the prompt.
    silent: float
    #: Tokens of a prompt's block, on average.
    tokens: float
    #: Unrelated questions for which something entered the prompt.
    noise: float
    #: Superseded statements that enter a prompt without a mark when their topic comes up.
    stale: int
    superseded: int
    #: Common words of the model's answers and the lines, with and without the memory. None without a model.
    answers_with_memory: float | None
    answers_without: float | None
    #: Questions whose line was not found, the first ones.
    missed: tuple[Question, ...]


class Unrecorded(Injector):
    """Makes recalls that no ledger records: an evaluation does not count as use of the memory."""

    def _record(self, fitted: Any, query: str, interface: str, session: str | None) -> Recalled:
        del query, interface, session
        chosen, _, text, *_ = fitted
        return Recalled("", text, tuple(chosen))


def evaluate(memory: Memory, count: int, *, seed: int = 0, use_model: bool = True) -> Evaluation:
    """Ask questions about the memory's own lines, unrelated ones, and ones about what was superseded."""
    chat = model_of(memory) if use_model else None
    asked = ask_about(memory, count, seed=seed, chat=chat)
    real = parts_of(memory).injector
    injector = Unrecorded(real.entries, real.notes, real.lookup)

    def prompt(text: str) -> str:
        return injector.recall(text, budget=Budget()).text

    first, found, shown, silent, tokens, missed = [], [], [], [], 0, list[Question]()
    with_memory, without = list[float](), list[float]()
    for question in asked:
        hits = memory.search(question.text, max_results=MAX_HITS).hits
        places = [_covers(hit, question) for hit in hits]
        block = prompt(question.text)
        first.append(bool(places[:1] and places[0]))
        found.append(any(places))
        shown.append(_contains(block, question.line))
        silent.append(not block)
        tokens += estimate_tokens(block)
        if not any(places):
            missed.append(question)
        if chat is not None:
            with_memory.append(_answer(chat, f"{block}\n\n{question.text}", question.line))
            without.append(_answer(chat, question.text, question.line))
    old = memory.entries.list(states=("superseded",), limit=count) if memory.has_entries else []
    return Evaluation(
        questions=len(asked),
        written_by=chat.name if chat else "rules",
        found_first=share(first),
        found=share(found),
        in_the_prompt=share(shown),
        silent=share(silent),
        tokens=round(tokens / max(1, len(asked)), 1),
        noise=share([bool(prompt(text)) for text in UNRELATED]),
        stale=sum(_contains(prompt(entry.text), entry.text) for entry in old),
        superseded=len(old),
        answers_with_memory=_mean(with_memory),
        answers_without=_mean(without),
        missed=tuple(missed[:MAX_HITS]),
    )


def _covers(hit: Any, question: Question) -> bool:
    if question.path.startswith("entry:"):
        return hit.entry is not None and hit.entry.entry.id == question.path.removeprefix("entry:")
    if hit.path == question.path:
        return bool(hit.start_line <= question.number <= hit.end_line)
    return _contains(hit.snippet, question.line)  # the same sentence, elsewhere


def _contains(text: str, line: str) -> bool:
    return " ".join(line.split()).rstrip(".。") in " ".join(text.split())


def _answer(chat: Chat, prompt: str, line: str) -> float:
    """Return the share of common words (F1) of the model's answer and the line."""
    try:
        said = token_set(chat.complete(ANSWER, prompt, max_tokens=ANSWER_TOKENS).text)
    except ChatError:
        return 0.0
    known = token_set(line)
    both = len(said & known)
    return 2 * both / (len(said) + len(known)) if both else 0.0


def _mean(values: list[float]) -> float | None:
    return round(sum(values) / len(values), 3) if values else None
