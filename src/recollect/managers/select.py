"""Which manager answers for an agent.

Managers of an outside engine are kept under a key of agent and settings: who asks again with the same key gets the
same one. Whatever goes wrong here is part of the answer: there may be no manager, but there is never an exception.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect import logs
from recollect.errors import RecollectError
from recollect.managers.fallback import CoolDown, FallbackManager

if TYPE_CHECKING:
    from recollect.managers import Manager

log = logs.get("managers")

Create = Callable[[], "Manager"]


@dataclass(frozen=True, slots=True)
class Selection:
    """A manager, or one sentence why there is none."""

    manager: Manager | None
    error: str | None = None
    cause: Exception | None = None  #: for those who would rather raise it


def cache_key(agent: str, settings: object) -> str:
    """The key of one agent's manager with these settings, a frozen value whose `repr` says all of it."""
    return f"{agent}:{hashlib.sha256(repr(settings).encode('utf-8', 'surrogatepass')).hexdigest()}"


def warm_up(manager: Manager) -> str | None:
    """Find out at the start, not at the first question, whether an outside engine works; one sentence if not."""
    manager.start()
    problem = manager.probe_vector()
    if problem:
        log.warning("the memory backend is not well: %s", problem)
    else:
        log.info("the memory backend is ready")
    return problem


def builtin_only(create_builtin: Create) -> Selection:
    """The builtin manager, or why it cannot be had."""
    try:
        return Selection(create_builtin())
    except Exception as error:  # noqa: BLE001  the host goes on without memory
        return _none(error)


class Managers:
    """The managers of outside engines in this process."""

    def __init__(
        self, *, cool_down: CoolDown | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cool_down = cool_down or CoolDown()
        self._clock = clock
        self._cache: dict[str, FallbackManager] = {}
        self._cooling: dict[str, tuple[float, str]] = {}  #: key → when it may be tried again, and why not now
        self._lock = threading.Lock()
        self._creating: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def get(self, key: str, create_primary: Create, create_builtin: Create) -> Selection:
        """The manager under this key: the one that is there, a new one, or builtin when none can be made."""
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
        pair = FallbackManager(
            create_primary,
            create_builtin,
            cool_down=self._cool_down,
            clock=self._clock,
            evict=lambda manager: self._evict(key, manager),
            keep=lambda manager: self._keep(key, manager),
        )
        retry_at, error = self._cooling.get(key, (float("-inf"), ""))
        if self._clock() >= retry_at:
            try:
                pair.open_primary()
            except Exception as failed:  # noqa: BLE001  the agent gets the builtin manager instead
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

    def _keep(self, key: str, manager: FallbackManager) -> None:
        with self._lock:
            self._cache.setdefault(key, manager)
            self._cooling.pop(key, None)

    def _evict(self, key: str, manager: FallbackManager) -> None:
        """Forget a manager that failed or was closed, so that the next selection makes a new one."""
        with self._lock:
            if self._cache.get(key) is manager:
                del self._cache[key]
            if manager.last_error and manager.primary_failed:
                self._cooling[key] = (manager.retry_at, manager.last_error)


def _none(error: Exception) -> Selection:
    sentence = (
        str(error) if isinstance(error, RecollectError | OSError) else f"{type(error).__name__}: {error}"
    )
    return Selection(None, sentence, error)
