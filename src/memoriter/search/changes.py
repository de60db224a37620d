"""Changes: whether a later statement puts an earlier one out of date.

Neighbourhood says which older line a statement is about. Whether both stand only a reader can tell. The bundled one has
six layers and reads the word vectors of the reranker, so its file holds only these layers. It was taught by a language
model, see lab/models.md. Anything with `out_of_date` can answer instead.

A sure answer retires the older statement. An unsure one counts together with the neighbourhood (`about_the_same`), and
only brings the newer statement along. A missing or damaged model answers nothing: exact denials still count, and
`problem` says why. All thresholds are here.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol

from memoriter import logs
from memoriter.embedding import local
from memoriter.errors import EmbeddingError, first_line
from memoriter.search.rerank import CACHED_PAIRS, PairCache, Reranker, bundled, finite, verify
from memoriter.sentences import sentence
from memoriter.text.tokens import estimate_tokens

log = logs.get("search")

BUNDLED = Path(__file__).parent / "models" / "memoriter-changes-1"
#: Tokens of each statement that are read.
TOKENS = 128
#: The least probability that retires a statement, and the least one if the newer statement announces a change. Fewer
#: than one in a hundred pairs that stand have it, of those in `lab.evals.changes`, `lab.evals.merge` and of scenes.
RETIRED, ANNOUNCED = 0.984, 0.9
#: The least probability of a change that an audit reports.
PROBABLE = 0.92
#: The least probability (`about_the_same`) that brings a newer line along, that makes the newest of several lines stand
#: for all, and that a line must have to retire another.
BESIDE, SAME, CERTAIN = 0.05, 0.25, 0.5
#: The weights of `comes_first`: the log odds that two lines are about the same, the words of a change, the constant.
FIRST = (4.0, 1.0, 7.0)
#: The weights of `about_the_same`: cosine, whether it is the nearest line, how much nearer than the next one, whether
#: it is the best other hit, log odds of the judge, and the constant.
#: `python -m lab.evals.updates --fit` fits them on development halves of the sets.
WEIGHTS = (0.45, 1.27, 1.97, 1.53, 0.82, -4.37)
#: Log odds count up to this. A line without a next one is compared with this nearness.
MAX_LOG_ODDS, NO_NEIGHBOUR = 7.0, 0.2
#: A pair is read only if it would be about the same with this probability of the judge, and has this cosine. Three in
#: four have not.
PLAUSIBLE, MIN_COSINE = 0.55, 0.25
#: Two statements that share the first part of the longer one at their ends differ in one value: "My locker is 212" and
#: "My locker is 87", but also "The soup is hot" and "The soup is salty". Then only the second probability retires.
FRAME, ONE_VALUE = 0.34, 0.992
#: The log odds that a line gains which tells of a change in what the question asks for, and the probability of an
#: answer up to which this is read.
NEWS, UNSURE = 1.5, 0.4
#: The least cosine of a statement that is retired or marked, and the least nearness of one that another comes before;
#: and the nearness, in which words in common count, that marks a line with a lower cosine.
NEAR, MARKED = 0.4, 0.43
#: If the sixth nearest line has the second nearness, one that is not nearer by the third is newer only if a change is
#: `PROBABLE`. The sixth has at most 0.47 in `lab.evals.changes`, and mostly more than 0.65 in records of a phone.
CROWD = (6, 0.6, 0.2)
#: A line that is not so near comes along only if it answers the question. Four in five of the others are unrelated.
#: If the judge sees a change, the line must only be about the question: the logit of its answer is above the second
#: number. "The French press is broken" hardly answers how coffee is made.
NEARBY, TELLS = 0.46, -3.0


Change = Literal["retired", "probable", ""]


class Judge(Protocol):
    """Tells changes from statements that both stand."""

    def out_of_date(self, earlier: str, later: str) -> float | None:
        """Return the probability that the later statement puts the earlier one out of date; None if it cannot tell."""

    def problem(self) -> str | None:
        """Return why it cannot answer; None if it can."""


def change(judge: Judge | None, earlier: str, later: str) -> tuple[Change, float]:
    """Return whether the later of two near statements puts the earlier one out of date, and the judge's probability.

    A statement of which the reader sees only the start is never retired.
    """
    chance = (judge.out_of_date(earlier, later) if judge else None) or 0.0
    if chance < PROBABLE:
        return "", chance
    needed = ANNOUNCED if announces_change(later) else RETIRED
    if needed == RETIRED and _shared_ends(earlier, later) >= FRAME:
        needed = ONE_VALUE
    is_whole = all(estimate_tokens(text) <= TOKENS for text in (earlier, later))
    return "retired" if chance >= needed and is_whole else "probable", chance


def about_the_same(features: Sequence[float], chance: float) -> float:
    """Return the probability that a line is a newer one about the same thing as another.

    ``features`` are those of its neighbourhood, as `WEIGHTS` lists them. Neighbourhood tells which line a statement is
    about, and the probability that the judge gives tells whether it changes anything.
    """
    values = (*features, _odds(chance), 1.0)
    return 1 / (1 + math.exp(-sum(weight * value for weight, value in zip(WEIGHTS, values, strict=True))))


def comes_first(about: float, chance: float, lead: float, *, announced: bool) -> bool:
    """Return whether a newer line comes before an older one about the same thing.

    ``about`` and ``chance`` are the probabilities of `about_the_same` and of the judge, and ``lead`` says by how many
    logits the newer line answers the question better. It counts half if the judge is sure. "Who painted the boat?" is
    answered by the older line if the newer one says where the boat lies.
    """
    same, words, constant = FIRST
    lead *= 1 - max(0.0, _odds(chance)) / MAX_LOG_ODDS / 2
    return same * _odds(about) + lead + words * announced + constant > 0


def _odds(probability: float) -> float:
    odds = math.log(max(probability, 1e-9) / max(1 - probability, 1e-9))
    return max(-MAX_LOG_ODDS, min(MAX_LOG_ODDS, odds))


def _shared_ends(one: str, other: str) -> float:
    """Return the share of the longer text that both have at their start and end."""
    first, second = (text.casefold().rstrip(".!。！") for text in (one, other))
    head = _shared_start(first, second)
    tail = min(len(first) - head, len(second) - head, _shared_start(first[::-1], second[::-1]))
    return (head + tail) / max(1, len(first), len(second))


def _shared_start(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))


_CHANGES_IN_ENGLISH = (
    *("now", "no longer", "any more", "anymore", "moved", "relocated", "switched", "changed", "migrated"),
    *("replaced", "instead of", "joined", "rescheduled", "postponed", "updated", "adjusted", "raised"),
    *("lowered", "increased", "decreased", "reached", "improved to", "grew to", "grown to", "risen to"),
    *("dropped to", "reduced to"),
)
_CHANGE_IN_CHINESE = re.compile(
    "改[用成为為到]|[换換][成到了]|搬[到去]|[迁遷][到移]|跳槽|[转轉]到|不再|[现現]在|目前|如今|取代|推[迟遲]"
    "|提前到|[涨漲降升]到|[变變]成|[戒卖賣].{0,12}了$"
)
_CHANGE_IN_ENGLISH = re.compile(rf"\b(?:{'|'.join(_CHANGES_IN_ENGLISH)})\b")


def announces_change(text: str) -> bool:
    """Return whether a statement says that something changed."""
    lower = text.lower()
    if not text.isascii() and _CHANGE_IN_CHINESE.search(text):
        return True
    # A search for each word is much faster than the pattern, which tells "now" from "know".
    return any(word in lower for word in _CHANGES_IN_ENGLISH) and _CHANGE_IN_ENGLISH.search(lower) is not None


_ASKED_IN_ENGLISH = re.compile(
    r"(?:where|what|which|who|when|how)\b.{0,80}?\bdo(?:es)?\s(\w.*?)\W*", re.IGNORECASE
)
_ASKED_IN_CHINESE = re.compile(
    "哪[里裡儿兒个個家天]?|什[么麼]|[谁誰]|多少|[几幾][点點个個]?|怎[么麼]|[吗嗎呢]|[现現]在|[还還]|[?？]"
)


def as_statement(question: str) -> str:
    """Return a question without its question words; empty if it has another form.

    >>> as_statement("Where do I live?"), as_statement("我住在哪里？"), as_statement("Is the shop open?")
    ('I live', '我住在', '')
    """
    if question.isascii():
        found = _ASKED_IN_ENGLISH.fullmatch(question.strip())
        return found[1] if found else ""
    said = _ASKED_IN_CHINESE.sub("", question).strip()
    return said if said != question.strip(" ?？") and len(said) > 1 else ""


def answers_by_change(judge: Judge | None, question: str, line: str) -> bool:
    """Return whether a line tells of a change in what a question asks for: "I moved to Munich", where do I live?

    The line would surely put the statement out of date that the question is without its question words.
    """
    said = as_statement(question)
    return bool(judge and said) and change(judge, said, line)[0] == "retired"


class Reader:
    """A judge from an ONNX folder. The model loads with the first pair."""

    def __init__(self, folder: Path = BUNDLED, reranker: Callable[[], Reranker] = bundled) -> None:
        self._folder, self._reranker = folder, reranker
        self._lock = threading.Lock()
        self._session: Any = None
        self._failure: str | None = None
        self._cache = PairCache(CACHED_PAIRS)

    def out_of_date(self, earlier: str, later: str) -> float | None:
        """Return the probability that the later statement puts the earlier one out of date; None without a model."""
        if self._failure is not None or not earlier.strip() or not later.strip():
            return None
        logit = self._cache.get(earlier, later)
        if logit is None:
            try:
                logit = self._read(earlier, later)
            except (EmbeddingError, ImportError) as error:
                self._fail(error)
                return None
            self._cache.put(earlier, later, logit)
        return 1 / (1 + math.exp(-logit))

    def problem(self) -> str | None:
        """Return why changes are recognised by exact denials only; None if the model can be used."""
        if self._failure is None:
            try:
                verify(self._folder)
            except EmbeddingError as error:
                self._fail(error)
        return self._failure

    def _read(self, earlier: str, later: str) -> float:
        with self._lock:
            if self._session is None:
                verify(self._folder)
                self._session = local.open_session(self._folder / "model.onnx")
        vectors, mask = self._reranker().words(earlier, later, TOKENS)
        return finite(local.run(self._session, "replaced", {"norm": vectors, "attention_mask": mask}))

    def _fail(self, error: Exception) -> None:
        with self._lock:
            if self._failure is None:
                log.warning("changes are recognised by exact denials only: %s", error)
                self._failure = sentence("search.no_reader", why=first_line(error))


@cache
def reader() -> Reader:
    """Return the reader that comes with the package. All memories of a process share it."""
    return Reader()
