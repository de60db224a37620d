"""A pair of engines: the primary answers until it fails, then the builtin one does, until the primary is well again.

The builtin engine is created only when it is needed. After a failure the primary is closed and left alone for a
while; then the next search tries a new one, and the pair heals without a restart. A caller who gave up waiting is no
failure. Which engines these are, and who shares them, is `select`'s duty.
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
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.errors import Cancelled, EngineBusy, EngineError, MemoriterError
from memoriter.records import Answer, Excerpt, ProgressCallback, Query, Status, SyncReport

if TYPE_CHECKING:
    from memoriter.engines import Engine


log = logs.get("engines")

#: Not failures of the primary: somebody stopped waiting for it.
GIVEN_UP = (Cancelled, concurrent.futures.CancelledError)


@dataclass(frozen=True, slots=True)
class CoolDown:
    """How long a failed primary is left alone; in seconds, doubled after each failure in a row."""

    first_s: float = 60.0
    longest_s: float = 600.0

    def after(self, failures: int) -> float:
        """The pause after so many failures."""
        return min(self.first_s * 2.0 ** min(max(failures, 1) - 1, 30), self.longest_s)


class FallbackEngine:
    """Sends each call to the primary while it is well, and to the builtin engine otherwise."""

    def __init__(
        self,
        create_primary: Callable[[], Engine],
        create_fallback: Callable[[], Engine],
        *,
        name: str = "qmd",
        cool_down: CoolDown | None = None,
        clock: Callable[[], float] = time.monotonic,
        evict: Callable[[FallbackEngine], None] = lambda _: None,
        keep: Callable[[FallbackEngine], None] = lambda _: None,
    ) -> None:
        self.name = name
        self.last_error: str | None = None
        self.switches = 0  #: how often the primary was given up
        self._create_primary = create_primary
        self._create_fallback = create_fallback
        self._cool_down = cool_down or CoolDown()
        self._clock = clock
        self._evict, self._keep = evict, keep  #: out of the cache that shares us, and back into it
        self._lock = threading.RLock()
        self._creating = threading.Lock()  #: apart, since opening an index takes a while
        self._primary: Engine | None = None
        self._fallback: Engine | None = None
        self._failures = 0  #: in a row
        self._retry_at = float("-inf")
        self._trying = False
        self._started = False
        self._holders = 1
        self._closed = False

    # ---- who holds it -----------------------------------------------------------------------------------------

    def open_primary(self) -> None:
        """Create the primary now; raises what its creation raises."""
        self._primary = self._create_primary()

    def begin_failed(self, error: str, retry_at: float) -> None:
        """Begin with the builtin engine, because the primary failed elsewhere; raises what its creation raises."""
        self.last_error, self._retry_at, self._failures = error, retry_at, 1
        self._builtin()

    def share(self) -> FallbackEngine | None:
        """The same engine for one more holder; None when it is closed already."""
        with self._lock:
            if self._closed:
                return None
            self._holders += 1
            return self

    def close(self) -> None:
        """Close both engines when the last holder closes, and leave the cache."""
        with self._creating, self._lock:  # a builtin engine that is being opened is waited for, then closed
            self._holders -= 1
            if self._holders > 0 or self._closed:
                return
            self._closed = True
            primary, self._primary = self._primary, None
            fallback, self._fallback = self._fallback, None
        self._evict(self)
        for engine in (primary, fallback):
            if engine is not None:
                engine.close()

    # ---- search -----------------------------------------------------------------------------------------------

    @property
    def primary_failed(self) -> bool:
        """Whether the builtin engine answers at the moment."""
        return self._primary is None

    @property
    def retry_at(self) -> float:
        """When the primary is tried again, on our clock."""
        return self._retry_at

    def search(self, query: Query) -> Answer:
        """The primary's hits, or else the builtin engine's; the answer says which, and why."""
        primary = self._primary
        try:
            answer = primary.search(query) if primary is not None else self._try_again(query)
        except GIVEN_UP:
            raise
        except EngineBusy as busy:
            return self._by_builtin(query, str(busy))
        except Exception as error:  # noqa: BLE001  whatever the engine does, the agent is answered
            if primary is not None:
                self._give_up(primary, error)
            return self._by_builtin(query, str(error))
        return answer if answer is not None else self._by_builtin(query, self.last_error or "")

    def _by_builtin(self, query: Query, reason: str) -> Answer:
        sentence = f"The builtin engine answered, because {self.name} could not: {reason}"
        try:
            answer = self._builtin().search(query)
        except GIVEN_UP:
            raise
        except Exception as error:  # noqa: BLE001  the last one to ask: what it lacks is said in words
            log.error("neither %s nor the builtin engine can answer: %s", self.name, error)
            missing = f"Neither {self.name} nor the builtin engine can answer: {reason} {error}"
            return Answer((), provider="none", model="", fallback=True, degraded=missing)
        degraded = f"{sentence} {answer.degraded}" if answer.degraded else sentence
        return replace(answer, fallback=True, degraded=degraded)

    # ---- giving up and trying again ---------------------------------------------------------------------------

    def _give_up(self, primary: Engine, error: Exception) -> None:
        """Switch to the builtin engine; of several threads that saw the failure, one does it."""
        with self._lock:
            if self._primary is not primary:
                return
            self._primary = None
            self.switches += 1
            self._failed(error)
        pause = self._cool_down.after(self._failures)
        log.warning(
            "%s failed, the builtin engine answers for at least %.0f s: %s", self.name, pause, self.last_error
        )
        self._evict(self)
        _close(primary)

    def _failed(self, error: Exception) -> None:
        self.last_error = str(error) or type(error).__name__
        self._failures += 1
        self._retry_at = self._clock() + self._cool_down.after(self._failures)

    def _try_again(self, query: Query) -> Answer | None:
        """After the pause, one caller asks a new primary; None for everybody else."""
        with self._lock:
            if self._closed or self._trying or self._clock() < self._retry_at:
                return None
            self._trying = True
        try:
            return self._trial(query)
        finally:
            self._trying = False

    def _trial(self, query: Query) -> Answer | None:
        primary: Engine | None = None
        try:
            primary = self._create_primary()
            answer = primary.search(query)
        except GIVEN_UP:
            _close(primary)
            raise
        except Exception as error:
            if primary is not None and isinstance(error, EngineBusy):
                self._take_back(primary)
                raise
            with self._lock:  # it is not well yet, in whatever way
                self._failed(error)
            log.info("%s still fails: %s", self.name, error)
            _close(primary)
            return None
        self._take_back(primary)
        return answer

    def _take_back(self, primary: Engine) -> None:
        with self._lock:
            if self._closed:
                _close(primary)
                return
            self._primary = primary
            self._failures = 0
        if self._started:
            primary.start()
        log.info("%s answers again", self.name)
        self._keep(self)

    def _builtin(self) -> Engine:
        with self._creating:
            if self._closed:
                raise EngineError("This memory is closed.")
            if self._fallback is None:
                self._fallback = self._create_fallback()
            return self._fallback

    # ---- the rest of the interface ----------------------------------------------------------------------------

    #: The builtin engine of the pair may not exist, so callers open an embedder of their own.
    choice: None = None
    index: None = None
    knows_notes = False

    def _active(self) -> Engine:
        return self._primary or self._builtin()

    def read_file(self, rel_path: str, from_line: int = 1, lines: int | None = None) -> Excerpt:
        """Some lines of one file of the workspace."""
        return self._active().read_file(rel_path, from_line, lines)

    def status(self, *, deep: bool = False) -> Status:
        """What the engine that answers now says, and why the other does not."""
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

    def sync(
        self,
        *,
        force: bool = False,
        verify: bool = False,
        batch: bool = False,
        progress: ProgressCallback | None = None,
    ) -> SyncReport:
        """Sync the index of the engine that answers now."""
        return self._active().sync(force=force, verify=verify, batch=batch, progress=progress)

    def count_stale(self) -> int | None:
        """Return None: which engine answers may change between the count and the sync."""
        return None

    def purge(self) -> None:
        """Purge the builtin index, if it is open. qmd has no such operation."""
        if self._fallback is not None:
            self._fallback.purge()

    def mark_changed(self) -> None:
        """Something was just written: whoever answers next takes it in first."""
        for engine in (self._primary, self._fallback):
            if engine is not None:
                engine.mark_changed()

    def start(self) -> None:
        """Let the engine that answers keep itself fresh, now and after each healing."""
        self._started = True
        self._active().start()

    def probe_embedding(self) -> str | None:
        """Try to embed one text: None when it works, otherwise one sentence."""
        return self._active().probe_embedding()

    def probe_vector(self) -> str | None:
        """Try one search as configured: None when it works, otherwise one sentence."""
        if self.primary_failed:
            return f"{self.name} failed: {self.last_error}"
        return self._active().probe_vector()


def _close(engine: Engine | None) -> None:
    if engine is not None:
        with suppress(MemoriterError, OSError):
            engine.close()


Create = Callable[[], "Engine"]


@dataclass(frozen=True, slots=True)
class Selection:
    """An engine, or one sentence why there is none."""

    engine: Engine | None
    error: str | None = None
    cause: Exception | None = None  #: for those who would rather raise it


def cache_key(agent: str, settings: object) -> str:
    """The key of one agent's engine with these settings, a frozen value whose `repr` says all of it."""
    return f"{agent}:{hashlib.sha256(repr(settings).encode('utf-8', 'surrogatepass')).hexdigest()}"


def warm_up(engine: Engine) -> str | None:
    """Find out at the start, not at the first question, whether an outside engine works; one sentence if not."""
    engine.start()
    problem = engine.probe_vector()
    if problem:
        log.warning("the memory backend is not well: %s", problem)
    else:
        log.info("the memory backend is ready")
    return problem


def builtin_only(create_builtin: Create) -> Selection:
    """The builtin engine, or why it cannot be had."""
    try:
        return Selection(create_builtin())
    except Exception as error:  # noqa: BLE001  the host goes on without memory
        return _none(error)


class EnginePool:
    """The engines of outside engines in this process."""

    def __init__(
        self, *, cool_down: CoolDown | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cool_down = cool_down or CoolDown()
        self._clock = clock
        self._cache: dict[str, FallbackEngine] = {}
        self._cooling: dict[str, tuple[float, str]] = {}  #: key → when it may be tried again, and why not now
        self._lock = threading.Lock()
        self._creating: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def get(self, key: str, create_primary: Create, create_builtin: Create) -> Selection:
        """The engine under this key: the one that is there, a new one, or builtin when none can be made."""
        with self._lock:
            creating = self._creating[key]
        with creating:
            return self._kept(key) or self._new(key, create_primary, create_builtin)

    def _kept(self, key: str) -> Selection | None:
        with self._lock:
            kept = self._cache.get(key)
        shared = kept.share() if kept else None
        return Selection(shared) if shared else None

    def _new(self, key: str, create_primary: Create, create_builtin: Create) -> Selection:
        pair = FallbackEngine(
            create_primary,
            create_builtin,
            cool_down=self._cool_down,
            clock=self._clock,
            evict=lambda engine: self._evict(key, engine),
            keep=lambda engine: self._keep(key, engine),
        )
        retry_at, error = self._cooling.get(key, (float("-inf"), ""))
        if self._clock() >= retry_at:
            try:
                pair.open_primary()
            except Exception as failed:  # noqa: BLE001  the agent gets the builtin engine instead
                retry_at, error = self._clock() + self._cool_down.first_s, str(failed)
                self._cooling[key] = (retry_at, error)
                log.warning("qmd cannot be used, the builtin engine answers: %s", error)
            else:
                self._keep(key, pair)
                return Selection(pair)
        try:
            pair.begin_failed(error, retry_at)
        except Exception as failed:  # noqa: BLE001  the host goes on without memory
            return _none(failed)
        return Selection(pair)

    def _keep(self, key: str, engine: FallbackEngine) -> None:
        with self._lock:
            self._cache.setdefault(key, engine)
            self._cooling.pop(key, None)

    def _evict(self, key: str, engine: FallbackEngine) -> None:
        """Forget an engine that failed or was closed, so that the next selection makes a new one."""
        with self._lock:
            if self._cache.get(key) is engine:
                del self._cache[key]
            if engine.last_error and engine.primary_failed:
                self._cooling[key] = (engine.retry_at, engine.last_error)


def _none(error: Exception) -> Selection:
    sentence = (
        str(error) if isinstance(error, MemoriterError | OSError) else f"{type(error).__name__}: {error}"
    )
    return Selection(None, sentence, error)
