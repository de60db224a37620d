"""Embed many texts in batches of limited size, a few batches at a time.

A batch is limited in items, estimated tokens and bytes. The first failure stops the workers. Finished batches have been
passed on by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from memoriter.embedding.guarded import Guarded
from memoriter.records import Identity
from memoriter.text.measure import estimate_tokens

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Embedder, Matrix
    from memoriter.embedding.remote import Limits

    OnBatch: TypeAlias = Callable[[Sequence[int], Matrix], None]


#: Texts in one call. Larger batches are not faster with any provider, and lose more work when one fails.
MAX_ITEMS = 64
#: Estimated tokens in one call: within every provider's limit, and some seconds of work for the local model.
MAX_TOKENS = 8192
#: Bytes of text in one call. Scripts whose tokens are underestimated stay within the providers' body limits.
MAX_BYTES = 1 << 20


def budgets(limits: Limits | None = None) -> dict[str, int]:
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
        with ThreadPoolExecutor(self._concurrency, thread_name_prefix="memoriter-embed") as pool:

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
