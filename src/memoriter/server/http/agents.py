"""The agents of a gateway: each memory is opened at its first use, kept fresh, and closed with the gateway.

What a memory needs to be opened (settings, an embedder, a store) may fail: the operation then answers why, and the
next one tries again. Settings that the owner changes count from the next request on. Which agents there are is
decided by the settings at the start, and never by a caller.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memoriter import logs
from memoriter.agent import Agent
from memoriter.agent.service import MemoryService, Synced
from memoriter.config import Settings, load
from memoriter.config.layers import WORKSPACE_FILE
from memoriter.errors import MemoriterError, StoreError
from memoriter.memory import Memory
from memoriter.records import ProgressCallback

log = logs.get("http.agents")

LINGER_S = 90.0  #: how long a memory stays open after its settings changed, for calls that began before

Signs = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """Reads the settings of an agent as they are now, in the way in which those of the gateway were read."""

    settings: Settings  #: those of the gateway
    config: Path | None = None
    arguments: Mapping[str, object] = field(default_factory=dict)

    def __call__(self, agent: str) -> Settings:
        """The settings of this agent; may raise."""
        own = {"agent": agent, "workspace": self.workspaces[agent], "home": self.settings.home}
        return load(config=self.config, arguments={**self.arguments, **own})

    @property
    def workspaces(self) -> dict[str, Path]:
        """Every agent with its workspace."""
        return {self.settings.agent: self.settings.workspace, **self.settings.gateway.agents}

    def files(self, agent: str) -> tuple[Path, ...]:
        """The files that the settings are read from."""
        return (
            self.config or self.settings.home / "config.yaml",
            self.workspaces[agent] / WORKSPACE_FILE,
        )


class Opened:
    """A memory in use, with the settings that it was opened by."""

    def __init__(self, settings: Settings, host: Agent, service: MemoryService) -> None:
        self.settings = settings
        self.host = host
        self.service = service
        # The first sync may take long, and nobody has to wait for it: a search says what is missing.
        self._starting = threading.Thread(target=host.start, name="memoriter-start", daemon=True)

    def start(self) -> None:
        """Take in what changed, and watch, in the background."""
        self._starting.start()

    def close(self) -> None:
        """Stop watching and close; a sync that runs is waited for."""
        self._starting.join(timeout=60)
        self.host.close()
        self.service.stop()
        self.service.memory.close()


class Live:
    """One agent."""

    def __init__(
        self,
        name: str,
        load: Load,
        on_sync: Callable[[str, Synced], None],
        progress: Callable[[str], ProgressCallback],
    ) -> None:
        self.name = name
        self.error: str | None = None  #: why the last opening failed
        self._load = load
        self._on_sync = on_sync
        self._progress = progress
        self._lock = threading.Lock()
        self._opened: Opened | None = None
        self._ended = False
        self._signs: Signs | None = None
        self._retired: list[tuple[Opened, threading.Timer]] = []

    def memory(self) -> Memory:
        """The memory; raises what keeps it from being opened."""
        return self._noted().service.memory

    def host(self) -> Agent:
        """The same for an agent's doors: never raises, and says in `error` what is wrong."""
        try:
            return self._noted().host
        except Exception as error:  # noqa: BLE001  the host says it
            return Agent(None, None, error=error)

    @property
    def opened(self) -> Opened | None:
        """What is in use, if anything was asked yet."""
        return self._opened

    @property
    def slot(self) -> str | None:
        """The plugin that fills the slot; None while the settings cannot be read."""
        opened = self._opened  # looked at once: another thread may retire it
        try:
            settings = opened.settings if opened else self._load(self.name)
        except MemoriterError:
            return None
        return settings.plugins.slots.memory

    def sizes(self) -> dict[str, float]:
        """What the memory holds, if it is open."""
        opened = self._opened
        if opened is None:
            return {}
        memory = opened.service.memory
        try:
            learned = memory.entry_stats()
            total = learned["total"] if learned else 0
            held = {"memoriter_chunks": memory.status().chunks, "memoriter_entries": total}
        except MemoriterError:
            return {}
        return {name: value for name, value in held.items() if isinstance(value, int)}

    def _noted(self) -> Opened:
        try:
            opened = self._current()
        except Exception as error:
            self.error = type(error).__name__
            raise
        self.error = None
        return opened

    def _current(self) -> Opened:
        signs = _signs(self._load.files(self.name))
        with self._lock:
            if self._ended:  # who came last would open what nobody closes
                raise StoreError("The gateway is ending.")
            if self._opened is None or signs != self._signs:
                settings = self._load(self.name)
                if self._opened is None or settings != self._opened.settings:
                    self._exchange(self._open(settings))
                self._signs = signs
            assert self._opened is not None
            return self._opened

    def _open(self, settings: Settings) -> Opened:
        try:
            memory = Memory.of(settings)
        except MemoriterError:
            self._retire()  # switched off while it ran: nothing of it goes on
            raise
        service = MemoryService(
            memory,
            on_sync=lambda synced: self._on_sync(self.name, synced),
            on_progress=self._progress(self.name),
        )
        return Opened(settings, Agent.open(service=service), service)

    def _exchange(self, new: Opened) -> None:
        self._retire()
        self._opened = new
        new.start()

    def _retire(self) -> None:
        """Close what is open a little later: calls that began with it may still run."""
        old, self._opened = self._opened, None
        if old is not None:
            timer = threading.Timer(LINGER_S, self._forget, (old,))
            timer.daemon = True
            timer.start()
            self._retired.append((old, timer))

    def _forget(self, old: Opened) -> None:
        try:
            old.close()
        except Exception:
            log.exception("a memory of the agent %s could not be closed", self.name)
        finally:
            with self._lock:
                self._retired = [one for one in self._retired if one[0] is not old]

    def close(self) -> None:
        """Close what is open, for good; what runs is waited for."""
        with self._lock:
            self._ended = True
            current, self._opened = self._opened, None
            retired, self._retired = self._retired, []
        for old, timer in retired:
            timer.cancel()
            old.close()
        if current is not None:
            current.close()


class Agents(Mapping[str, Live]):
    """Every agent that the gateway serves."""

    def __init__(
        self,
        load: Load,
        on_sync: Callable[[str, Synced], None],
        progress: Callable[[str], ProgressCallback],
    ) -> None:
        self.default = load.settings.agent
        self.workspaces = load.workspaces
        self._live = {name: Live(name, load, on_sync, progress) for name in self.workspaces}

    def __getitem__(self, name: str) -> Live:
        return self._live[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._live)

    def __len__(self) -> int:
        return len(self._live)

    def close(self) -> None:
        """Close them all, the failures of one beside the others."""
        for live in self._live.values():
            try:
                live.close()
            except Exception:
                log.exception("the agent %s could not be closed", live.name)


def _signs(files: tuple[Path, ...]) -> Signs:
    """By what one sees that a file changed."""
    return tuple(_sign(file) for file in files)


def _sign(file: Path) -> tuple[int, int, int] | None:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
