"""Connections of tests to a server: in the process or over HTTP, with the SDK's client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any, TypeVar

import anyio
import uvicorn
from mcp import Client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from starlette.applications import Starlette
from starlette.routing import Route

from memoriter.agent import Agent
from memoriter.extensions.mcp.results import granted_access
from memoriter.extensions.mcp.server import McpServer
from memoriter.extensions.mcp.transports import McpHttpApp, serve_lines

T = TypeVar("T")
OpenAgent = Callable[..., Agent]
Talk = Callable[[Callable[[Client], Awaitable[Any]]], Any]

TRANSPORTS = ("memory 2026-07-28", "memory 2025-11-25", "http 2026-07-28", "http 2025-11-25")


class SetAccess:
    """Acts as the gateway: sets the access of the caller from a header."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        access = dict(scope["headers"]).get(b"x-access", b"write").decode()
        token = granted_access.set(access)
        try:
            await self._app(scope, receive, send)
        finally:
            granted_access.reset(token)


@contextmanager
def over_http(server: McpServer) -> Iterator[str]:
    """Run the server on a free port, in a thread. Yield its address."""
    mcp_app = McpHttpApp(server.protocol, max_body=4 * 1024 * 1024)
    app = Starlette(routes=[Route("/mcp", endpoint=SetAccess(mcp_app))])
    config = uvicorn.Config(app, port=0, ws="none", log_level="warning")
    running = uvicorn.Server(config)
    socket = config.bind_socket()
    socket.listen()  # a client that is faster than the server's thread waits instead of being refused
    thread = threading.Thread(target=running.run, args=([socket],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}/mcp"
    finally:
        running.should_exit = True
        thread.join(120)
        socket.close()


@asynccontextmanager
async def in_process(server: McpServer) -> AsyncIterator[Any]:
    """Connect the SDK's client to a server in this process. They exchange lines."""
    asked, answered = (anyio.create_memory_object_stream[Any](64) for _ in range(2))

    async def read_line() -> bytes:
        try:
            message = (await asked[1].receive()).message
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            return b""
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()

    async def write_line(line: bytes) -> None:
        await answered[0].send(SessionMessage(jsonrpc_message_adapter.validate_json(line)))

    serving = asyncio.create_task(serve_lines(server.protocol, read_line, write_line))
    try:
        yield answered[1], asked[0]
    finally:
        serving.cancel()
        for stream in (*asked, *answered):
            stream.close()


def talk_to(server: McpServer | str, say: Callable[[Client], Awaitable[T]], mode: str = "auto") -> T:
    """Connect with the SDK's client. Return what the function returns."""

    async def talking() -> T:
        target = server if isinstance(server, str) else in_process(server)
        async with Client(target, mode=mode) as client:
            return await say(client)

    return asyncio.run(talking())


def reached(server: McpServer, transport: str) -> AbstractContextManager[Talk]:
    """Return a function that talks to the server over a transport."""

    @contextmanager
    def reaching() -> Iterator[Talk]:
        kind, version = transport.split()
        mode = "auto" if version == "2026-07-28" else "legacy"
        if kind == "memory":
            yield lambda say: talk_to(server, say, mode)
        else:
            with over_http(server) as url:
                yield lambda say: talk_to(url, say, mode)

    return reaching()
