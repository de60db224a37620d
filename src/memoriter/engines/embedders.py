"""Selection of the embedder that answers a search while the vectors of another one are computed in the background.

The index records whose vectors its rows have. After a change of settings the former embedder keeps answering until
the vectors of the new one are complete.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.background import Rejected, Task, Workers, check_cancelled, is_cancelled
from memoriter.errors import Cancelled, MemoriterError

if TYPE_CHECKING:
    from memoriter.embedding import Choice, Embedder
    from memoriter.store import Index

    Remake = Callable[[str], Choice | None]

log = logs.get("engines")

#: Seconds between two attempts, so that not every search calls a provider that is down.
RETRY_S = 60.0

#: How long closing waits for the batch that is being embedded, in seconds.
CLOSE_S = 10.0


@dataclass(frozen=True, slots=True)
class ActiveEmbedder:
    """The embedder whose vectors answer a search, and what the answer says about it."""

    embedder: Embedder | None
    provider: str
    model: str
    note: str | None = None
    #: Whether this is another embedder than the settings name.
    fallback: bool = False


class EmbedderSelector:
    """Selects the embedder that matches the vectors in the index."""

    def __init__(self, index: Index, choice: Choice, remake: Remake | None = None) -> None:
        self._index = index
        self._choice = choice
        self._remake = remake or (lambda _: None)
        #: The former embedder, with the model of the rows for which it was opened.
        self._former: tuple[str, Choice | None] = ("", None)

    def active(self) -> ActiveEmbedder:
        """Return the embedder whose vectors the rows have now."""
        choice = self._choice
        if choice.embedder is None:
            return ActiveEmbedder(
                None, choice.provider, choice.model, choice.reason if choice.missing else None
            )
        model = self._index.meta("model")
        if not model or model == str(choice.embedder.identity):
            note = f"The embedder is {choice.reason}." if choice.instead else None
            is_fallback = choice.instead is not None
            return ActiveEmbedder(choice.embedder, choice.provider, choice.model, note, is_fallback)
        fallback = choice.fallback
        if fallback and fallback.embedder and str(fallback.embedder.identity) == model:
            note = self._index.meta("instead")
            return ActiveEmbedder(fallback.embedder, fallback.provider, fallback.model, note, fallback=True)
        return self._active_former(model, str(choice.embedder.identity))

    @property
    def outdated(self) -> bool:
        """Whether rows have vectors of another embedder than the settings name, or none."""
        embedder = self._choice.embedder
        if embedder is None:
            return False
        model = self._index.meta("model")
        has_other_model = bool(model) and model != str(embedder.identity)
        return has_other_model or (self._index.meta("pending") or "0") != "0"

    def close(self) -> None:
        """Close the former embedder, if one was opened."""
        former = self._former[1]
        if former and former.embedder:
            former.embedder.close()

    def _active_former(self, model: str, configured: str) -> ActiveEmbedder:
        if self._former[0] != model:
            choice = self._remake(self._index.meta("recipe") or "")
            is_usable = choice and choice.embedder and str(choice.embedder.identity) == model
            self._former = (model, choice if is_usable else None)
        former = self._former[1]
        if former and former.embedder:
            note = f"The embedder has changed: the vectors of {model} answer until those of {configured} are complete."
            return ActiveEmbedder(former.embedder, former.provider, former.model, note)
        note = (
            f"Keyword search only: the index has vectors of {model}, whose embedder is no longer available. "
            f"Run `memoriter index` to compute those of {configured}."
        )
        return ActiveEmbedder(None, self._choice.provider, self._choice.model, note)


class BackgroundEmbedding:
    """Runs a sync in the background to compute missing or outdated vectors while searches continue."""

    def __init__(
        self,
        sync: Callable[[Callable[[], None]], object],
        *,
        retry_s: float = RETRY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sync = sync
        self._retry_s = retry_s
        self._clock = clock
        self._lock = threading.Lock()
        self._workers = Workers("memoriter-embedding", keep=True)
        self._task: Task[None] | None = None
        self._ended: float | None = None

    def start(self) -> None:
        """Start the sync, unless it is running or ended less than ``retry_s`` seconds ago."""
        with self._lock:
            running = self._task is not None and not self._task.done()
            too_soon = self._ended is not None and self._clock() - self._ended < self._retry_s
            if running or too_soon:
                return
            with suppress(Rejected):  # the memory is being closed
                self._task = self._workers.submit(self._run)

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the sync has ended."""
        if self._task is not None:
            wait([self._task], timeout_s)

    def close(self) -> None:
        """Stop after the current batch."""
        self._workers.close(CLOSE_S, cancel=True)

    def _run(self) -> None:
        try:
            self._sync(check_cancelled)
        except Cancelled:
            pass
        except MemoriterError as error:
            log.info("cannot compute vectors in the background: %s", error)
        except Exception:
            if not is_cancelled():  # otherwise the index was closed during the sync
                log.exception("computing vectors in the background failed")
        finally:
            self._ended = self._clock()
