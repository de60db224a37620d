"""Vectors of the chunks in an index.

A sync writes chunks and keywords first. `ChunkVectors` then embeds the chunks that have no vector, a few at a time.
Each batch is committed, so the work can stop after any of them, and the next run continues there. When the settings
name another embedder, the old vectors answer until all new ones are in the cache. All rows are then switched together.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import wait
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.background import Rejected, Task, Workers, check_cancelled, is_cancelled
from memoriter.errors import Cancelled, LockTimeout, MemoriterError, StoreError
from memoriter.records import Chunk, Progress, ProgressCallback
from memoriter.sentences import sentence

if TYPE_CHECKING:
    from memoriter.embedding.cache import Cached
    from memoriter.store import Index

log = logs.get("index")

#: Chunks that are embedded and committed together: enough for full batches, few enough for memory.
GROUP_CHUNKS = 256
#: Chunks of one job of a batch API.
JOB_CHUNKS = 10_000
#: With a time limit, the second batch has this many chunks for each second. The next ones fit into the time.
FIRST_CHUNKS = 4
#: Chunks that are read to estimate how long the others take.
SAMPLED_CHUNKS = 100
#: Seconds between two attempts after a failure, so that not every search calls a provider that is down.
RETRY_S = 60.0
#: How long closing waits for the batch that is being embedded, in seconds.
CLOSE_S = 10.0


@dataclass(frozen=True, slots=True)
class Filled:
    """The result of one run."""

    embedded: int = 0
    cached: int = 0
    #: Why the embedder failed.
    error: str | None = None
    #: Which fallback is used, and why.
    instead: str | None = None
    #: All rows were switched to another embedder.
    switched: bool = False
    #: How many seconds the chunks without a vector probably take; None if that is unknown.
    remaining_s: float | None = None

    def plus(self, other: Filled) -> Filled:
        """Return the sum of two runs, with the outcome of the second."""
        return replace(other, embedded=self.embedded + other.embedded, cached=self.cached + other.cached)

    def missing(self, pending: int, total: int) -> str | None:
        """Return a sentence that says how many chunks have no vector, and why; None if all have one."""
        if not pending:
            return self.error
        if self.error:
            return sentence("vectors.failed", missing=pending, total=total, why=self.error)
        return sentence("vectors.continue", missing=pending, total=total)


class Pace:
    """The size of the next batch. Without a time limit all are equal; with one, they fit into the time that is left.

    The first batch may load a model. It is one chunk, and its time does not count.
    """

    def __init__(self, limit_s: float | None, full: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._full = full
        self._limit_s = limit_s
        self._size = 0
        self._ends: float | None = None
        self._started = 0.0

    def next(self) -> int:
        """Return how many chunks to embed next; 0 when the time is up."""
        if self._limit_s is None:
            return self._full
        now, before = self._clock(), self._size
        if self._ends is None and not before:
            self._size = 1 if self._limit_s else 0
        elif self._ends is None:
            self._ends = now + self._limit_s
            self._size = min(max(1, round(FIRST_CHUNKS * self._limit_s)), self._full)
        else:
            each_s = max(1e-6, (now - self._started) / before)
            self._size = max(0, min(self._full, 2 * before, int((self._ends - now) / each_s)))
        self._started = now
        return self._size


class ChunkVectors:
    """Computes the vectors of one index."""

    def __init__(self, index: Index, preferred: Cached | None, fallback: Cached | None = None) -> None:
        self.index = index
        self.preferred = preferred
        self.fallback = fallback
        #: Why the last run left vectors out; None after a run without a failure.
        self.error: str | None = None
        self._clock = time.monotonic

    @property
    def current(self) -> Cached | None:
        """The embedder whose vectors the rows have, or None if it is neither the preferred nor the fallback."""
        model = self.index.meta("model")
        if not model:
            return self.preferred
        embedders = (self.preferred, self.fallback)
        return next((item for item in embedders if item and str(item.identity) == model), None)

    def fill(
        self,
        *,
        by_job: bool = False,
        wait_s: float = 600.0,
        progress: ProgressCallback | None = None,
        stop: Callable[[], None] | None = None,
    ) -> Filled:
        """Compute all missing vectors, with the fallback if the preferred embedder fails.

        ``by_job`` uses the batch API of the provider, if it has one. ``stop`` is called between batches and may raise.
        If another process is computing vectors, this waits for it up to ``wait_s`` and then leaves the work to it.
        """
        if self.preferred is None:
            return Filled()
        run = _Run(self.index, stop or (lambda: None), progress or (lambda _: None), by_job=by_job)
        with ExitStack() as stack:
            ends = time.monotonic() + wait_s
            while not self._lock(stack, min(1.0, wait_s)):
                run.watch(self.preferred)
                if time.monotonic() >= ends:
                    return Filled()
            filled = run.complete(self.preferred)
            if filled.error and self.fallback is not None:
                filled = filled.plus(self._with_fallback(run, self.fallback, filled.error))
            elif not filled.error:
                self.index.set_meta(instead="")
        self.error = filled.error
        return filled

    def fill_some(
        self, limit_s: float, *, paths: Collection[str] = (), paths_s: float = 0.0, estimate: bool = False
    ) -> Filled:
        """Compute missing vectors for about ``limit_s`` seconds, with the embedder whose vectors the rows have.

        Before, the documents in ``paths`` have ``paths_s``. While another thread or process computes vectors, no
        others are computed. ``estimate`` how long the rest takes.
        """
        embedder = self.current
        if embedder is None or not (limit_s or paths) or not self.index.count_without(str(embedder.identity)):
            return Filled()
        with ExitStack() as stack:
            run = _Run(self.index, lambda: None, lambda _: None, pace=self._pace(paths_s))
            filled = run.add(embedder, paths) if paths else Filled()
            if limit_s and not filled.error and not run.is_late and self._lock(stack, 0.0):
                run.pace = self._pace(limit_s)
                filled = filled.plus(run.add(embedder))
                filled = replace(filled, remaining_s=run.remaining_s(embedder) if estimate else None)
            if filled.error and self.fallback is not None and not self.index.meta("model"):
                filled = filled.plus(self._with_fallback(run, self.fallback, filled.error))
        self.error = filled.error
        return filled

    def _pace(self, limit_s: float) -> Pace:
        return Pace(limit_s, GROUP_CHUNKS, self._clock)

    def _with_fallback(self, run: _Run, fallback: Cached, why: str) -> Filled:
        filled = run.complete(fallback)
        if filled.error:
            return replace(filled, error=f"{why}. The fallback fails too: {filled.error}")
        instead = f"The vectors of the fallback ({fallback.identity}) are used: {why}"
        self.index.set_meta(instead=instead)
        return replace(filled, instead=instead)

    def _lock(self, stack: ExitStack, wait_s: float) -> bool:
        """Return whether this thread is now the only one that computes vectors."""
        try:
            stack.enter_context(self.index.lock("vectors", wait_s))
        except (LockTimeout, StoreError):
            return False
        return True


class _Run:
    """One run over the rows without a vector."""

    def __init__(
        self,
        index: Index,
        stop: Callable[[], None],
        progress: ProgressCallback,
        *,
        by_job: bool = False,
        pace: Pace | None = None,
    ) -> None:
        self._index = index
        self._stop = stop
        self._progress = progress
        self._by_job = by_job
        self.pace = pace
        #: Whether the time was too short for all rows.
        self.is_late = False
        #: Bytes of text that were embedded after the first batch, and the seconds that this took.
        self._embedded: tuple[int, float] | None = None

    def complete(self, embedder: Cached) -> Filled:
        """Give every row a vector of this embedder."""
        if self._index.meta("model") not in (None, "", str(embedder.identity)):
            return self._switch(embedder)
        return self.add(embedder)

    def watch(self, embedder: Cached) -> None:
        """Report how far another process is."""
        self._stop()
        total = self._index.total()
        self._progress(Progress("embed", total - self._index.count_without(str(embedder.identity)), total))

    def add(self, embedder: Cached, paths: Collection[str] | None = None) -> Filled:
        """Compute the missing vectors of some documents, or of all. Commit after each batch."""
        rows = self._index.rows_without(str(embedder.identity), paths)
        filled = Filled()
        for group in self._groups(rows, embedder):
            filled = filled.plus(self._ensure(embedder, group, filled, len(rows)))
            self._index.assign(group, embedder.identity)
            if filled.error:
                return filled
        self._mark(embedder)
        return filled

    def _switch(self, embedder: Cached) -> Filled:
        """Compute the vectors of all chunks, then switch all rows in one transaction. A failure changes no row."""
        rows = self._index.rows_without(str(embedder.identity))
        filled = Filled()
        for group in self._groups(rows, embedder):
            filled = filled.plus(self._ensure(embedder, group, filled, len(rows)))
            if filled.error:
                return filled
        with self._index.transaction():
            # Read again: files may have changed while the vectors were computed.
            rows = self._index.rows_without(str(embedder.identity))
            for start in range(0, len(rows), GROUP_CHUNKS):
                self._index.assign(rows[start : start + GROUP_CHUNKS], embedder.identity)
            self._mark(embedder)
        self._index.refresh(embedder.identity)
        return replace(filled, switched=True)

    def _groups(self, rows: Sequence[int], embedder: Cached) -> Iterator[Sequence[int]]:
        pace = self.pace or Pace(None, JOB_CHUNKS if self._by_job and embedder.jobs else GROUP_CHUNKS)
        start = 0
        while start < len(rows) and (size := pace.next()):
            yield rows[start : start + size]
            start += size
        self.is_late = start < len(rows)

    def _ensure(self, embedder: Cached, rows: Sequence[int], before: Filled, total: int) -> Filled:
        """Put the vectors of these rows into the cache."""
        chunks = [stored.chunk for stored in self._index.chunks(rows).values()]
        done, started = before.embedded + before.cached, time.monotonic()

        def report(step: Progress) -> None:
            self._stop()
            self._progress(step if step.stage != "embed" else Progress("embed", done + step.done, total))

        result = embedder.ensure(
            {chunk.hash: chunk.embedding_text for chunk in chunks},
            report,
            by_job=self._by_job,
            retry=self.pace is None,
        )
        size, seconds = self._embedded or (0, 0.0)
        is_first = self._embedded is None
        took_s = time.monotonic() - started
        self._embedded = (0, 0.0) if is_first else (size + _bytes_of(chunks), seconds + took_s)
        return Filled(result.embedded, result.cached, result.error)

    def remaining_s(self, embedder: Cached) -> float | None:
        """Estimate how long the chunks take that have no vector yet, by the time that the others took."""
        size, seconds = self._embedded or (0, 0.0)
        rows = self._index.rows_without(str(embedder.identity))
        sample = rows[:: -(-len(rows) // SAMPLED_CHUNKS) or 1]
        known = [stored.chunk for stored in self._index.chunks(sample).values()]
        return _bytes_of(known) / len(known) * len(rows) * seconds / size if size and known else None

    def _mark(self, embedder: Cached) -> None:
        """Record whose vectors the rows have now."""
        model, recipe = str(embedder.identity), embedder.recipe
        if (self._index.meta("model"), self._index.meta("recipe")) != (model, recipe):
            self._index.set_meta(model=model, recipe=recipe)


def _bytes_of(chunks: Sequence[Chunk]) -> int:
    return sum(len(chunk.embedding_text.encode("utf-8", "replace")) for chunk in chunks)


class BackgroundWork:
    """Runs one task in a background thread: not twice at the same time, and not again right after a failure."""

    def __init__(self, work: Callable[[Callable[[], None]], bool]) -> None:
        #: Gets a function to call between batches, which raises when the work must stop. Returns whether it succeeded.
        self._work = work
        self._lock = threading.Lock()
        self._workers = Workers("memoriter-embedding", keep=True)
        self._task: Task[None] | None = None
        self._failed_at: float | None = None

    def start(self) -> None:
        """Start the work, unless it is running or failed less than `RETRY_S` seconds ago."""
        with self._lock:
            too_soon = self._failed_at is not None and time.monotonic() - self._failed_at < RETRY_S
            if self.running or too_soon:
                return
            with suppress(Rejected):  # the memory is being closed
                self._task = self._workers.submit(self._run)

    @property
    def running(self) -> bool:
        """Whether the work has started and not ended."""
        return self._task is not None and not self._task.done()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the work has ended."""
        if self._task is not None:
            wait([self._task], timeout_s)

    def close(self) -> None:
        """Stop after the current batch."""
        self._workers.close(CLOSE_S, cancel=True)

    def _run(self) -> None:
        succeeded = False
        try:
            succeeded = self._work(check_cancelled)
        except Cancelled:
            pass
        except MemoriterError as error:
            log.info("cannot compute vectors in the background: %s", error)
        except Exception:
            if not is_cancelled():  # otherwise the index was closed during the work
                log.exception("computing vectors in the background failed")
        finally:
            self._failed_at = None if succeeded else time.monotonic()
