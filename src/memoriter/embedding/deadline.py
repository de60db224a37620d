"""An embedder that answers in time or not at all.

A thread cannot be stopped, so a call that is late is left behind: it goes on in a thread of its own, which
nobody waits for, and its result is dropped. How often a late embedder is asked again is `breaker`'s duty.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from memoriter.errors import EmbedderBusy
from memoriter.records import Identity

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Embedder, Matrix


class Deadline:
    """The same embedder, which fails when it is late. None: no limit, and no thread."""

    def __init__(
        self, embedder: Embedder, *, query_s: float | None = None, batch_s: float | None = None
    ) -> None:
        self.embedder = embedder
        self._query_s = query_s
        self._batch_s = batch_s

    @property
    def identity(self) -> Identity:
        """Whose vectors these are."""
        return self.embedder.identity

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of documents."""
        return self._within(self._batch_s, lambda: self.embedder.embed(texts))

    def embed_query(self, text: str) -> Matrix:
        """The vector of a query."""
        return self._within(self._query_s, lambda: self.embedder.embed_query(text))

    def close(self) -> None:
        """Give back what the embedder holds."""
        self.embedder.close()

    def _within(self, limit_s: float | None, call: Callable[[], Matrix]) -> Matrix:
        if limit_s is None:
            return call()
        errand = _Errand(call)
        # A daemon: a provider that never answers must not keep the program from ending.
        threading.Thread(target=errand.run, name="memoriter-embed-call", daemon=True).start()
        if not errand.done.wait(limit_s):
            raise EmbedderBusy(f"{self.identity.provider} did not answer within {limit_s:g} s")
        return errand.result()


class _Errand:
    """A call that runs elsewhere, and what came of it."""

    def __init__(self, call: Callable[[], Matrix]) -> None:
        self.done = threading.Event()
        self._call = call
        self._value: Matrix | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            self._error = error
        finally:
            self.done.set()

    def result(self) -> Matrix:
        if self._error is not None:
            raise self._error
        assert self._value is not None
        return self._value
