"""MCP behind the gateway: with the same guard, the same tokens and all agents.

The types of the protocol take a moment to import, so they are imported when the first MCP client connects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from memoriter.errors import MemoriterError
from memoriter.extensions.mcp.results import granted_access, session_key
from memoriter.server.http.gateway import Gateway, Mount
from memoriter.server.http.responses import Refused
from memoriter.tools.tool import writer

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from memoriter.agent import Agent
    from memoriter.extensions.mcp.transports import McpHttpApp
    from memoriter.server.http.guard import RequestRecord

T = TypeVar("T")

_record: ContextVar[RequestRecord] = ContextVar("memoriter_http_record")


class CallRefused(MemoriterError):
    """A call that the gateway does not run, or does not wait for any longer."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class McpMount(Mount):
    """The ASGI application of the `/mcp` route."""

    methods = ("POST",)

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._opening = asyncio.Lock()
        self._app: McpHttpApp | None = None
        self._is_closing = False
        self._active_requests = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request with the access of its caller."""
        if self._is_closing:
            raise Refused(503, "shutting_down", "The gateway is shutting down.")
        record: RequestRecord = scope["state"]["record"]
        assert record.caller is not None
        app = await self._open()
        headers = dict(scope["headers"])
        granted_access.set(record.caller.access)
        writer.set(record.caller.name)
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
        self._is_closing = True

    async def close(self) -> None:
        """Wait for running requests, then close."""
        self._is_closing = True
        await self._idle.wait()

    async def _open(self) -> McpHttpApp:
        async with self._opening:
            if self._app is None:
                self._app = await asyncio.to_thread(self._build)
            return self._app

    def _build(self) -> McpHttpApp:
        from memoriter.extensions.mcp.server import McpServer
        from memoriter.extensions.mcp.transports import McpHttpApp

        server = McpServer(
            self._agent, table=self._gateway.operations, run=self._run_call, on_call=self._on_call
        )
        return McpHttpApp(server.protocol, max_body=self._gateway.limits.body_bytes)

    def _agent(self) -> Agent:
        name = _record.get().agent
        assert name is not None
        return self._gateway.agents[name]()

    def _on_call(self, name: str, outcome: str, seconds: float) -> None:
        agent = _record.get().agent
        assert agent is not None
        self._gateway.metrics.count_operation(agent, name, outcome, seconds)

    async def _run_call(self, call: Callable[[], T]) -> T:
        """Run a call within the limits of the gateway: threads and time."""
        try:
            async with asyncio.timeout(max(0.0, self._gateway.limits.timeout_s - _record.get().seconds)):
                return await self._gateway.workers.run(call)
        except TimeoutError:
            raise CallRefused(
                "timeout", f"The request took longer than {self._gateway.limits.timeout_s:g} s."
            ) from None
        except Refused as refused:
            raise CallRefused(refused.code, refused.message) from None
