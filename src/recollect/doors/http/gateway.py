"""One gateway: its agents, its tokens, its guard and its application, joined."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from recollect.doors.http import app as routes
from recollect.doors.http.agents import Agents, Load
from recollect.doors.http.guard import Guard, Visit
from recollect.doors.http.limits import Workers
from recollect.doors.http.places import Places
from recollect.doors.http.tickets import Browsers
from recollect.doors.http.tokens import Tokens
from recollect.doors.tooling import Outcome, Result, Tool

if TYPE_CHECKING:
    from fastapi import FastAPI

    from recollect.config import Settings


class Gateway:
    """Everything that serves, but for the socket."""

    def __init__(self, settings: Settings, load: Load, *, port: int) -> None:
        wanted = settings.gateway
        self.settings = settings
        self.tokens = Tokens(settings.home)
        self.browsers = Browsers(settings.home, port)
        self.agents = Agents(settings, load)
        self.workers = Workers(wanted.limits.at_once)
        self.well = True
        self.started: Callable[[], None] = lambda: None  #: called when requests can come
        self.asgi = Guard(
            routes.build(self),
            places=Places(wanted.host, port, wanted.allowed_hosts),
            tokens=self.tokens,
            sessions=self.browsers,
            agents=self.agents,
            default_agent=self.agents.default,
            limits=wanted.limits,
        )

    async def perform(
        self, visit: Visit, tool: Tool, given: Mapping[str, object], session: str | None
    ) -> tuple[Outcome, Result]:
        """Do one operation in a thread, for a caller who may."""
        live = self.agents[visit.agent or self.agents.default]
        outcome, result = await self.workers.run(lambda: routes.perform(live.memory, tool, given, session))
        visit.outcome = outcome
        return outcome, result

    def end_streams(self) -> None:
        """End what would last as long as its caller."""

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        """From the first request to the last."""
        threads = ThreadPoolExecutor(
            self.settings.gateway.limits.at_once, thread_name_prefix="recollect-http"
        )
        asyncio.get_running_loop().set_default_executor(threads)
        self.started()
        try:
            yield
        finally:
            await asyncio.to_thread(self.agents.close)
