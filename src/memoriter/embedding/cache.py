"""Embed documents in batches, and never the same text twice: its vector is stored."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeAlias

from memoriter.embedding.guarded import Guarded
from memoriter.errors import EmbeddingError
from memoriter.records import Identity, Progress
from memoriter.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from memoriter.embedding.protocol import CallLimits, Embedder, JobRunner, Matrix

    OnBatch: TypeAlias = Callable[[Sequence[int], Matrix], None]


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
        jobs: JobRunner | None = None,
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
        return Ensured(embedded=saved, cached=cached, error=error)

    @staticmethod
    def _compute(
        embedder: Batched, items: Sequence[tuple[str, str]], save: Callable[[Mapping[str, Matrix]], None]
    ) -> str | None:
        def on_batch(indices: Sequence[int], vectors: Matrix) -> None:
            save({items[i][0]: row for i, row in zip(indices, vectors, strict=True)})

        try:
            embedder.embed([text for _, text in items], on_batch=on_batch, collect=False)
        except EmbeddingError as failure:
            return str(failure)
        return None


#: Texts in one call. Larger batches are not faster with any provider, and lose more work when one fails.
MAX_ITEMS = 64
#: Estimated tokens in one call: within every provider's limit, and some seconds of work for the local model.
MAX_TOKENS = 8192
#: Bytes of text in one call. Scripts whose tokens are underestimated stay within the providers' body limits.
MAX_BYTES = 1 << 20


def budgets(limits: CallLimits | None = None) -> dict[str, int]:
    """Return the size of a batch, within a provider's limits."""
    own = {"items": MAX_ITEMS, "tokens": MAX_TOKENS, "bytes": MAX_BYTES}
    return {name: min(size, getattr(limits, name)) for name, size in own.items()} if limits else own


class Batched:
    """An embedder that accepts any number of texts in one call."""

    def __init__(
        self,
        embedder: Embedder,
        *,
        items: int = MAX_ITEMS,
        tokens: int = MAX_TOKENS,
        bytes: int = MAX_BYTES,  # noqa: A002 - named like the other two budgets
        concurrency: int = 4,
    ) -> None:
        self.embedder = Guarded(embedder)
        self._budgets = {"items": items, "tokens": tokens, "bytes": bytes}
        self._concurrency = concurrency

    @cached_property
    def identity(self) -> Identity:
        """The identity of the wrapped embedder."""
        return self.embedder.identity

    def embed(self, texts: Sequence[str], *, on_batch: OnBatch | None = None, collect: bool = True) -> Matrix:
        """Return the vectors of the texts, in order. `on_batch` gets the indices and rows of each finished batch.

        `on_batch` runs in the calling thread. With `collect=False` the result is empty, for work that is too large to
        keep in memory.
        """
        import numpy as np

        dimensions = self.identity.dimensions
        result = np.zeros((len(texts) if collect else 0, dimensions), dtype=np.float32)

        def collect_batch(indices: range, rows: Matrix) -> None:
            if collect:
                result[indices.start : indices.stop] = rows
            if on_batch:
                on_batch(indices, rows)

        self._work(texts, collect_batch)
        return result

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a query."""
        return self.embedder.embed_query(text)

    def close(self) -> None:
        """Close the wrapped embedder."""
        self.embedder.close()

    def _work(self, texts: Sequence[str], on_done: Callable[[range, Matrix], None]) -> None:
        batches = split(texts, **self._budgets)
        failure: BaseException | None = None
        pool = ThreadPoolExecutor(self._concurrency, thread_name_prefix="memoriter-embed")
        try:

            def start(count: int) -> dict[Future[Matrix], range]:
                return {
                    pool.submit(self.embedder.embed, [texts[i] for i in run]): run
                    for run in islice(batches, count)
                }

            running = start(self._concurrency)
            while running:
                done = wait(running, return_when=FIRST_COMPLETED).done
                for future in done:
                    indices = running.pop(future)
                    if error := future.exception():
                        failure = failure or error
                    else:
                        on_done(indices, future.result())
                # A batch starts only after another has succeeded, so none starts after a failure.
                running |= start(len(done)) if failure is None else {}
        except KeyboardInterrupt:
            # A person does not wait for the batches that are running.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        finally:
            pool.shutdown(wait=not isinstance(sys.exception(), KeyboardInterrupt))
        if failure:
            raise failure


def split(
    texts: Sequence[str],
    *,
    items: int,
    tokens: int,
    bytes: int = MAX_BYTES,  # noqa: A002
) -> Iterator[range]:
    """Yield ranges of texts within all budgets. A text that exceeds them is a batch of its own."""
    start, spent, size = 0, 0, 0
    for index, text in enumerate(texts):
        cost, length = estimate_tokens(text), len(text.encode("utf-8", "replace"))
        full = index - start >= items or spent + cost > tokens or size + length > bytes
        if index > start and full:
            yield range(start, index)
            start, spent, size = index, 0, 0
        spent, size = spent + cost, size + length
    if start < len(texts):
        yield range(start, len(texts))
