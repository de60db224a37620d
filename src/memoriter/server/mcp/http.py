"""Streamable HTTP: one request in, one answer or a stream of events out, nothing kept between.

Who may come in at all (tokens, hosts, origins, rates) is decided by the gateway that mounts this. A call of a tool
beyond what was granted is answered with 403 before it reaches the protocol.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from mcp.server.streamable_http_manager import RequestBodyLimitMiddleware, StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from memoriter.server.mcp.server import McpServer


class McpHttpApp:
    """An ASGI application, to be mounted as the endpoint of one route and run for as long as the gateway runs.

    ``Route("/mcp", endpoint=app)``, and ``async with app.running():`` in the gateway's lifespan. It can be run once.
    """

    def __init__(self, server: McpServer, *, max_body: int) -> None:
        self._server = server
        self._manager = StreamableHTTPSessionManager(
            server.server, stateless=True, max_request_body_size=max_body
        )
        self._app = RequestBodyLimitMiddleware(self._checked, max_body)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve within this context; requests that still run at its end are cancelled."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._app(scope, receive, send)

    async def _checked(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._manager.handle_request(scope, receive, send)
            return
        first = await receive()  # the whole body: it was gathered, and found small enough
        refusal = self._refusal(first.get("body", b""))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        waiting = [first]

        async def again() -> Message:
            return waiting.pop() if waiting else await receive()

        await self._manager.handle_request(scope, again, send)

    def _refusal(self, body: bytes) -> JSONResponse | None:
        try:
            asked = json.loads(body)
            if asked["method"] != "tools/call":
                return None
            self._server.refuse_beyond_access(str(asked["params"]["name"]))
        except MCPError as error:
            said = {"code": error.code, "message": error.message}
            return JSONResponse({"jsonrpc": "2.0", "id": asked.get("id"), "error": said}, 403)
        except (ValueError, TypeError, KeyError, RecursionError):
            return None  # the protocol has its own words for what is not a request
        return None
