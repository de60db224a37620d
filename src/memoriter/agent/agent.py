"""What an agent's host holds: one active plugin over one memory.

Opening never raises, and neither does anything that a host calls in the middle of a turn: a memory that is switched
off, misconfigured or broken is a sentence in `error` and in every effect, and the agent goes on without.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from memoriter import logs
from memoriter.agent.hooks import HookBus
from memoriter.agent.moments import Effect, Moment
from memoriter.agent.plugins import NONE, Plugin, load_plugin
from memoriter.agent.service import MemoryService, Synced
from memoriter.errors import MemoriterError, MemoryDisabled
from memoriter.memory import Memory

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.records import ProgressCallback

log = logs.get("agent")

SLOT = "plugins.slots.memory"

Observer = Callable[[Moment, Effect], None]


class Agent:
    """One agent's memory as its host uses it."""

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
        self._owned = owned  #: whether the service was opened here, and is closed here
        self._closed = False
        self._begun = False
        self._beginning = threading.Lock()
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
        """Open the memory that the settings describe, with the plugin that its slot names; never raises.

        Without settings they are loaded, with ``load`` as `Memory.open` takes it (workspace, home, agent, config,
        overrides, embedder). ``slot`` is the plugin when the owner has named none. ``service`` is used as it is, and
        stays its owner's: its own settings name the plugin, so that tools and prompts agree, unless ``settings`` are
        given for what is to happen here. ``observer`` is called with every moment and its effect, ``on_sync`` and
        ``on_progress`` with every automatic sync.
        """
        opened: MemoryService | None = None
        try:
            embedder = load.pop("embedder", None)
            if service and not settings:
                settings = service.memory.settings
            else:
                settings = _with_slot(settings or _loaded(**load), slot)
            plugin = load_plugin(settings.plugins.slots.memory)
            if plugin is None:
                raise MemoryDisabled(f"Memory is switched off: `{SLOT}` is `{NONE}`.")  # noqa: TRY301
            opened = service or MemoryService(
                Memory.open(settings=settings, embedder=embedder), on_sync=on_sync, on_progress=on_progress
            )
            host = cls(opened, plugin, observer=observer, owned=service is None)
            plugin.register(host.bus, opened)
        except Exception as error:  # noqa: BLE001  the agent goes on without memory
            if opened is not None and service is None:
                opened.memory.close()
            host = cls(None, None, error=error, observer=observer)
            level = (
                logging.INFO if isinstance(error, MemoryDisabled) else logging.WARNING
            )  # or as it was meant
            log.log(level, "the agent goes on without memory: %s", host.error)
        return host

    # ---- what it has ------------------------------------------------------------------------------------------

    @property
    def plugin(self) -> Plugin | None:
        """What fills the slot; None while memory is disabled."""
        return self._plugin

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that the agent gets."""
        return tuple(self._plugin.tools) if self._plugin else ()

    @property
    def error(self) -> str | None:
        """Why there is no memory, in one sentence; None when there is one."""
        if self._cause is None:
            return None
        if isinstance(self._cause, MemoriterError | OSError):
            return str(self._cause)
        return f"{type(self._cause).__name__}: {self._cause}"

    @property
    def off(self) -> bool:
        """Whether there is no memory because the owner wants none."""
        return isinstance(self._cause, MemoryDisabled)

    @property
    def service(self) -> MemoryService:
        """The memory with what keeps it fresh; raises why there is none."""
        if self._service is None:
            if isinstance(self._cause, MemoriterError):
                raise self._cause
            raise MemoriterError(self.error or "this host was closed")
        return self._service

    @property
    def memory(self) -> Memory:
        """The memory; raises why there is none."""
        return self.service.memory

    # ---- its life ---------------------------------------------------------------------------------------------

    def start(self) -> Synced | None:
        """For a host that lives long: warm up, take in what changed, watch; never raises.

        None without a memory, and where it was started already: another thread may have been first.
        """
        with self._beginning:
            begun, self._begun = self._begun, True
        if self._service is None or self._closed or begun:
            return None
        try:
            done = self._service.start()
        except Exception as error:
            if self._closed:
                return None  # it was closed while it began
            log.exception("the memory could not be kept fresh")
            return Synced("start", None, f"{type(error).__name__}: {error}")
        if done.report is not None:
            log.info("the memory is ready: %d files, %d chunks", done.report.files, done.report.chunks)
        return done

    def emit(self, moment: Moment, *, wait_s: float | None = None) -> Effect:
        """Something happens: let the plugin act; never raises. ``wait_s``: as `HookBus.emit` takes it."""
        effect = Effect(warnings=(self.error,)) if self.error else self.bus.emit(moment, wait_s=wait_s)
        if self._observer is not None:
            try:
                self._observer(moment, effect)
            except Exception:  # who looks on must not break the host
                log.exception("an observer failed")
        return effect

    def close(self, wait_s: float = 30.0) -> None:
        """Finish what is being kept, within this time, and give back files and threads."""
        self._closed = True
        self.bus.close(wait_s)
        if self._service is not None and self._owned:
            self._service.stop()
            self._service.memory.close()
        self._owned = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _loaded(
    workspace: Path | str | None = None,
    *,
    home: Path | str | None = None,
    agent: str | None = None,
    config: Path | str | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    from memoriter.config import load

    given = {"workspace": workspace, "home": home, "agent": agent}
    arguments = {key: value for key, value in given.items() if value is not None} | dict(overrides or {})
    return load(config=Path(config) if config else None, arguments=arguments)


def _with_slot(settings: Settings, slot: str | None) -> Settings:
    """The settings with this plugin in the slot, unless the owner has named one."""
    if slot is None or settings.origin(SLOT) != "default":
        return settings
    slots = settings.plugins.slots.model_copy(update={"memory": slot})
    return settings.model_copy(update={"plugins": settings.plugins.model_copy(update={"slots": slots})})
