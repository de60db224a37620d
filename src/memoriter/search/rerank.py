"""The second stage of a search: a small cross-encoder reads the query together with each of the best candidates.

The first stage compares vectors and words that were computed apart. The reranker sees both texts at once, so it knows
which of them answers. It costs a few milliseconds for each pair, therefore it reads only the first candidates, a
limited number of tokens, and remembers what it has read. Notes, sessions and entries use it in the same way:

    reading = reranker.read(query, {row: text})
    ranked = blend(ranked, reading)

A missing or damaged model never fails a search: ``degraded`` says so, and the order of the first stage stays.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from memoriter import logs
from memoriter.embedding import local
from memoriter.embedding.lookup import bundled_model
from memoriter.errors import EmbedderUnavailable, EmbeddingError, first_line
from memoriter.records import Chunk, Part
from memoriter.search.rank import Scored
from memoriter.sentences import sentence
from memoriter.text import snippet
from memoriter.text.tokens import to_simplified, width

log = logs.get("search")

BUNDLED = Path(__file__).parent / "models" / "memoriter-rerank-1"

#: Tokens that are read in one search: many short lines or a few long ones. Long texts gain least from more of them.
READ_TOKENS = 250
#: The least and the largest number of candidates, whatever their length.
MIN_CANDIDATES, CANDIDATES = 3, 24
#: Candidates are read if meaning and words together are worth this, and not so far behind the best. A paraphrase in
#: Chinese is often worth only 0.15. If none is left, nothing matches.
MIN_VALUE, MAX_BEHIND = 0.12, 0.3
#: The weight of the reranker, relative to 1 for the first stage, and its share if the query names a day: it knows no
#: dates, and the first stage compares them exactly. Chosen on the labelled sets; none loses by it (lab/models.md).
WEIGHT, DATED_SHARE = 0.35, 0.4
#: Logits are divided by this before they become a value between 0 and 1.
SPREAD = 3.0
#: Seconds of CPU time, so that an answer does not depend on what else the machine does. Candidates that are not read by
#: then keep their score of the first stage.
BUDGET_S = 0.4
QUERY_TOKENS = 64
TEXT_TOKENS = 112
#: Pairs of query and text whose logit is remembered.
CACHED_PAIRS = 8_192


@dataclass(frozen=True, slots=True)
class Reading:
    """The logits of the candidates that were read: how well each answers the query."""

    #: By row. Candidates that the budget cut are left out.
    logits: Mapping[int, float] = field(default_factory=dict)
    degraded: str | None = None
    #: The weight of the model that read them, relative to 1 for the first stage.
    weight: float = WEIGHT
    #: Whether a logit means the same in every answer, so that it tells how sure a hit is.
    is_calibrated: bool = True

    def calibrated(self, row: int) -> float | None:
        """Return the logit of a row, if it was read and means the same in every answer."""
        return self.logits.get(row) if self.is_calibrated else None


class Reranker:
    """A cross-encoder from an ONNX folder. The model loads with the first query."""

    def __init__(
        self,
        folder: Path = BUNDLED,
        tokenizer: Path | None = None,
        *,
        budget_s: float = BUDGET_S,
        cached_pairs: int = CACHED_PAIRS,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._folder = folder
        self._tokenizer = tokenizer
        self._budget_s = budget_s
        self._clock = clock
        self._lock = threading.Lock()
        self._model: _Model | None = None
        #: Why the model cannot be used. It is not loaded again in this process.
        self._failure: str | None = None
        self._cache = PairCache(cached_pairs)

    def read(self, query: str, texts: Mapping[int, str]) -> Reading:
        """Return how well each text answers the query, in the given order until the tokens or the time are spent."""
        if self._failure is not None or not query.strip() or not texts:
            return Reading(degraded=self._failure)
        try:
            return Reading(self._logits(self._load(), to_simplified(query), texts))
        except (EmbeddingError, ImportError) as error:
            return Reading(degraded=self._fail(error))

    def words(self, first: str, second: str, limit: int) -> tuple[Any, Any]:
        """Return the word vectors of a pair with at most this many tokens each, and their mask, for another model."""
        return self._load().words(to_simplified(first), to_simplified(second), limit)

    def _logits(self, model: _Model, query: str, texts: Mapping[int, str]) -> dict[int, float]:
        until = self._clock() + self._budget_s
        start, found, tokens = model.start(query, QUERY_TOKENS), dict[int, float](), 0
        for row, text in texts.items():
            tokens += len(start) + min(TEXT_TOKENS, width(text) // 4)
            if tokens > READ_TOKENS and len(found) >= MIN_CANDIDATES:
                break
            logit = self._cache.get(query, text)
            if logit is None:
                if self._clock() > until:
                    break
                logit = model.logit(start, to_simplified(text))
                self._cache.put(query, text, logit)
            found[row] = logit
        return found

    def _load(self) -> _Model:
        with self._lock:
            if self._model is None:
                self._model = _Model(self._folder, self._tokenizer)
            return self._model

    def _fail(self, error: Exception) -> str:
        with self._lock:
            if self._failure is None:
                log.warning("searching without the reranker: %s", error)
                self._failure = sentence("search.not_reranked", why=first_line(error))
            return self._failure


@cache
def bundled() -> Reranker:
    """Return the reranker that comes with the package. All memories of a process share it."""
    return Reranker()


def answer(query: str, text: str) -> float:
    """Return the logit of a text and a query from the bundled reranker; 0 if it cannot tell."""
    return bundled().read(query, {0: text}).logits.get(0, 0.0)


class _Model:
    """A loaded cross-encoder and its tokenizer."""

    def __init__(self, folder: Path, tokenizer: Path | None) -> None:
        verify(folder)
        embedder = bundled_model()
        path = tokenizer or (embedder / "tokenizer.json" if embedder else folder / "tokenizer.json")
        self._tokenizer = local.open_tokenizer(path)
        first, separator = (self._tokenizer.id_of(mark) for mark in ("[CLS]", "[SEP]"))
        if first is None or separator is None:
            raise EmbedderUnavailable(f"{path} has no [CLS] and [SEP]")
        self._first, self._separator = first, separator
        self._session = local.open_session(folder / "model.onnx")
        self._words = folder / "words.onnx"

    def start(self, query: str, limit: int) -> list[int]:
        """Return the tokens before a text."""
        return [self._first, *self._tokens(query, limit), self._separator]

    def logit(self, start: Sequence[int], text: str) -> float:
        """Return the logit of the text and the query, which ``start`` holds. A single pair needs no padding.

        A dynamic int8 graph scales by all pairs of a batch, so only a single pair always has the same logit.
        """
        feeds = self._feeds(start, text, TEXT_TOKENS)
        return finite(local.run(self._session, "logit", feeds))

    def words(self, first: str, second: str, limit: int) -> tuple[Any, Any]:
        """Return the word vectors of a pair, which enter the first layer, and their mask.

        A graph of its own computes them, since onnxruntime computes all layers for any output of the whole one.
        """
        feeds = self._feeds(self.start(first, limit), second, limit)
        mask = feeds.pop("attention_mask")
        return local.run(self._word_session, "norm", feeds), mask

    @cached_property
    def _word_session(self) -> Any:
        return local.open_session(self._words)

    def _feeds(self, start: Sequence[int], text: str, limit: int) -> dict[str, Any]:
        import numpy as np

        ids = [*start, *self._tokens(text, limit), self._separator]
        kinds = np.zeros((1, len(ids)), dtype=np.int64)
        kinds[0, len(start) :] = 1
        mask = np.ones((1, len(ids)), dtype=np.int64)
        return {
            "input_ids": np.asarray([ids], dtype=np.int64),
            "attention_mask": mask,
            "token_type_ids": kinds,
        }

    def _tokens(self, text: str, limit: int) -> list[int]:
        return self._tokenizer.tokens(local.well_formed(text))[:limit]


def finite(output: Any) -> float:
    """Return the only value of an output."""
    value = float(output.reshape(-1)[0])
    if not math.isfinite(value):
        raise EmbeddingError("the model returned a value that is not a number")
    return value


def verify(folder: Path) -> None:
    """Compare the files of a folder with its manifest."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
        digests = {name: file["sha256"] for name, file in manifest["files"].items()}
    except (AttributeError, OSError, ValueError, KeyError, TypeError) as error:
        raise EmbedderUnavailable(f"the model folder {folder} has no valid manifest.json") from error
    for name, digest in digests.items():
        local.verify(folder / name, digest)


class PairCache:
    """Logits of recent pairs. Keys are digests, so that no text outlives its note here."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._logits: OrderedDict[bytes, float] = OrderedDict()

    def get(self, first: str, second: str) -> float | None:
        """Return the logit of a pair, if it is known."""
        key = _key(first, second)
        with self._lock:
            if key in self._logits:
                self._logits.move_to_end(key)
            return self._logits.get(key)

    def put(self, first: str, second: str, logit: float) -> None:
        """Keep the logit of a pair, and drop the pair that was not used for longest if there are too many."""
        with self._lock:
            self._logits[_key(first, second)] = logit
            if len(self._logits) > self._size:
                self._logits.popitem(last=False)


def _key(first: str, second: str) -> bytes:
    joined = f"{len(first)}\0{first}{second}"
    return hashlib.blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=16).digest()


# ---- texts and scores ---------------------------------------------------------------------------------------------


def text_of(chunk: Chunk, matched: Callable[[], Collection[str]]) -> str:
    """Return what the reranker reads of a chunk: its headings, and its lines around the words of the query.

    ``matched`` returns these words. Only a long text needs them.
    """
    text = chunk.text
    if (size := width(text)) > 4 * TEXT_TOKENS:
        text = snippet(text, matched(), max(1, 4 * TEXT_TOKENS * len(text) // size))
    return f"{' > '.join(chunk.headings)}\n{text}" if chunk.headings else text


def worth_reading(reranker: object, values: Mapping[int, float]) -> list[int]:
    """Return the rows that may answer, by the value of their meaning and words, in the given order.

    A reranker that people bring reads all: it may know better what answers.
    """
    if not isinstance(reranker, Reranker):
        return list(values)
    least = max(MIN_VALUE, max(values.values(), default=0.0) - MAX_BEHIND)
    return [row for row, value in values.items() if value >= least]


def blend(scored: Iterable[Scored], reading: Reading, share: float = 1.0) -> list[Scored]:
    """Add the reranker's part to the scores, best first. A row that was not read keeps its place behind the others.

    ``share`` says how much of the reranker's weight counts. All weights together stay 1, and so does the largest score.
    """
    if not reading.logits:
        return list(scored)
    weight = share * reading.weight
    blended = [_blend(item, reading.logits.get(item.rowid), weight) for item in scored]
    return sorted(blended, key=lambda item: (-item.score, item.rowid))


def _blend(item: Scored, logit: float | None, weight: float) -> Scored:
    share = 1 / (1 + weight)
    parts = tuple(
        replace(part, weight=part.weight * share, contribution=part.contribution * share)
        for part in item.parts
    )
    if logit is not None:
        worth = value_of(logit)
        parts += (
            Part("rerank", worth, 1 - share, worth * (1 - share), "a model read the query and these lines"),
        )
    return Scored(item.rowid, parts)


def value_of(logit: float) -> float:
    """Return a logit as a value between 0 and 1."""
    return 1 / (1 + math.exp(-max(-100.0, min(100.0, logit / SPREAD))))
