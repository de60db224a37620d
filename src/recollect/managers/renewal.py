"""Vectors that are missing, or of a former embedder, are made in the background.

One thread at a time, started by whoever notices; it stops between batches when the manager closes, and the next one
goes on from there. When to look is `builtin`'s duty, what to do is `indexing`'s.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from recollect import logs
from recollect.errors import Cancelled, RecollectError

log = logs.get("managers")

REST_S = 60.0  #: between two attempts, so that a provider that is down is not asked with every search
CLOSE_S = 10.0  #: a batch that is under way is waited for so long


class Renewal:
    """A sync that runs beside the searches."""

    def __init__(
        self,
        sync: Callable[[Callable[[], None]], object],
        *,
        rest_s: float = REST_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sync = sync
        self._rest_s = rest_s
        self._clock = clock
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._ended: float | None = None

    @property
    def running(self) -> bool:
        """Whether vectors are being made now."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def begin(self) -> None:
        """Start, unless it runs already or has just ended."""
        with self._lock:
            rests = self._ended is not None and self._clock() - self._ended < self._rest_s
            if self.running or rests or self._closing.is_set():
                return
            self._thread = threading.Thread(target=self._run, name="recollect-renewal", daemon=True)
            self._thread.start()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until it has ended."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout_s)

    def close(self) -> None:
        """Stop after the batch that is under way."""
        self._closing.set()
        self.wait(CLOSE_S)

    def _run(self) -> None:
        try:
            self._sync(self._check)
        except Cancelled:
            pass
        except RecollectError as error:
            log.info("vectors are not made now: %s", error)
        except Exception:
            if not self._closing.is_set():  # closed under its feet: the next process goes on
                log.exception("making vectors in the background failed")
        finally:
            self._ended = self._clock()

    def _check(self) -> None:
        if self._closing.is_set():
            raise Cancelled("The memory is being closed.")
