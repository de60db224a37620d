"""A pair of engines: the primary answers until it fails, then the builtin engine does until the primary recovers.

The builtin engine is created only when it is needed. A failed primary is closed. After a cooldown the next search
tries a new one, so that the pair recovers without a restart. A cancelled call is not a failure. `EnginePool` shares
pairs between the callers of one process.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from memoriter import logs
from memoriter.engines import Engine
from memoriter.errors import Cancelled, EngineBusy, EngineError, MemoriterError
from memoriter.records import Answer, Excerpt, Query, Status, SyncReport

log = logs.get("engines")

#: Not failures of the primary: the caller stopped waiting.
CANCELLATIONS = (Cancelled, concurrent.futures.CancelledError)


@dataclass(frozen=True, slots=True)
class Cooldown:
    """A pause after failures, in seconds. It doubles after each failure in a row."""

    first_s: float = 60.0
    max_s: float = 600.0

    def after(self, failures: int) -> float:
        """Return the pause after this many failures in a row."""
        return min(self.first_s * 2.0 ** min(failures - 1, 30), self.max_s) if failures else 0.0


class FallbackEngine(Engine):
    """Sends each call to the primary while it works, and to the builtin engine otherwise."""

    #: The primary, for people.
    name = "qmd"

    def __init__(
        self,
        create_primary: Callable[[], Engine],
        create_builtin: Callable[[], Engine],
        *,
        cooldown: Cooldown | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.last_error: str | None = None
        #: How often the primary has failed and was replaced.
        self.switches = 0
        self._create_primary = create_primary
        self._create_builtin = create_builtin
        self._cooldown = cooldown or Cooldown()
        self._clock = clock
        self._lock = threading.RLock()
        #: A separate lock, since opening an index takes a while.
        self._creating = threading.Lock()
        self._primary: Engine | None = None
        self._builtin: Engine | None = None
        self._failures = 0
        self._retry_at = float("-inf")
        self._retrying = False
        self._started = False
        self._holders = 1
        self._closed = False

    # ---- holders ----------------------------------------------------------------------------------------------

    def open_primary(self) -> None:
        """Create the primary now. Raises what its creation raises."""
        self._primary = self._create_primary()

    def open_builtin(self, error: str, retry_at: float) -> None:
        """Start with the builtin engine, because the primary has failed before. Raises what its creation raises."""
        self.last_error, self._retry_at, self._failures = error, retry_at, 1
        self._open_builtin()

    def share(self) -> FallbackEngine | None:
        """Return this engine for one more holder, or None if it is closed."""
        with self._lock:
            if self._closed:
                return None
            self._holders += 1
            return self

    def close(self) -> None:
        """Close both engines when the last holder closes."""
        with self._creating, self._lock:  # waits for a builtin engine that is being opened
            self._holders -= 1
            if self._holders > 0 or self._closed:
                return
            self._closed = True
            primary, self._primary = self._primary, None
            builtin, self._builtin = self._builtin, None
        for engine in (primary, builtin):
            if engine is not None:
                engine.close()

    # ---- search -----------------------------------------------------------------------------------------------

    @property
    def primary_failed(self) -> bool:
        """Whether the primary has failed and the builtin engine answers."""
        return self._primary is None

    @property
    def retry_at(self) -> float:
        """The time of the next attempt with the primary, on the clock of this engine."""
        return self._retry_at

    def search(self, query: Query) -> Answer:
        """Return the hits of the primary, or else of the builtin engine. The answer says which, and why."""
        primary = self._primary
        try:
            answer = primary.search(query) if primary is not None else self._retry_primary(query)
        except CANCELLATIONS:
            raise
        except EngineBusy as busy:
            return self._search_builtin(query, str(busy))
        except Exception as error:  # noqa: BLE001 - whatever the engine raises, the agent gets an answer
            if primary is not None:
                self._drop_primary(primary, error)
            return self._search_builtin(query, str(error))
        return answer if answer is not None else self._search_builtin(query, self.last_error or "")

    def _search_builtin(self, query: Query, reason: str) -> Answer:
        sentence = f"The builtin engine answered, because {self.name} could not: {reason}"
        try:
            answer = self._open_builtin().search(query)
        except CANCELLATIONS:
            raise
        except Exception as error:  # noqa: BLE001 - there is no other engine, so the answer describes the failure
            log.error("neither %s nor the builtin engine can answer: %s", self.name, error)
            sentence = f"Neither {self.name} nor the builtin engine can answer: {reason} {error}"
            return Answer((), provider="none", model="", fallback=True, degraded=sentence)
        degraded = f"{sentence} {answer.degraded}" if answer.degraded else sentence
        return replace(answer, fallback=True, degraded=degraded)

    # ---- failure and recovery ---------------------------------------------------------------------------------

    def _drop_primary(self, primary: Engine, error: Exception) -> None:
        """Switch to the builtin engine. If several threads see the failure, one of them does it."""
        with self._lock:
            if self._primary is not primary:
                return
            self._primary = None
            self.switches += 1
            self._record_failure(error)
        pause = self._cooldown.after(self._failures)
        log.warning(
            "%s failed, the builtin engine answers for at least %.0f s: %s", self.name, pause, self.last_error
        )
        _close(primary)

    def _record_failure(self, error: Exception) -> None:
        self.last_error = str(error) or type(error).__name__
        self._failures += 1
        self._retry_at = self._clock() + self._cooldown.after(self._failures)

    def _retry_primary(self, query: Query) -> Answer | None:
        """Search with a new primary after the cooldown. Return None during it, or while another caller tries."""
        with self._lock:
            if self._closed or self._retrying or self._clock() < self._retry_at:
                return None
            self._retrying = True
        try:
            return self._search_new_primary(query)
        finally:
            self._retrying = False

    def _search_new_primary(self, query: Query) -> Answer | None:
        primary: Engine | None = None
        try:
            primary = self._create_primary()
            answer = primary.search(query)
        except CANCELLATIONS:
            _close(primary)
            raise
        except Exception as error:
            if primary is not None and isinstance(error, EngineBusy):
                self._restore_primary(primary)
                raise
            with self._lock:
                self._record_failure(error)
            log.info("%s still fails: %s", self.name, error)
            _close(primary)
            return None
        self._restore_primary(primary)
        return answer

    def _restore_primary(self, primary: Engine) -> None:
        with self._lock:
            if self._closed:
                _close(primary)
                return
            self._primary = primary
            self._failures = 0
        if self._started:
            primary.start()
        log.info("%s answers again", self.name)

    def _open_builtin(self) -> Engine:
        with self._creating:
            if self._closed:
                raise EngineError("This memory is closed.")
            if self._builtin is None:
                self._builtin = self._create_builtin()
            return self._builtin

    # ---- other calls ------------------------------------------------------------------------------------------

    def _active(self) -> Engine:
        return self._primary or self._open_builtin()

    def read_file(self, rel_path: str, from_line: int = 1, lines: int | None = None) -> Excerpt:
        return self._active().read_file(rel_path, from_line, lines)

    def status(self, *, deep: bool = False) -> Status:
        """Describe the engine that answers now, and why the other one does not."""
        status = self._active().status(deep=deep)
        if not self.primary_failed:
            return status
        reason = f"{self.name} failed, the builtin engine answers: {self.last_error}"
        retry_in = max(0.0, self._retry_at - self._clock())
        details = {
            **status.details,
            "primary": self.name,
            "last_error": self.last_error,
            "retry_in_s": round(retry_in),
        }
        degraded = f"{reason} {status.degraded}" if status.degraded else reason
        return replace(status, fallback=True, degraded=degraded, details=details)

    def sync(self, **options: Any) -> SyncReport:
        """Sync the index of the engine that answers now."""
        return self._active().sync(**options)

    def purge(self) -> None:
        """Purge the builtin index, if it is open. qmd has no such operation."""
        if self._builtin is not None:
            self._builtin.purge()

    def mark_changed(self) -> None:
        """Make the next search index recent changes first, whichever engine answers it."""
        for engine in (self._primary, self._builtin):
            if engine is not None:
                engine.mark_changed()

    def start(self) -> None:
        """Keep the engine that answers up to date in the background, now and after each recovery."""
        self._started = True
        self._active().start()

    def probe_embedding(self) -> str | None:
        return self._active().probe_embedding()

    def probe_vector(self) -> str | None:
        """Run one search as configured. Return None if that works, otherwise an error message."""
        if self.primary_failed:
            return f"{self.name} failed: {self.last_error}"
        return self._active().probe_vector()


def _close(engine: Engine | None) -> None:
    if engine is not None:
        with suppress(MemoriterError, OSError):
            engine.close()


# ---- selection ----------------------------------------------------------------------------------------------------

Create = Callable[[], Engine]


def cache_key(agent: str, settings: object) -> str:
    """Return the key of one agent's engine with these settings, a frozen value with a complete `repr`."""
    return f"{agent}:{hashlib.sha256(repr(settings).encode('utf-8', 'surrogatepass')).hexdigest()}"


class EnginePool:
    """The pairs of external and builtin engines in this process, by agent and settings."""

    def __init__(
        self, *, cooldown: Cooldown | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cooldown = cooldown or Cooldown()
        self._clock = clock
        #: A pair that was closed tells when its primary may be tried again.
        self._engines: dict[str, FallbackEngine] = {}
        self._lock = threading.Lock()
        self._creating: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def get(self, key: str, create_primary: Create, create_builtin: Create) -> FallbackEngine:
        """Return the engine with this key. Create it if needed, with the builtin engine if the primary fails.

        Raises the error of the builtin engine if neither can be opened.
        """
        with self._lock:
            creating = self._creating[key]
        with creating:
            earlier = self._engines.get(key)
            is_working = earlier is not None and not earlier.primary_failed
            if earlier is not None and is_working and (shared := earlier.share()):
                return shared
            pair = FallbackEngine(create_primary, create_builtin, cooldown=self._cooldown, clock=self._clock)
            self._engines[key] = pair
            try:
                self._open(pair, earlier)
            except BaseException:
                pair.close()
                raise
            return pair

    def _open(self, pair: FallbackEngine, earlier: FallbackEngine | None) -> None:
        if earlier is not None and self._clock() < earlier.retry_at:
            pair.open_builtin(earlier.last_error or "", earlier.retry_at)
            return
        try:
            pair.open_primary()
        except Exception as failure:  # noqa: BLE001 - the agent gets the builtin engine instead
            log.warning("qmd cannot be used, the builtin engine answers: %s", failure)
            pair.open_builtin(str(failure), self._clock() + self._cooldown.first_s)
