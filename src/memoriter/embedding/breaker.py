"""An embedder that rests after it has failed a few times, and comes back by itself.

While it rests, calls fail at once and say why and until when; so a search during an outage costs nothing, and
the provider is left alone. After the rest one call is let through: if it works all is well, if not the next
rest is twice as long.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from memoriter import logs
from memoriter.errors import EmbedderBusy, EmbeddingError, QuotaSpent
from memoriter.records import Identity

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Embedder, Matrix

log = logs.get("embedding")
T = TypeVar("T")

FAILURES = 3  #: in a row
FIRST_REST_S = 15.0
LONGEST_REST_S = 600.0


class _State:
    """How an embedder has fared lately."""

    def __init__(self, rest_s: float) -> None:
        self.lock = threading.Lock()
        self.failures = 0
        self.rest_s = rest_s  #: the next one
        self.until: float | None = None  #: resting; None: at work
        self.trying = False  #: one call has been let through after a rest
        self.reason = ""


class Breaker:
    """The same embedder, left alone for a while when it fails."""

    def __init__(
        self,
        embedder: Embedder,
        *,
        failures: int = FAILURES,
        rest_s: float = FIRST_REST_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.embedder = embedder
        self._allowed = failures
        self._first_rest_s = rest_s
        self._clock = clock
        self._state = _State(rest_s)

    @property
    def identity(self) -> Identity:
        """Whose vectors these are."""
        return self.embedder.identity

    def beside(self, embedder: Embedder) -> Breaker:
        """Another way to the same provider: what fails here counts there."""
        other = Breaker(embedder, failures=self._allowed, rest_s=self._first_rest_s, clock=self._clock)
        other._state = self._state
        return other

    @property
    def resting(self) -> str | None:
        """Why calls fail at once now, in words; None when they do not."""
        with self._state.lock:
            return self._words() if self._state.until is not None else None

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of documents."""
        return self._call(lambda: self.embedder.embed(texts))

    def embed_query(self, text: str) -> Matrix:
        """The vector of a query."""
        return self._call(lambda: self.embedder.embed_query(text))

    def close(self) -> None:
        """Give back what the embedder holds."""
        self.embedder.close()

    def _call(self, call: Callable[[], T]) -> T:
        self._admit()
        try:
            result = call()
        except EmbeddingError as error:
            self._failed(error)
            raise
        except BaseException:
            self._state.trying = False  # not the embedder's failure: the next call may try
            raise
        self._worked()
        return result

    def _admit(self) -> None:
        with self._state.lock:
            if self._state.until is None:
                return
            if self._state.trying or self._clock() < self._state.until:
                raise EmbeddingError(self._words())
            self._state.trying = True

    def _failed(self, error: EmbeddingError) -> None:
        with self._state.lock:
            self._state.failures += 1
            tried, self._state.trying = self._state.trying, False
            self._state.reason = str(error)
            if tried or self._state.failures >= self._allowed or isinstance(error, QuotaSpent):
                self._rest(error)

    def _rest(self, error: EmbeddingError) -> None:
        asked = error.retry_after_s if isinstance(error, EmbedderBusy) else None
        rest = LONGEST_REST_S if isinstance(error, QuotaSpent) else self._state.rest_s
        self._state.until = self._clock() + max(rest, asked or 0.0)
        self._state.rest_s = min(2 * self._state.rest_s, LONGEST_REST_S)
        log.warning("%s", self._words())

    def _worked(self) -> None:
        with self._state.lock:
            if self._state.until is not None:
                log.warning("%s works again", self.identity.provider)
            self._state.failures, self._state.until, self._state.trying = 0, None, False
            self._state.rest_s, self._state.reason = self._first_rest_s, ""

    def _words(self) -> str:
        left = max(0.0, (self._state.until or 0.0) - self._clock())
        when = f"in {left:.0f} s" if left >= 0.5 else "with the next call"
        return f"{self._state.reason} ({self.identity.provider} is left alone and tried again {when})"
