"""Trying again what may work the second time.

Passing failures are tried again after a pause that doubles and is drawn at random, so that four workers do
not knock all at once; a provider that says how long to wait is obeyed. A query is tried again once and at once:
its asker waits.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.errors import EmbedderBusy
from memoriter.records import Identity

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Embedder, Matrix

log = logs.get("embedding")

ATTEMPTS = 4
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0  #: who asks for more gets a failure that says so; the work goes on with the next sync


class Retrying:
    """The same embedder, a little more patient."""

    def __init__(
        self,
        embedder: Embedder,
        *,
        attempts: int = ATTEMPTS,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.embedder = embedder
        self._attempts = attempts
        self._sleep = sleep
        self._chance = chance

    @property
    def identity(self) -> Identity:
        """Whose vectors these are."""
        return self.embedder.identity

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of documents, after as many attempts as are allowed."""
        for attempt in range(1, self._attempts):
            try:
                return self.embedder.embed(texts)
            except EmbedderBusy as busy:
                pause = self._pause(attempt, busy.retry_after_s)
                if pause > LONGEST_PAUSE_S:
                    raise
                log.info("%s; tried again in %.1f s", busy, pause)
                self._sleep(pause)
        return self.embedder.embed(texts)

    def embed_query(self, text: str) -> Matrix:
        """The vector of a query; a lost connection is worth one more attempt, a request to wait is not."""
        try:
            return self.embedder.embed_query(text)
        except EmbedderBusy as busy:
            if busy.retry_after_s is not None:
                raise
        return self.embedder.embed_query(text)

    def close(self) -> None:
        """Give back what the embedder holds."""
        self.embedder.close()

    def _pause(self, attempt: int, asked_s: float | None) -> float:
        jitter = self._chance()
        if asked_s is not None:
            return asked_s + jitter  # never sooner than asked
        return min(FIRST_PAUSE_S * 2.0 ** (attempt - 1), LONGEST_PAUSE_S) * (0.5 + jitter / 2)
