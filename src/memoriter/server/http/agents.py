"""The agents of a gateway. Each memory opens at its first use and closes with the gateway.

The settings at the start of the gateway decide which agents exist; a caller cannot add any. Other settings may change
while the gateway runs and apply from the next request on. If a memory cannot be opened, the operation reports why, and
the next one tries again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from memoriter import logs
from memoriter.agent import ReloadingAgent
from memoriter.agent.service import Synced
from memoriter.config import Settings, load
from memoriter.config.layers import WORKSPACE_FILE
from memoriter.errors import MemoriterError
from memoriter.records import ProgressCallback

log = logs.get("http.agents")

#: A memory with old settings is closed after this time, because requests may still use it.
GRACE_S = 90.0


@dataclass(frozen=True, slots=True)
class SettingsLoader:
    """Loads the current settings of an agent, from the same sources as those of the gateway."""

    #: The settings of the gateway.
    settings: Settings
    config: Path | None = None
    arguments: Mapping[str, object] = field(default_factory=dict)

    def __call__(self, agent: str) -> Settings:
        """Return the settings of an agent. Raise if they are wrong."""
        own: dict[str, object] = {"agent": agent, "home": self.settings.home}
        if not self.settings.store.is_shared:  # a server holds the notes of every agent
            own["workspace"] = self.workspaces[agent]
        return load(config=self.config, arguments={**self.arguments, **own})

    @property
    def workspaces(self) -> dict[str, Path]:
        """Return the workspace of every agent."""
        return {self.settings.agent: self.settings.workspace, **self.settings.gateway.agents}

    def files(self, agent: str) -> tuple[Path, ...]:
        """Return the files from which the settings of an agent are loaded."""
        return (
            self.config or self.settings.home / "config.yaml",
            self.workspaces[agent] / WORKSPACE_FILE,
        )


class Agents(Mapping[str, ReloadingAgent]):
    """All agents of a gateway, by name."""

    def __init__(
        self,
        load: SettingsLoader,
        on_sync: Callable[[str, Synced], None],
        on_progress: Callable[[str], ProgressCallback],
    ) -> None:
        self.default = load.settings.agent
        self.workspaces = load.workspaces
        self._load = load
        self._agents = {
            name: ReloadingAgent(
                partial(load, name),
                files=load.files(name),
                on_sync=partial(on_sync, name),
                on_progress=on_progress(name),
                grace_s=GRACE_S,
            )
            for name in self.workspaces
        }

    def __getitem__(self, name: str) -> ReloadingAgent:
        return self._agents[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._agents)

    def __len__(self) -> int:
        return len(self._agents)

    def slot(self, name: str) -> str | None:
        """Return the plugin in an agent's memory slot. None while its settings cannot be read."""
        agent = self[name].current
        try:
            settings = agent.memory.settings if agent else self._load(name)
        except MemoriterError:
            return None
        return settings.plugins.slots.memory

    def sizes(self) -> dict[str, dict[str, float]]:
        """Return the sizes of the open memories, by metric and agent."""
        sizes: dict[str, dict[str, float]] = {"memoriter_chunks": {}, "memoriter_entries": {}}
        for name, reloading in self.items():
            agent = reloading.current
            if agent is None:
                continue
            try:
                total = agent.memory.entries.stats().total if agent.memory.has_entries else 0
                sizes["memoriter_chunks"][name] = agent.memory.status().chunks
            except MemoriterError:
                continue
            if isinstance(total, int):
                sizes["memoriter_entries"][name] = total
        return sizes

    def close(self) -> None:
        """Close all agents. A failure of one does not keep the others open."""
        for name, agent in self._agents.items():
            try:
                agent.close()
            except Exception:
                log.exception("agent %s: cannot close its memory", name)
