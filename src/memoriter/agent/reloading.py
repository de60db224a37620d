"""The agent of a long-running process, reopened when the owner changes the settings."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from memoriter import logs
from memoriter.agent.agent import Agent
from memoriter.agent.service import Synced
from memoriter.background import Rejected, Task, Workers
from memoriter.config import Settings
from memoriter.errors import MemoriterError, message_of
from memoriter.memory import parts_of
from memoriter.records import ProgressCallback

log = logs.get("agent")

#: How often the settings are loaded again where no files are named that would show a change.
CHECK_INTERVAL_S = 2.0
#: A replaced agent is closed after this time, because calls that began earlier may still use it.
GRACE_S = 90.0
#: `close` waits this long for syncs and hooks that are running.
CLOSE_TIMEOUT_S = 60.0

Signature = tuple[tuple[int, int, int] | None, ...]


class ReloadingAgent:
    """Opens an `Agent` at first use, starts it in the background, and replaces it when its settings change.

    Calling it returns the current agent and never raises: what prevents a memory from being opened is the agent's
    ``error``, and a later call tries again. While the settings cannot be read, the agent that was open before stays
    open, and is used again once they are as they were.
    """

    def __init__(
        self,
        load: Callable[[], Settings],
        *,
        files: Sequence[Path] = (),
        slot: str | None = None,
        on_sync: Callable[[Synced], None] | None = None,
        on_progress: ProgressCallback | None = None,
        check_interval_s: float = CHECK_INTERVAL_S,
        grace_s: float = GRACE_S,
    ) -> None:
        """Create it; nothing is opened yet.

        ``files``: the files that the settings come from. If given, the settings are loaded again only after one of
        them has changed; otherwise at intervals. ``slot``, ``on_sync`` and ``on_progress`` are as in `Agent.open`.
        """
        self._load = load
        self._files = tuple(files)
        self._slot = slot
        self._on_sync, self._on_progress = on_sync, on_progress
        self._check_interval_s, self._grace_s = check_interval_s, grace_s
        self._lock = threading.Lock()
        self._agent: Agent | None = None
        self._settings: Settings | None = None
        #: An agent without memory that says why there is none.
        self._failed: Agent | None = None
        self._checked: float | None = None
        self._signature: Signature | None = None
        self._replaced = list[Agent]()
        self._closed = False
        self._starting: Task[Synced | None] | None = None
        self._workers = Workers("memoriter-agent", threads=4, keep=True)

    def __call__(self) -> Agent:
        """Return the agent for the current settings."""
        signature = _signature(self._files)
        with self._lock:
            if self._closed:
                return Agent(None, None, error=MemoriterError("The memory is closing."))
            if self._is_due(signature):
                self._reload()
                self._signature = signature
                self._checked = time.monotonic()
            agent = self._failed or self._agent
            assert agent is not None
            return agent

    def wake(self, *, load_model: bool = False) -> None:
        """Open the memory in the background, so that it watches files and answers quickly.

        ``load_model`` also loads the local model. Failures are reported by the calls that follow.
        """
        with suppress(Rejected):  # it is being closed
            self._workers.submit(lambda: self._wake(load_model))

    def _wake(self, load_model: bool) -> None:
        with suppress(MemoriterError, OSError):
            memory = self().memory
            # The agent starts an external engine itself, on a thread that `close` can cancel.
            if load_model and memory.settings.memory.backend == "builtin":
                parts_of(memory).warm_up(load_model=True)

    @property
    def current(self) -> Agent | None:
        """The agent with an open memory, if there is one; asking opens nothing."""
        return self._agent

    @property
    def error(self) -> str | None:
        """The reason why the last attempt to open the memory failed."""
        failed = self._failed
        return failed.error if failed else None

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S, *, cancel: bool = False) -> None:
        """Close every agent that is open; wait at most this long for what is running.

        ``cancel`` also cancels a start that is running, and with it the external programs that it waits for.
        """
        until = time.monotonic() + timeout_s
        with self._lock:
            self._closed = True
            agents = [*self._replaced, *([self._agent] if self._agent else [])]
            self._replaced, self._agent = [], None
        self._workers.close(timeout_s, cancel=cancel)
        for agent in agents:
            _close(agent, max(0.0, until - time.monotonic()))

    def _is_due(self, signature: Signature) -> bool:
        if self._checked is None:
            return True
        if self._files:
            return self._failed is not None or signature != self._signature
        return time.monotonic() - self._checked >= self._check_interval_s

    def _reload(self) -> None:
        try:
            settings = self._load()
        except (MemoriterError, OSError) as error:
            if self.error != message_of(error):
                log.warning("memory is disabled: %s", message_of(error))
            self._fail(Agent(None, None, error=error))
            return
        if self._agent is not None and settings == self._settings:
            self._failed = None
            return
        agent = Agent.open(settings, slot=self._slot, on_sync=self._on_sync, on_progress=self._on_progress)
        self._retire()
        if agent.error:
            self._fail(agent)
            return
        self._agent, self._settings, self._failed = agent, settings, None
        # The first sync may take long. A search says what is still missing, so no call has to wait for it.
        self._starting = self._workers.submit(agent.start)

    def _fail(self, agent: Agent) -> None:
        if self._failed is None or self._failed.error != agent.error:
            self._failed = agent

    def _retire(self) -> None:
        """Close the agent that was open after the grace period."""
        agent, self._agent, self._settings = self._agent, None, None
        starting, self._starting = self._starting, None
        if agent is not None:
            self._replaced.append(agent)
            self._workers.submit(lambda: self._close_replaced(agent, starting), delay_s=self._grace_s)

    def _close_replaced(self, agent: Agent, starting: Task[Synced | None] | None) -> None:
        if starting is not None:
            starting.wait(CLOSE_TIMEOUT_S)
        with self._lock:
            if agent not in self._replaced:
                return
            self._replaced.remove(agent)
        _close(agent, CLOSE_TIMEOUT_S)


def _close(agent: Agent, timeout_s: float) -> None:
    try:
        agent.close(timeout_s)
    except Exception:  # the failure of one must not keep the others open
        log.exception("an agent could not be closed")


def _signature(files: Sequence[Path]) -> Signature:
    """Return a value that changes when one of the files changes."""
    return tuple(_stat(file) for file in files)


def _stat(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
