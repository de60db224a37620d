"""Never embed the same text twice: stored vectors for documents, remembered vectors for queries."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from memoriter.errors import EmbeddingError
from memoriter.records import Identity, Progress

if TYPE_CHECKING:
    from memoriter.embedding.batches import Batched
    from memoriter.embedding.jobs import Jobs
    from memoriter.embedding.protocol import Embedder, Matrix

#: Remembered query vectors. A vector of 384 dimensions takes 1.5 KB.
MAX_QUERIES = 128


class VectorCache(Protocol):
    """A store of vectors, by embedder and hash of the text."""

    def known(self, identity: Identity, hashes: Iterable[str]) -> set[str]: ...

    def load(self, identity: Identity, hashes: Iterable[str]) -> dict[str, Matrix]: ...

    def save(self, identity: Identity, vectors: Mapping[str, Matrix]) -> None: ...


@dataclass(frozen=True, slots=True)
class Ensured:
    """The result of `Cached.ensure`."""

    #: Computed now, and saved.
    embedded: int = 0
    #: Already in the cache.
    cached: int = 0
    #: Still without a vector.
    missing: int = 0
    #: The reason why vectors are missing.
    error: str | None = None


class Cached:
    """An embedder that saves its vectors and computes only those that are missing."""

    def __init__(
        self,
        embedder: Batched,
        cache: VectorCache,
        *,
        without_retry: Batched | None = None,
        recipe: str = "",
        jobs: Jobs | None = None,
    ) -> None:
        self.embedder = embedder
        #: For documents that a search waits for.
        self.without_retry = without_retry or embedder
        self.cache = cache
        #: The recipe that makes the same embedder again. The index stores it with the vectors.
        self.recipe = recipe
        self.jobs = jobs

    @cached_property
    def identity(self) -> Identity:
        """The identity of the wrapped embedder."""
        return self.embedder.identity

    def ensure(
        self,
        items: Mapping[str, str],
        progress: Callable[[Progress], None] | None = None,
        *,
        by_job: bool = False,
        retry: bool = True,
    ) -> Ensured:
        """Compute and save the vectors of these texts, keyed by hash, unless the cache has them.

        Each batch is saved immediately, so a killed process loses at most the running batches. The first failure of the
        embedder ends the work and is in the result; finished vectors are kept. With ``by_job`` the provider's batch API
        is used if it has one, and plain calls embed what it leaves out.
        """
        known = self.cache.known(self.identity, items)
        unknown = [digest for digest in items if digest not in known]
        cached, saved = len(items) - len(unknown), 0

        def save(vectors: Mapping[str, Matrix]) -> None:
            nonlocal saved
            self.cache.save(self.identity, vectors)
            saved += len(vectors)
            if progress:
                progress(Progress("embed", cached + saved, len(items)))

        if by_job and self.jobs and unknown:
            self.jobs.run({digest: items[digest] for digest in unknown}, save, progress)
            known = self.cache.known(self.identity, unknown)
        left = [(digest, items[digest]) for digest in unknown if digest not in known]
        error = self._compute(self.embedder if retry else self.without_retry, left, save)
        return Ensured(embedded=saved, cached=cached, missing=max(0, len(unknown) - saved), error=error)

    @staticmethod
    def _compute(
        embedder: Batched,
        items: Sequence[tuple[str, str]],
        save: Callable[[Mapping[str, Matrix]], None],
    ) -> str | None:
        def on_batch(indices: Sequence[int], vectors: Matrix) -> None:
            save({items[i][0]: row for i, row in zip(indices, vectors, strict=True)})

        try:
            embedder.embed([text for _, text in items], on_batch=on_batch, collect=False)
        except EmbeddingError as failure:
            return str(failure)
        return None

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Compute the vectors of documents."""
        return self.embedder.embed(texts)

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a query."""
        return self.embedder.embed_query(text)

    def close(self) -> None:
        """Close the wrapped embedder."""
        self.embedder.close()


class RememberedQueries:
    """An embedder that remembers the vectors of recent queries, because agents often repeat a query."""

    def __init__(self, embedder: Embedder, size: int = MAX_QUERIES) -> None:
        self.embedder = embedder
        self._size = size
        self._vectors: OrderedDict[str, Matrix] = OrderedDict()
        self._lock = threading.Lock()

    @cached_property
    def identity(self) -> Identity:
        """The identity of the wrapped embedder."""
        return self.embedder.identity

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of documents."""
        return self.embedder.embed(texts)

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a query. It is read-only, because later calls get the same array."""
        with self._lock:
            if text in self._vectors:
                self._vectors.move_to_end(text)
                return self._vectors[text]
        vector = self.embedder.embed_query(text)
        vector.setflags(write=False)
        with self._lock:
            self._vectors[text] = vector
            while len(self._vectors) > self._size:
                self._vectors.popitem(last=False)
        return vector

    def close(self) -> None:
        """Close the wrapped embedder."""
        self._vectors.clear()
        self.embedder.close()
