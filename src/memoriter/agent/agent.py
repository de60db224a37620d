"""Agent: one active plugin with one memory, as a host uses it.

Opening never raises, and neither do the methods that a host calls during a turn. If the memory is switched off,
misconfigured or broken, `error` and every effect say so, and the host continues without memory.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Self

from memoriter import logs
from memoriter.agent.hooks import Effect, HookBus, Moment
from memoriter.agent.plugins import NONE, Plugin, load_plugin
from memoriter.agent.service import MemoryService, Synced
from memoriter.build import load_settings
from memoriter.config import Settings
from memoriter.errors import MemoriterError, MemoryDisabled, message_of
from memoriter.memory import Memory
from memoriter.records import ProgressCallback

log = logs.get("agent")

SLOT = "plugins.slots.memory"

Observer = Callable[[Moment, Effect], None]


class Agent:
    """The memory of one agent, with the plugin that uses it automatically. Open it with `Agent.open`."""

    def __init__(
        self,
        service: MemoryService | None,
        plugin: Plugin | None,
        *,
        error: Exception | None = None,
        observer: Observer | None = None,
        owned: bool = True,
    ) -> None:
        self._service = service
        self._plugin = plugin
        self._cause = error
        self._observer = observer
        #: Whether this object opened the service, and therefore closes it.
        self._owned = owned
        self._closed = False
        self._started = False
        self._starting = threading.Lock()
        #: Plugins register their handlers here.
        self.bus = HookBus()

    @classmethod
    def open(
        cls,
        settings: Settings | None = None,
        *,
        slot: str | None = None,
        service: MemoryService | None = None,
        observer: Observer | None = None,
        on_sync: Callable[[Synced], None] | None = None,
        on_progress: ProgressCallback | None = None,
        **load: Any,
    ) -> Agent:
        """Open the memory that the settings describe, with the plugin in its slot. Never raises.

        Without ``settings`` they are loaded with the arguments of `Memory.open` (workspace, home, agent, config,
        overrides, embedder). ``slot`` names the plugin if the owner has named none. ``service`` is used as it is and
        is not closed here. Its settings name the plugin, so that tools and prompts agree, unless ``settings`` are
        given. ``observer`` is called with every moment and its effect, ``on_sync`` and ``on_progress`` with every
        automatic sync.
        """
        opened: MemoryService | None = None
        try:
            embedder = load.pop("embedder", None)
            if service and not settings:
                settings = service.memory.settings
            else:
                settings = _with_slot(settings or load_settings(**load), slot)
            plugin = load_plugin(settings.plugins.slots.memory)
            if plugin is None:
                raise MemoryDisabled(f"Memory is switched off: `{SLOT}` is `{NONE}`.")  # noqa: TRY301
            opened = service or MemoryService(
                Memory.open(settings=settings, embedder=embedder), on_sync=on_sync, on_progress=on_progress
            )
            agent = cls(opened, plugin, observer=observer, owned=service is None)
            plugin.register(agent.bus, opened)
        except Exception as error:  # noqa: BLE001 - the host continues without memory
            if opened is not None and service is None:
                opened.memory.close()
            agent = cls(None, None, error=error, observer=observer)
            level = logging.INFO if isinstance(error, MemoryDisabled) else logging.WARNING
            log.log(level, "continuing without memory: %s", agent.error)
        return agent

    # ---- properties ------------------------------------------------------------------------------------------------

    @property
    def plugin(self) -> Plugin | None:
        """The plugin in the memory slot; None without memory."""
        return self._plugin

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that the agent has."""
        return tuple(self._plugin.tools) if self._plugin else ()

    @property
    def error(self) -> str | None:
        """The reason why there is no memory, as one sentence; None if there is one."""
        if self._cause is None:
            return None
        if isinstance(self._cause, MemoriterError | OSError):
            return message_of(self._cause)
        return f"{type(self._cause).__name__}: {self._cause}"

    @property
    def off(self) -> bool:
        """Whether the owner has switched memory off."""
        return isinstance(self._cause, MemoryDisabled)

    @property
    def service(self) -> MemoryService:
        """The service that keeps the memory up to date. Raises if there is no memory."""
        if self._service is None:
            if isinstance(self._cause, MemoriterError):
                raise self._cause
            raise MemoriterError(self.error or "This agent has no memory.")
        return self._service

    @property
    def memory(self) -> Memory:
        """The memory. Raises if there is none."""
        return self.service.memory

    # ---- running ---------------------------------------------------------------------------------------------------

    def start(self) -> Synced | None:
        """Warm up, bring the index up to date and watch for changes. For hosts that run long. Never raises.

        Returns None without memory, and if the agent was already started.
        """
        with self._starting:
            started, self._started = self._started, True
        if self._service is None or self._closed or started:
            return None
        try:
            synced = self._service.start()
        except Exception as error:
            if self._closed:
                return None  # closed while it was starting
            log.exception("the memory cannot be kept up to date")
            return Synced("start", None, f"{type(error).__name__}: {error}")
        if synced.report is not None:
            log.info("the memory is ready. Files: %d, chunks: %d", synced.report.files, synced.report.chunks)
        return synced

    def emit(self, moment: Moment, *, wait_s: float | None = None) -> Effect:
        """Report a moment to the plugin and return its effect. Never raises. ``wait_s`` is as in `HookBus.emit`."""
        effect = Effect(warnings=(self.error,)) if self.error else self.bus.emit(moment, wait_s=wait_s)
        if self._observer is not None:
            try:
                self._observer(moment, effect)
            except Exception:  # an observer must not break the host
                log.exception("an observer failed")
        return effect

    def close(self, wait_s: float = 30.0) -> None:
        """Finish writing, within this time, and close files and threads."""
        self._closed = True
        self.bus.close(wait_s)
        if self._service is not None and self._owned:
            self._service.stop()
            self._service.memory.close()
        self._owned = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _with_slot(settings: Settings, slot: str | None) -> Settings:
    """Return the settings with this plugin in the slot, unless the owner has named one."""
    if slot is None or settings.origin(SLOT) != "default":
        return settings
    slots = settings.plugins.slots.model_copy(update={"memory": slot})
    return settings.model_copy(update={"plugins": settings.plugins.model_copy(update={"slots": slots})})
