"""How tests talk to a server: in the process or over HTTP, by the SDK's own client, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any, TypeVar

import uvicorn
from mcp import Client
from starlette.applications import Starlette
from starlette.routing import Route

from memoriter.agent import Agent
from memoriter.server.mcp.server import McpServer
from memoriter.server.mcp.view import granted_access

T = TypeVar("T")
OpenHost = Callable[..., Agent]
Talk = Callable[[Callable[[Client], Awaitable[Any]]], Any]

WAYS = ("memory 2026-07-28", "memory 2025-11-25", "http 2026-07-28", "http 2025-11-25")


class Granting:
    """What stands before the door in a gateway: it says what the caller may do."""

    def __init__(self, door: Any) -> None:
        self._door = door

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope["headers"]).get(b"x-access", b"write").decode()
        token = granted_access.set(given)
        try:
            await self._door(scope, receive, send)
        finally:
            granted_access.reset(token)


@contextmanager
def over_http(server: McpServer) -> Iterator[str]:
    """The server on a port of this machine, in a thread; its address."""
    door = server.asgi()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with door.running():
            yield

    app = Starlette(routes=[Route("/mcp", endpoint=Granting(door))], lifespan=lifespan)
    config = uvicorn.Config(app, port=0, ws="none", lifespan="on", log_level="warning")
    running = uvicorn.Server(config)
    socket = config.bind_socket()
    thread = threading.Thread(target=running.run, args=([socket],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}/mcp"
    finally:
        running.should_exit = True
        thread.join(10)
        socket.close()


def talk_to(server: McpServer | str, say: Callable[[Client], Awaitable[T]], mode: str = "auto") -> T:
    """What was said, by the SDK's own client."""

    async def talking() -> T:
        target = server if isinstance(server, str) else server.server
        async with Client(target, mode=mode) as client:
            return await say(client)

    return asyncio.run(talking())


def reached(server: McpServer, way: str) -> AbstractContextManager[Talk]:
    """A way to talk to the server."""

    @contextmanager
    def reaching() -> Iterator[Talk]:
        transport, version = way.split()
        mode = "auto" if version == "2026-07-28" else "legacy"
        if transport == "memory":
            yield lambda say: talk_to(server, say, mode)
        else:
            with over_http(server) as url:
                yield lambda say: talk_to(url, say, mode)

    return reaching()
