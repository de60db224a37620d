"""Never embed the same text twice: stored vectors for documents, remembered ones for queries.

Where vectors are kept is the store's duty; it is known here by what it must offer (`VectorCache`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from memoriter.errors import EmbeddingError
from memoriter.records import Identity, Progress

if TYPE_CHECKING:
    from memoriter.embedding.batches import Batched
    from memoriter.embedding.jobs import Jobs
    from memoriter.embedding.protocol import Embedder, Matrix

QUERIES = 128  #: remembered query vectors; 384 dimensions take 1.5 KB each


class VectorCache(Protocol):
    """What a store of vectors offers: by embedder and by hash of the text."""

    def known(self, identity: Identity, hashes: Iterable[str]) -> set[str]: ...

    def load(self, identity: Identity, hashes: Iterable[str]) -> dict[str, Matrix]: ...

    def save(self, identity: Identity, vectors: Mapping[str, Matrix]) -> None: ...


@dataclass(frozen=True, slots=True)
class Ensured:
    """What became of the texts whose vectors were wanted."""

    embedded: int = 0  #: computed now, and saved
    cached: int = 0  #: known before
    missing: int = 0  #: without a vector still
    error: str | None = None  #: why, in one sentence


class Cached:
    """An embedder that saves what it computes and computes only what is not saved."""

    def __init__(
        self,
        embedder: Batched,
        cache: VectorCache,
        *,
        hasty: Batched | None = None,
        recipe: str = "",
        jobs: Jobs | None = None,
    ) -> None:
        self.embedder = embedder
        self.hasty = hasty or embedder  #: for work that somebody waits for
        self.cache = cache
        self.recipe = recipe  #: what makes the same embedder again, kept beside its vectors
        self.jobs = jobs

    @property
    def identity(self) -> Identity:
        """Whose vectors these are."""
        return self.embedder.identity

    def ensure(
        self,
        items: Mapping[str, str],
        progress: Callable[[Progress], None] | None = None,
        *,
        by_job: bool = False,
        hasty: bool = False,
    ) -> Ensured:
        """See to it that the cache has the vectors of these texts, keyed by hash.

        Each batch is saved as soon as it is there, so a kill loses at most the batches under way. The first
        failure of the embedder ends the work and is told in the answer; what was computed is kept. With ``by_job``
        the provider's batch API is used, where it has one; what that does not bring, plain calls do.
        """
        known = self.cache.known(self.identity, items)
        wanted = [digest for digest in items if digest not in known]
        cached, saved = len(items) - len(wanted), 0

        def keep(vectors: Mapping[str, Matrix]) -> None:
            nonlocal saved
            self.cache.save(self.identity, vectors)
            saved += len(vectors)
            if progress:
                progress(Progress("embed", cached + saved, len(items)))

        if by_job and self.jobs and wanted:
            self.jobs.run({digest: items[digest] for digest in wanted}, keep, progress)
            known = self.cache.known(self.identity, wanted)
        left = [digest for digest in wanted if digest not in known]
        error = self._compute(self.hasty if hasty else self.embedder, [(d, items[d]) for d in left], keep)
        return Ensured(embedded=saved, cached=cached, missing=max(0, len(wanted) - saved), error=error)

    @staticmethod
    def _compute(
        embedder: Batched,
        items: Sequence[tuple[str, str]],
        keep: Callable[[Mapping[str, Matrix]], None],
    ) -> str | None:
        def on_batch(indices: Sequence[int], vectors: Matrix) -> None:
            keep({items[i][0]: row for i, row in zip(indices, vectors, strict=True)})

        try:
            embedder.embed([text for _, text in items], on_batch=on_batch, collect=False)
        except EmbeddingError as failure:
            return str(failure)
        return None

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of documents, computed."""
        return self.embedder.embed(texts)

    def embed_query(self, text: str) -> Matrix:
        """The vector of a query."""
        return self.embedder.embed_query(text)

    def close(self) -> None:
        """Give back what the embedder holds."""
        self.embedder.close()


class RememberedQueries:
    """An embedder that remembers the vectors of recent queries; agents ask the same thing again and again."""

    def __init__(self, embedder: Embedder, size: int = QUERIES) -> None:
        self.embedder = embedder
        self._size = size
        self._vectors: OrderedDict[str, Matrix] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def identity(self) -> Identity:
        """Whose vectors these are."""
        return self.embedder.identity

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of documents."""
        return self.embedder.embed(texts)

    def embed_query(self, text: str) -> Matrix:
        """The vector of a query, read-only because the next asker gets the same one."""
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
        """Give back what the embedder holds."""
        self._vectors.clear()
        self.embedder.close()
