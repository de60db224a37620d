"""MCP behind the gateway: with the same guard, the same tokens and all agents.

The `mcp` package takes most of a second to import, so it is imported when the first MCP client connects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from memoriter.errors import MemoriterError
from memoriter.server import mcp
from memoriter.server.http.responses import Refused
from memoriter.server.mcp.results import granted_access, session_key

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from memoriter.agent import Agent
    from memoriter.config.gateway import GatewayLimits
    from memoriter.server.http.gateway import Agents
    from memoriter.server.http.guard import RequestRecord
    from memoriter.server.http.limits import WorkerLimit
    from memoriter.server.mcp.server import McpHttpApp
    from memoriter.tools.tool import Tool

T = TypeVar("T")

#: Called with the agent, the operation, its outcome and the seconds.
CountOperation = Callable[[str, str, str, float], None]

_record: ContextVar[RequestRecord] = ContextVar("memoriter_http_record")


class CallRefused(MemoriterError):
    """A call that the gateway does not run, or does not wait for any longer."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class McpMount:
    """The ASGI application of the `/mcp` route."""

    def __init__(
        self,
        agents: Agents,
        operations: Mapping[str, Tool],
        workers: WorkerLimit,
        limits: GatewayLimits,
        count_operation: CountOperation,
    ) -> None:
        self._agents = agents
        self._operations = operations
        self._workers = workers
        self._limits = limits
        self._count_operation = count_operation
        self._opening = asyncio.Lock()
        self._app: McpHttpApp | None = None
        self._running: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._active_requests = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request with the access of its caller."""
        if self._closing.is_set():
            raise Refused(503, "shutting_down", "The gateway is shutting down.")
        record: RequestRecord = scope["state"]["record"]
        assert record.caller is not None
        app = await self._open()
        headers = dict(scope["headers"])
        granted_access.set(record.caller.access)
        session_key.set(headers.get(b"x-memoriter-session", b"").decode("latin-1") or None)
        _record.set(record)
        self._active_requests += 1
        self._idle.clear()
        try:
            await app(scope, receive, send)
        finally:
            self._active_requests -= 1
            if not self._active_requests:
                self._idle.set()

    def shut_down(self) -> None:
        """Refuse new requests. Running requests still get their responses."""
        self._closing.set()

    async def close(self) -> None:
        """Wait for running requests, then close."""
        self._closing.set()
        if self._running:
            with suppress(asyncio.CancelledError):
                await self._running

    async def _open(self) -> McpHttpApp:
        async with self._opening:
            if self._app is None:
                server = await asyncio.to_thread(
                    mcp.build, self._agent, table=self._operations, run=self._run_call, on_call=self._on_call
                )
                app = await asyncio.to_thread(server.asgi, max_body=self._limits.body_bytes)
                started = asyncio.Event()
                self._running = asyncio.create_task(self._run(app, started))
                await started.wait()
                self._app = app
            return self._app

    async def _run(self, app: McpHttpApp, started: asyncio.Event) -> None:
        # One task must enter and leave the context.
        async with app.running():
            started.set()
            await self._closing.wait()
            await self._idle.wait()  # leaving the context cancels running requests

    def _agent(self) -> Agent:
        name = _record.get().agent
        assert name is not None
        return self._agents[name]()

    def _on_call(self, name: str, outcome: str, seconds: float) -> None:
        agent = _record.get().agent
        assert agent is not None
        self._count_operation(agent, name, outcome, seconds)

    async def _run_call(self, call: Callable[[], T]) -> T:
        """Run a call within the limits of the gateway: threads and time."""
        try:
            async with asyncio.timeout(max(0.0, self._limits.timeout_s - _record.get().seconds)):
                return await self._workers.run(call)
        except TimeoutError:
            raise CallRefused(
                "timeout", f"The request took longer than {self._limits.timeout_s:g} s."
            ) from None
        except Refused as refused:
            raise CallRefused(refused.code, refused.message) from None
