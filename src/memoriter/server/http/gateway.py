"""One gateway: its agents, its tokens, its events, its guard and its application, joined."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from memoriter.server.http import access_log, app
from memoriter.server.http.agents import Agents, Load
from memoriter.server.http.auth import Browsers, Caller, Places, Tokens
from memoriter.server.http.events import Hub, look_elsewhere
from memoriter.server.http.guard import Guard, Visit
from memoriter.server.http.limits import Workers
from memoriter.server.http.mcp_mount import McpDoor
from memoriter.server.http.metrics import Metrics
from memoriter.server.http.observe import observed, progress_to, publish_sync
from memoriter.tools.tool import Outcome, Result, Tool
from memoriter.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from memoriter.agent.service import Synced


class Gateway:
    """Everything that serves, but for the socket."""

    def __init__(self, load: Load, *, port: int, clock: Callable[[], float] = time.monotonic) -> None:
        settings = load.settings
        wanted = settings.gateway
        self.limits = wanted.limits
        self.started: Callable[[], None] = lambda: None  #: called when requests can come
        self.hub = Hub(wanted.limits.event_clients)
        self.metrics = Metrics()
        self.tokens = Tokens(settings.home)
        self.browsers = Browsers(settings.home, port)
        self.agents = Agents(load, self._synced, lambda agent: progress_to(self.hub, agent))
        self.table = observed(self.hub, content=wanted.trace_content)
        counted = observed(self.hub, content=wanted.trace_content, counting=self.metrics.operation)
        self.workers = Workers(wanted.limits.concurrency)
        self.mcp = McpDoor(self.agents, counted, self.workers, wanted.limits)
        self.asgi = Guard(
            app.build(self),
            places=Places(wanted.host, port, wanted.allowed_hosts),
            tokens=self.tokens,
            sessions=self.browsers,
            agents=self.agents,
            default_agent=self.agents.default,
            limits=wanted.limits,
            observe=self._visited,
            clock=clock,
        )

    async def perform(
        self, visit: Visit, tool: Tool, given: Mapping[str, object], session: str | None
    ) -> tuple[Outcome, Result]:
        """Do one operation in a thread, for a caller who may."""
        agent, caller = visit.agent, visit.caller
        assert agent is not None
        assert caller is not None
        live = self.agents[agent]

        def work() -> tuple[Outcome, Result]:
            table = {tool.name: self.table[tool.name]}
            box = Toolbox(live.memory, session_key=session, tools=table, access=caller.access)
            return box.outcome(tool.name, given)

        visit.outcome = "given_up"
        try:
            outcome, result = await self.workers.run(work)
            visit.outcome = outcome
        finally:
            self.metrics.operation(agent, tool.name, visit.outcome, visit.seconds)
        return outcome, result

    def still(self, caller: Caller) -> bool:
        """Whether a caller of an earlier moment is still let in."""
        return self.browsers.still(caller) if caller.by_cookie else self.tokens.still(caller)

    @property
    def well(self) -> bool:
        """Whether every memory that was asked could be opened."""
        return all(live.error is None for live in self.agents.values())

    def measured(self) -> dict[str, dict[str, float]]:
        """What the memories hold that are open."""
        sizes: dict[str, dict[str, float]] = {}
        for name, live in self.agents.items():
            for measure, value in live.sizes().items():
                sizes.setdefault(measure, {})[name] = value
        return sizes

    def wake(self, agent: str) -> None:
        """Open a memory in the background, so that it is watched and answers at once."""
        threading.Thread(target=self.agents[agent].host, name="memoriter-wake", daemon=True).start()

    def end_streams(self) -> None:
        """End what would last as long as its caller."""
        self.asgi.end()
        self.hub.end()
        self.mcp.end()

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """From before the first request until after the last."""
        threads = ThreadPoolExecutor(self.limits.concurrency, thread_name_prefix="memoriter-http")
        asyncio.get_running_loop().set_default_executor(threads)
        looking = asyncio.create_task(look_elsewhere(self.hub, self.agents))
        self.wake(self.agents.default)
        self.started()
        try:
            yield
        finally:
            looking.cancel()
            await self.mcp.close()
            await asyncio.to_thread(self.agents.close)

    def _synced(self, agent: str, synced: Synced) -> None:
        outcome = "failed" if synced.error else "ok"
        self.metrics.sync(agent, outcome, synced.report.seconds if synced.report else 0.0)
        publish_sync(self.hub, agent, synced)

    def _visited(self, visit: Visit) -> None:
        self.metrics.request(visit.route, visit.status)
        access_log.note(visit)
