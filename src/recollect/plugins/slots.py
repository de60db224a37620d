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
    try:
        found = point.load()
        plugin = found() if isinstance(found, type) or not isinstance(found, Plugin) else found
    except Exception as error:  # it is somebody else's code
        raise ConfigError(
            f"The memory plugin {point.name!r} ({point.value}) cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(plugin, Plugin):
        raise ConfigError(
            f"The memory plugin {point.name!r} ({point.value}) has no name, tools and register: it is no plugin."
        )
    return plugin
