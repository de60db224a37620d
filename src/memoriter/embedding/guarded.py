"""An embedder with guards: checked vectors, time limits, a cooldown after repeated failures, remembered queries.

During a cooldown calls fail immediately and say why, so an outage does not slow down searches. After it, one call goes
through. If that call fails too, the next cooldown is twice as long. The vendors' clients retry.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from functools import cached_property
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.background import Workers
from memoriter.errors import EmbedderBusy, EmbeddingError, QuotaSpent, first_line
from memoriter.records import Identity

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Embedder, Matrix


def clean(matrix: object) -> Matrix:
    """Return float32 rows of length one. Non-finite numbers become 0, and a zero row stays zero."""
    import numpy as np

    # In float64, because the square of a large float32 would overflow to infinity.
    rows = np.nan_to_num(np.asarray(matrix, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    # Scaled by the largest entry first, so that the squares of huge or tiny entries stay within range too.
    peak = np.abs(rows).max(axis=-1, keepdims=True, initial=0.0)
    rows = np.divide(rows, peak, out=np.zeros_like(rows), where=peak > 0)
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    unit: Matrix = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0).astype(np.float32)
    return unit


def validate(matrix: object, count: int, dimensions: int) -> Matrix:
    """Return the matrix if it has `count` rows of `dimensions` numbers; raise EmbeddingError otherwise."""
    import numpy as np

    try:
        rows = np.asarray(matrix)
    except ValueError as error:
        raise EmbeddingError("the embedder returned vectors of different lengths") from error
    if rows.dtype.kind not in "fiu":
        raise EmbeddingError(f"the embedder returned {rows.dtype} instead of numbers")
    if count == 0 and rows.size == 0:
        return np.zeros((0, dimensions), dtype=np.float32)
    if rows.ndim != 2:
        raise EmbeddingError(
            f"the embedder returned an array of shape {rows.shape} instead of one vector per text"
        )
    if rows.shape[0] != count:
        raise EmbeddingError(f"the embedder returned {rows.shape[0]} vectors for {count} texts")
    if rows.shape[1] != dimensions:
        raise EmbeddingError(
            f"the embedder returned vectors with {rows.shape[1]} dimensions instead of {dimensions}"
        )
    return rows.astype(np.float32, copy=False)


log = logs.get("embedding")

#: Failures in a row before a cooldown. A single lost connection is not an outage.
MAX_FAILURES = 3
FIRST_COOLDOWN_S = 15.0
MAX_COOLDOWN_S = 600.0
#: Threads for calls with a time limit, including abandoned ones: more than `embedding.concurrency` allows.
MAX_CALLS = 96
#: Remembered query vectors. A vector of 384 dimensions takes 1.5 KB.
MAX_QUERIES = 128
#: An idle thread waits this long for the next query.
LINGER_S = 30.0


class ProviderHealth:
    """Recent failures of a provider, and its cooldown."""

    def __init__(self, provider: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._provider = provider
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._next_cooldown_s = FIRST_COOLDOWN_S
        self._cooldown_ends: float | None = None
        #: One call was let through after a cooldown, and has not ended.
        self._probing = False
        self._reason = ""

    @property
    def cooldown(self) -> str | None:
        """The reason why calls fail immediately, or None outside a cooldown."""
        with self._lock:
            return self._message() if self._cooldown_ends is not None else None

    def check(self) -> None:
        """Raise EmbeddingError during a cooldown. After it, let one call through."""
        with self._lock:
            if self._cooldown_ends is None:
                return
            if self._probing or self._clock() < self._cooldown_ends:
                raise EmbeddingError(self._message())
            self._probing = True

    def record_failure(self, error: EmbeddingError) -> None:
        """Count a failure, and start a cooldown if there were too many."""
        with self._lock:
            self._failures += 1
            probed, self._probing = self._probing, False
            self._reason = str(error)
            if probed or self._failures >= MAX_FAILURES or isinstance(error, QuotaSpent):
                self._start_cooldown(error)

    def record_success(self) -> None:
        """Forget earlier failures."""
        with self._lock:
            if self._cooldown_ends is not None:
                log.warning("%s works again", self._provider)
            self._failures, self._cooldown_ends, self._probing = 0, None, False
            self._next_cooldown_s, self._reason = FIRST_COOLDOWN_S, ""

    def record_interruption(self) -> None:
        """Let the next call probe the provider: this one ended for another reason."""
        self._probing = False

    def _start_cooldown(self, error: EmbeddingError) -> None:
        requested_s = error.retry_after_s if isinstance(error, EmbedderBusy) else None
        cooldown_s = MAX_COOLDOWN_S if isinstance(error, QuotaSpent) else self._next_cooldown_s
        self._cooldown_ends = self._clock() + max(cooldown_s, requested_s or 0.0)
        self._next_cooldown_s = min(2 * self._next_cooldown_s, MAX_COOLDOWN_S)
        log.warning("%s", self._message())

    def _message(self) -> str:
        left_s = max(0.0, (self._cooldown_ends or 0.0) - self._clock())
        when = f"in {left_s:.0f} s" if left_s >= 0.5 else "with the next call"
        return f"{self._reason} ({self._provider} is in cooldown; next attempt {when})"


class Guarded:
    """An embedder that returns valid vectors or raises EmbeddingError, within its time limits.

    Without limits, calls run in the caller's thread. Without ``health`` there is no cooldown. The vectors of recent
    queries are remembered, because agents often repeat a query.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        query_s: float | None = None,
        batch_s: float | None = None,
        health: ProviderHealth | None = None,
        queries: int = MAX_QUERIES,
    ) -> None:
        self.embedder = embedder
        self.health = health
        self._max_queries = queries
        self._queries: OrderedDict[str, Matrix] = OrderedDict()
        self._lock = threading.Lock()
        self._query_s = query_s
        self._batch_s = batch_s
        # A thread cannot be stopped. A late call continues, and its result is dropped.
        self._workers = Workers("memoriter-embed-call", threads=MAX_CALLS, linger_s=LINGER_S)

    @cached_property
    def identity(self) -> Identity:
        """The identity of the wrapped embedder."""
        return self.embedder.identity

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of documents."""
        return self._call(lambda: self.embedder.embed(texts), len(texts), self._batch_s)

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a query. It is read-only, because later calls get the same array."""
        with self._lock:
            if text in self._queries:
                self._queries.move_to_end(text)
                return self._queries[text]
        row: Matrix = self._call(lambda: [self.embedder.embed_query(text)], 1, self._query_s)[0]
        row.setflags(write=False)
        with self._lock:
            self._queries[text] = row
            while len(self._queries) > self._max_queries:
                self._queries.popitem(last=False)
        return row

    def close(self) -> None:
        """Close the wrapped embedder. The next call opens it again."""
        self._workers.release(0.2)
        self._queries.clear()
        self.embedder.close()

    def _call(self, call: Callable[[], object], count: int, limit_s: float | None) -> Matrix:
        if self.health is None:
            return self._call_checked(call, count, limit_s)
        self.health.check()
        try:
            rows = self._call_checked(call, count, limit_s)
        except EmbeddingError as error:
            self.health.record_failure(error)
            raise
        except BaseException:
            self.health.record_interruption()
            raise
        self.health.record_success()
        return rows

    def _call_checked(self, call: Callable[[], object], count: int, limit_s: float | None) -> Matrix:
        try:
            rows = call() if limit_s is None else self._within(limit_s, call)
        except (EmbeddingError, CancelledError):  # a person interrupted the command
            raise
        except Exception as error:
            # Embedders of other packages may raise anything.
            raise EmbeddingError(
                f"the embedder {self.identity.provider} failed: {first_line(error)}"
            ) from error
        return clean(validate(rows, count, self.identity.dimensions))

    def _within(self, limit_s: float, call: Callable[[], object]) -> object:
        task = self._workers.submit(call)
        if not task.wait(limit_s):
            raise EmbedderBusy(f"{self.identity.provider} did not answer within {limit_s:g} s")
        return task.result()
