"""MCP behind the gateway: the same guard, the caller's own access, any of the agents.

The protocol's package takes most of a second to load, so it is loaded when the first client comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from memoriter.errors import MemoriterError
from memoriter.server import mcp
from memoriter.server.http.responses import Receive, Refused, Scope, Send
from memoriter.server.mcp import access

if TYPE_CHECKING:
    from memoriter.agent import Agent
    from memoriter.config.gateway import GatewayLimits
    from memoriter.server.http.agents import Agents
    from memoriter.server.http.guard import Visit
    from memoriter.server.http.limits import Workers
    from memoriter.server.mcp.http import HttpDoor
    from memoriter.tools.tool import Tool

T = TypeVar("T")

_visit: ContextVar[Visit] = ContextVar("memoriter_http_visit")


class McpDoor:
    """An ASGI application for the one route of the protocol."""

    def __init__(
        self, agents: Agents, table: Mapping[str, Tool], workers: Workers, limits: GatewayLimits
    ) -> None:
        self._agents = agents
        self._table = table
        self._workers = workers
        self._limits = limits
        self._opening = asyncio.Lock()
        self._door: HttpDoor | None = None
        self._running: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self._answering = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request in the name of its caller."""
        if self._ended.is_set():
            raise Refused(503, "The gateway is ending.")
        visit: Visit = scope["state"]["visit"]
        assert visit.caller is not None
        door = await self._opened()
        headers = dict(scope["headers"])
        access.granted.set(visit.caller.access)
        access.session.set(headers.get(b"x-memoriter-session", b"").decode("latin-1") or None)
        _visit.set(visit)
        self._answering += 1
        self._idle.clear()
        try:
            await door(scope, receive, send)
        finally:
            self._answering -= 1
            if not self._answering:
                self._idle.set()

    def end(self) -> None:
        """Take no more; what runs is answered."""
        self._ended.set()

    async def close(self) -> None:
        """End for good."""
        self._ended.set()
        if self._running:
            with suppress(asyncio.CancelledError):
                await self._running

    async def _opened(self) -> HttpDoor:
        async with self._opening:
            if self._door is None:
                server = await asyncio.to_thread(mcp.build, self._host, table=self._table, run=self._run_call)
                door = await asyncio.to_thread(server.asgi, max_body=self._limits.body_bytes)
                begun = asyncio.Event()
                self._running = asyncio.create_task(self._run(door, begun))
                await begun.wait()
                self._door = door
            return self._door

    async def _run(self, door: HttpDoor, begun: asyncio.Event) -> None:
        # Entered and left by one task, as the protocol's package wants it.
        async with door.running():
            begun.set()
            await self._ended.wait()
            await self._idle.wait()  # leaving cancels what still runs

    def _host(self) -> Agent:
        agent = _visit.get().agent
        assert agent is not None
        return self._agents[agent].host()

    async def _run_call(self, call: Callable[[], T]) -> T:
        """Run a call as operations are run: so many at once, and so long."""
        try:
            async with asyncio.timeout(max(0.0, self._limits.timeout_s - _visit.get().seconds)):
                return await self._workers.run(call)
        except TimeoutError:
            raise MemoriterError(f"This took longer than {self._limits.timeout_s:g} s.") from None
        except Refused as refused:
            raise MemoriterError(refused.sentence) from None
