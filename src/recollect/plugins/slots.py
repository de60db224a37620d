"""What can fill the memory slot: our own plugins, and those that other packages offer.

Another package names an entry point in the group ``recollect.memory``; what it points at is a plugin, or a class or
function without arguments that makes one. It is loaded only when the slot names it. Which name that is, the settings
say.
"""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from recollect.config.slots import GROUP, OURS, offered
from recollect.errors import ConfigError

if TYPE_CHECKING:
    from recollect.plugins.bus import HookBus
    from recollect.service import MemoryService

NONE = "none"


@runtime_checkable
class Plugin(Protocol):
    """What fills the slot: it decides what happens by itself and which tools an agent has, never what is kept."""

    @property
    def name(self) -> str:
        """Its name in warnings."""

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that an agent gets while it is active."""

    def register(self, bus: HookBus, service: MemoryService) -> None:
        """Say on which events it acts."""


def known_plugins() -> tuple[str, ...]:
    """Every name that the slot takes."""
    return (*OURS, *offered())


def load_plugin(name: str) -> Plugin | None:
    """The plugin of this name; None for `none`. Raises `ConfigError`, one sentence."""
    if name == NONE:
        return None
    from recollect.plugins.own import OWN

    if name in OWN:
        return OWN[name]
    points = [point for point in metadata.entry_points(group=GROUP) if point.name == name]
    if not points:
        raise ConfigError(f"There is no memory plugin {name!r}; there are {', '.join(known_plugins())}.")
    return _loaded(points[0])


def _loaded(point: metadata.EntryPoint) -> Plugin:
    what = f"The memory plugin {point.name!r} ({point.value})"
    try:
        found = point.load()
        plugin = found if isinstance(found, Plugin) and not isinstance(found, type) else found()
    except Exception as error:  # it is somebody else's code
        raise ConfigError(f"{what} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(plugin, Plugin) or not callable(plugin.register):
        raise ConfigError(f"{what} is no plugin: it needs a name, tools and register.")
    if not isinstance(plugin.tools, tuple) or not all(isinstance(name, str) for name in plugin.tools):
        raise ConfigError(f"{what} is no plugin: its tools must be a tuple of names.")
    return plugin
