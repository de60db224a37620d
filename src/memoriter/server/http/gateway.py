"""One gateway: its agents, which open at their first request, tokens, events, metrics, guard and application."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from starlette.types import Receive, Scope, Send

from memoriter import logs
from memoriter.agent import ReloadingAgent
from memoriter.agent.service import Synced
from memoriter.config import Settings, load
from memoriter.config.layers import WORKSPACE_FILE
from memoriter.errors import MemoriterError
from memoriter.extension import offers
from memoriter.memory import gateway_files
from memoriter.records import ProgressCallback
from memoriter.server.http import app, observe
from memoriter.server.http.auth import AllowedHosts, BrowserSessions, Caller, Tokens
from memoriter.server.http.events import Hub, watch_other_processes
from memoriter.server.http.guard import RequestGuard, RequestRecord
from memoriter.server.http.limits import WorkerLimit
from memoriter.server.http.observe import Metrics, progress_to, publish_sync, wrap_operations
from memoriter.tools.tool import Outcome, Result, Tool, writer
from memoriter.tools.toolbox import Toolbox

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
        return (self.config or self.settings.home / "config.yaml", self.workspaces[agent] / WORKSPACE_FILE)


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
            sizes["memoriter_entries"][name] = total
        return sizes

    def close(self) -> None:
        """Close all agents. A failure of one does not keep the others open."""
        for name, agent in self._agents.items():
            try:
                agent.close()
            except Exception:
                log.exception("agent %s: cannot close its memory", name)


class Mount(Protocol):
    """An ASGI application of an extension, which inherits this class.

    The guard has put caller and agent into ``scope["state"]["record"]``.
    """

    #: Whether it serves the paths below its own, by every method. The guard names no agent for them.
    has_paths: bool = False
    #: The methods of its own path, if it does not have paths.
    methods: tuple[str, ...] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""

    def shut_down(self) -> None:
        """Refuse new requests. Running requests still get their responses."""

    async def close(self) -> None:
        """Wait for running requests, then close."""


class Gateway:
    """Everything that serves requests, except for the socket."""

    def __init__(
        self, load: SettingsLoader, *, port: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        settings = load.settings
        options = settings.gateway
        self.limits = options.limits
        #: Called when the gateway accepts requests.
        self.on_ready: Callable[[], None] = lambda: None
        self.hub = Hub(options.limits.event_clients)
        self.metrics = Metrics()
        self.load = load
        self._closing = ExitStack()
        folder = self._closing.enter_context(gateway_files(settings))
        self.tokens = Tokens(folder)
        self.browsers = BrowserSessions(folder, port)
        self.agents = Agents(load, self._on_sync, lambda agent: progress_to(self.hub, agent))
        self.operations = wrap_operations(self.hub, content=options.trace_content)
        self.workers = WorkerLimit(options.limits.concurrency)
        self.mounts: dict[str, Mount] = {
            f"/{name}": offer.load()(self) for name, offer in offers("mounts").items()
        }
        hosts = AllowedHosts(options.host, port, options.allowed_hosts)
        self.asgi = RequestGuard(app.build(self), self, hosts, clock=clock)

    async def perform(
        self, record: RequestRecord, tool: Tool, arguments: Mapping[str, object], session: str | None
    ) -> tuple[Outcome, Result]:
        """Run an operation in a thread, for a caller that the guard has checked."""
        agent, caller = record.agent, record.caller
        assert agent is not None
        assert caller is not None

        def work() -> tuple[Outcome, Result]:
            writer.set(caller.name)
            table = {tool.name: self.operations[tool.name]}
            toolbox = Toolbox(
                lambda: self.agents[agent]().memory,
                session=session,
                tools=table,
                access=caller.access,
                codes=True,
            )
            return toolbox.outcome(tool.name, arguments)

        record.outcome = "cancelled"
        try:
            outcome, result = await self.workers.run(work)
            record.outcome = outcome
        finally:
            self.metrics.count_operation(agent, tool.name, record.outcome, record.seconds)
        return outcome, result

    def is_valid(self, caller: Caller) -> bool:
        """Return whether the token or the browser session of an earlier request is still valid."""
        return self.browsers.is_valid(caller) if caller.by_cookie else self.tokens.is_valid(caller)

    @property
    def health(self) -> str:
        """Return whether every memory that was requested could be opened: "ok" or "degraded"."""
        return "degraded" if any(agent.error is not None for agent in self.agents.values()) else "ok"

    def wake(self, agent: str) -> None:
        """Open a memory in the background, so that it watches files and answers quickly."""
        self.agents[agent].wake()

    def end_streams(self) -> None:
        """End event streams and pending bodies, which would otherwise keep the gateway from shutting down."""
        self.asgi.shut_down()
        self.hub.close()
        for mount in self.mounts.values():
            mount.shut_down()

    @asynccontextmanager
    async def lifespan(self, _: object) -> AsyncIterator[None]:
        """Run from before the first request until after the last."""
        threads = ThreadPoolExecutor(self.limits.concurrency, thread_name_prefix="memoriter-http")
        asyncio.get_running_loop().set_default_executor(threads)
        watching = asyncio.create_task(watch_other_processes(self.hub, self.agents))
        self.wake(self.agents.default)
        self.on_ready()
        try:
            yield
        finally:
            watching.cancel()
            for mount in self.mounts.values():
                await mount.close()
            await asyncio.to_thread(self.agents.close)
            self._closing.close()

    def _on_sync(self, agent: str, synced: Synced) -> None:
        outcome = "failed" if synced.error else "ok"
        self.metrics.count_sync(agent, outcome, synced.report.seconds if synced.report else 0.0)
        publish_sync(self.hub, agent, synced)

    def observe(self, record: RequestRecord) -> None:
        """Count and log a request that has ended."""
        self.metrics.count_request(record.route, record.status)
        observe.log_request(record)
