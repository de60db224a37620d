"""Many texts in batches of bounded size, a few batches at a time.

A batch is bounded by items, by estimated tokens and by bytes. The first failure stops the workers: no further batch
begins, and what is done has been handed over. Retries are not its duty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from memoriter.embedding.checked import Checked
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
    """An embedder that may be given any number of texts at once."""

    def __init__(
        self,
        embedder: Embedder,
        *,
        items: int = MAX_ITEMS,
        tokens: int = MAX_TOKENS,
        bytes: int = MAX_BYTES,  # noqa: A002 - a budget beside two others
        concurrency: int = 4,
    ) -> None:
        self.embedder = Checked(embedder)
        self._budgets = {"items": items, "tokens": tokens, "bytes": bytes}
        self._concurrency = concurrency

    @property
    def identity(self) -> Identity:
        """Whose vectors these are."""
        return self.embedder.identity

    def embed(self, texts: Sequence[str], *, on_batch: OnBatch | None = None, collect: bool = True) -> Matrix:
        """Vectors of the texts, in their order; `on_batch` gets each batch's indices and rows as it is done.

        `on_batch` runs in the calling thread. With `collect=False` nothing is gathered and the result is
        empty: for work so large that only the callback should hold it.
        """
        import numpy as np

        dimensions = self.identity.dimensions
        result = np.zeros((len(texts) if collect else 0, dimensions), dtype=np.float32)

        def take(indices: range, rows: Matrix) -> None:
            if collect:
                result[indices.start : indices.stop] = rows
            if on_batch:
                on_batch(indices, rows)

        self._work(texts, take)
        return result

    def embed_query(self, text: str) -> Matrix:
        """The vector of a query."""
        return self.embedder.embed_query(text)

    def close(self) -> None:
        """Give back what the embedder holds."""
        self.embedder.close()

    def _work(self, texts: Sequence[str], take: Callable[[range, Matrix], None]) -> None:
        batches = split(texts, **self._budgets)
        failure: BaseException | None = None
        with ThreadPoolExecutor(self._concurrency, thread_name_prefix="memoriter-embed") as pool:

            def begin(count: int) -> dict[Future[Matrix], range]:
                return {
                    pool.submit(self.embedder.embed, [texts[i] for i in run]): run
                    for run in islice(batches, count)
                }

            running = begin(self._concurrency)
            while running:
                done = wait(running, return_when=FIRST_COMPLETED).done
                for future in done:
                    indices = running.pop(future)
                    if error := future.exception():
                        failure = failure or error
                    else:
                        take(indices, future.result())
                # A batch begins only when another has ended well: after a failure no further one does.
                running |= begin(len(done)) if failure is None else {}
        if failure:
            raise failure


def split(
    texts: Sequence[str],
    *,
    items: int,
    tokens: int,
    bytes: int = MAX_BYTES,  # noqa: A002
) -> Iterator[range]:
    """Runs of neighbouring texts within all budgets; a text that alone passes them is a batch of its own."""
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
