"""The agents of a gateway: each memory is opened at its first use, kept fresh, and closed with the gateway.

What a memory needs to be opened (settings, an embedder, a store) may fail: the operation then answers why, and the
next one tries again. Which agents there are is decided by the settings, and never by a caller.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from recollect import logs
from recollect.memory import Memory
from recollect.service import MemoryService, Synced

if TYPE_CHECKING:
    from recollect.config import Settings

log = logs.get("http.agents")

Load = Callable[[str], "Settings"]
"""Reads the settings of an agent by its name; may raise."""


class Live:
    """One agent: its memory, opened at first use."""

    def __init__(self, name: str, load: Load, on_sync: Callable[[str, Synced], None]) -> None:
        self.name = name
        self._load = load
        self._on_sync = on_sync
        self._lock = threading.Lock()
        self._service: MemoryService | None = None
        self._starting: threading.Thread | None = None

    def memory(self) -> Memory:
        """The memory; raises what keeps it from being opened."""
        return self.service().memory

    def service(self) -> MemoryService:
        """The service that keeps the memory fresh."""
        with self._lock:
            if self._service is None:
                memory = Memory.of(self._load(self.name))
                self._service = MemoryService(memory, on_sync=lambda synced: self._on_sync(self.name, synced))
                # The first sync may take long, and nobody has to wait for it: a search says what is missing.
                self._starting = threading.Thread(
                    target=self._start,
                    args=(self._service,),
                    name=f"recollect-start-{self.name}",
                    daemon=True,
                )
                self._starting.start()
            return self._service

    @property
    def opened(self) -> MemoryService | None:
        """The service, if the memory was used yet."""
        return self._service

    def close(self) -> None:
        """Stop watching and close; what runs is waited for."""
        with self._lock:
            service, self._service = self._service, None
        if service is None:
            return
        if self._starting:
            self._starting.join(timeout=60)
        service.stop()
        service.memory.close()

    def _start(self, service: MemoryService) -> None:
        try:
            service.start()
        except Exception:  # the memory answers all the same, only not by itself fresh
            log.exception("the agent %s could not be kept fresh", self.name)


class Agents(Mapping[str, Live]):
    """Every agent that the gateway serves."""

    def __init__(
        self,
        settings: Settings,
        load: Load,
        on_sync: Callable[[str, Synced], None] = lambda _name, _synced: None,
    ) -> None:
        self.default = settings.agent
        self.workspaces = {settings.agent: settings.workspace, **settings.gateway.agents}
        self._live = {name: Live(name, load, on_sync) for name in self.workspaces}

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
