"""MCP over streamable HTTP: each request gets one response or a stream of events. No state is kept.

The gateway that mounts it checks tokens, hosts, origins and rates. A call of a tool that the caller may not use gets
status 403 before it reaches the protocol.
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
    """An ASGI application for one route. It runs once, for as long as its gateway.

    Use ``Route("/mcp", endpoint=app)``, and ``async with app.running():`` in the lifespan of the gateway.
    """

    def __init__(self, server: McpServer, *, max_body: int) -> None:
        self._server = server
        self._manager = StreamableHTTPSessionManager(
            server.server, stateless=True, max_request_body_size=max_body
        )
        self._app = RequestBodyLimitMiddleware(self._check_and_handle, max_body)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve within this context. Requests that are running at its end are cancelled."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        await self._app(scope, receive, send)

    async def _check_and_handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._manager.handle_request(scope, receive, send)
            return
        first = await receive()  # the complete body: the middleware has collected it
        refusal = self._refusal(first.get("body", b""))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        messages = [first]

        async def receive_again() -> Message:
            return messages.pop() if messages else await receive()

        await self._manager.handle_request(scope, receive_again, send)

    def _refusal(self, body: bytes) -> JSONResponse | None:
        try:
            request = json.loads(body)
            if request["method"] != "tools/call":
                return None
            self._server.check_access(str(request["params"]["name"]))
        except MCPError as error:
            details = {"code": error.code, "message": error.message, "data": error.data}
            return JSONResponse({"jsonrpc": "2.0", "id": request.get("id"), "error": details}, 403)
        except (ValueError, TypeError, KeyError, RecursionError):
            return None  # the protocol reports a malformed request itself
        return None
