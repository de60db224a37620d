"""The request guard: checks every request before any route handles it.

It checks, in this order, the Host header, the Origin header, the caller (a token, or the cookie of the page), the rate
limit, the agent, and whether the caller has access to the operation. The table of operations says which access an
operation requires. The guard then limits the size of the body and the duration of the request, and adds the security
headers to every response.
"""

from __future__ import annotations

import asyncio
import math
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memoriter import logs
from memoriter.server.http.auth import AllowedHosts, Caller
from memoriter.server.http.events import SEND_TIMEOUT_S
from memoriter.server.http.limits import BodyLimit, RateLimiter, too_large
from memoriter.server.http.responses import SECURITY_HEADERS, Refused, not_found
from memoriter.tools.table import OPERATIONS
from memoriter.tools.tool import ACCESS, grants

if TYPE_CHECKING:
    from memoriter.server.http.gateway import Gateway

log = logs.get("http")

#: Routes without a token. `/healthz` and `/health` return one word, and `/open` checks a ticket.
PUBLIC_PATHS = frozenset({"/healthz", "/health", "/open"})
EVENTS_PATH = "/v1/events"
#: The files of the page.
STATIC_PREFIX = "/static/"
SAFE_METHODS = frozenset({"GET", "HEAD"})
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f]")

NOT_SIGNED_IN_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>memoriter</title>
<h1>memoriter</h1>
<p>To open this page, run <code>memoriter open</code> and follow the link that it prints.</p>
<p lang="zh">请运行 <code>memoriter open</code>，然后打开它输出的链接。</p>
</html>
"""


@dataclass(slots=True)
class RequestRecord:
    """The facts about a request for the log and the metrics. They contain no user text."""

    method: str
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    started_at: float = field(default_factory=time.perf_counter)
    caller: Caller | None = None
    agent: str | None = None
    operation: str | None = None
    #: The pattern from the table of routes.
    route: str = "other"
    status: int = 0
    outcome: str | None = None

    @property
    def seconds(self) -> float:
        """Return the time since the request started."""
        return time.perf_counter() - self.started_at


class RequestGuard:
    """An ASGI application that checks each request before it passes it on, and observes its end."""

    def __init__(
        self, app: ASGIApp, gateway: Gateway, hosts: AllowedHosts, *, clock: Callable[[], float]
    ) -> None:
        self._app = app
        self._gateway = gateway
        self._hosts = hosts
        self._limits = limits = gateway.limits
        self._rate = RateLimiter(limits.rate, limits.burst, clock=clock)
        self.bodies = BodyLimit(limits.body_bytes, limits.timeout_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        record = RequestRecord(scope["method"])
        scope.setdefault("state", {})["record"] = record
        scope["app"] = self  # without one, routes answer unknown paths themselves
        sender = _Sender(send, record)
        try:
            await self._check_and_pass_on(scope, receive, sender, record)
        except Exception as error:  # noqa: BLE001
            refused = self._refusal(error, record)
            record.status = refused.status
            if not sender.has_started:  # otherwise the response can only be cut off
                await refused.response()(scope, receive, sender)
        finally:
            record.route = self._route(scope, record.operation)
            self._gateway.observe(record)

    async def _check_and_pass_on(
        self, scope: Scope, receive: Receive, send: _Sender, record: RequestRecord
    ) -> None:
        path: str = scope["path"]
        headers = RequestHeaders(scope)
        self._check_host(headers)
        if _CONTROL_CHARACTERS.search(path):  # the router's patterns may ignore a trailing newline
            raise not_found()
        if path not in PUBLIC_PATHS:
            record.caller = self._caller(scope, headers)
            if record.caller is None:
                challenge = {"www-authenticate": "Bearer"}
                if "text/html" in (headers.single("accept") or "") or path == "/":
                    await HTMLResponse(NOT_SIGNED_IN_PAGE, 401, challenge)(scope, receive, send)
                    return
                message = "Missing or invalid token. Send it as `Authorization: Bearer <token>`."
                raise Refused(401, "unauthorized", message, challenge)
            record.caller = _lowered(record.caller, headers.single("x-memoriter-access"))
            if not path.startswith(STATIC_PREFIX):  # a browser requests dozens of files together
                self._check_rate(record.caller)
            self._check_agent(scope, headers, record)
        await self._check_size(headers, receive)
        async with asyncio.timeout(self._timeout_s(path)):
            await self._app(scope, self.bodies.limit(receive), send)

    def _refusal(self, error: Exception, record: RequestRecord) -> Refused:
        if isinstance(error, Refused):
            return error
        if isinstance(error, TimeoutError):
            # The connection is closed because more of the body may follow.
            message = f"The request took longer than {self._limits.timeout_s:g} s."
            return Refused(504, "timeout", message, {"connection": "close"})
        if isinstance(error, HTTPException):
            if error.status_code == 404:
                return not_found()
            return Refused(405, "method_not_allowed", "Method not allowed.", error.headers)
        # A bug: the client gets one sentence, the log gets the trace.
        log.exception("a request failed", extra={"fields": {"request": record.id}})
        return Refused(500, "internal_error", "The gateway failed. Its log has the details.")

    def shut_down(self) -> None:
        """Stop waiting for request bodies."""
        self.bodies.shut_down()

    def _timeout_s(self, path: str) -> float | None:
        if path == EVENTS_PATH:
            return None  # open until the client disconnects
        # A mount reports a timeout in its own protocol, and needs a moment to send it.
        return self._limits.timeout_s + (SEND_TIMEOUT_S if path in self._gateway.mounts else 0)

    def _check_host(self, headers: RequestHeaders) -> None:
        if not self._hosts.allows_host(headers.single("host")):
            message = "Host header not allowed. Add it to `gateway.allowed_hosts`."
            raise Refused(403, "host_not_allowed", message)
        if not self._hosts.allows_origin(headers.single("origin")):
            message = "Origin not allowed. Pages of other sites may not call the gateway."
            raise Refused(403, "origin_not_allowed", message)

    def _caller(self, scope: Scope, headers: RequestHeaders) -> Caller | None:
        authorization = headers.single("authorization")
        if authorization is not None:
            scheme, _, token = authorization.partition(" ")
            return (
                self._gateway.tokens.caller(token.strip()) if scheme.lower() in {"bearer", "token"} else None
            )
        caller = self._gateway.browsers.caller(headers.cookie(self._gateway.browsers.cookie))
        if caller and scope["method"] not in SAFE_METHODS and headers.single("origin") is None:
            message = "Requests authenticated by cookie must send an Origin header."
            raise Refused(403, "origin_required", message)
        return caller

    def _check_rate(self, caller: Caller) -> None:
        wait_s = math.ceil(self._rate.take(caller.id))
        if wait_s:
            message = f"Too many requests. Try again in {wait_s} s."
            raise Refused(429, "rate_limited", message, {"retry-after": str(wait_s)})

    async def _check_size(self, headers: RequestHeaders, receive: Receive) -> None:
        declared = headers.single("content-length") or "0"
        if not declared.isascii() or not declared.isdigit():
            raise Refused(400, "bad_header", "The content-length header is not a number.")
        if int(declared[:20]) > self._limits.body_bytes:
            if headers.single("expect") is None:  # with `Expect`, the client has not sent the body yet
                await self.bodies.discard(receive)
            raise too_large(self._limits.body_bytes)

    def _check_agent(self, scope: Scope, headers: RequestHeaders, record: RequestRecord) -> None:
        """Check the caller's access to the agent and the operation. An agent that it may not see does not exist."""
        assert record.caller is not None
        agent, operation = self._target(scope, headers)
        if agent is None:
            return
        if agent not in self._gateway.agents or not record.caller.may_see(agent):
            raise Refused(404, "unknown_agent", "Agent not found. GET /v1/agents lists all agents.")
        record.agent = agent
        if operation is None:
            return
        tool = OPERATIONS.get(operation)
        if tool is None:
            message = "Operation not found. GET /v1/operations lists all operations."
            raise Refused(404, "unknown_operation", message)
        record.operation = tool.name
        granted = record.caller.access
        if not grants(granted, tool.access):
            message = f"{tool.name} requires {tool.access} access. This caller has {granted} access."
            details = {"operation": tool.name, "required": tool.access, "granted": granted}
            raise Refused(403, "forbidden", message, details=details)

    def _target(self, scope: Scope, headers: RequestHeaders) -> tuple[str | None, str | None]:
        """Return the agent and the operation that a request names. None if it is not about a single one."""
        path: str = scope["path"]
        if path.startswith("/v1/agents/"):
            agent, slash, operation = path.removeprefix("/v1/agents/").partition("/")
            return agent, operation if slash else None
        if path == EVENTS_PATH:
            named = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("agent")
            return named[0] if named else self._gateway.agents.default, None
        if path in self._gateway.mounts:
            return headers.single("x-memoriter-agent") or self._gateway.agents.default, None
        return None, None

    def _route(self, scope: Scope, operation: str | None) -> str:
        """Return the pattern of the route. There is a fixed number of them, and none contains user text."""
        path: str = scope["path"]
        if operation is not None:
            return f"/v1/agents/{{agent}}/{operation}"
        if path == EVENTS_PATH or path in self._gateway.mounts:
            return path  # an ASGI application of its own
        return getattr(scope.get("route"), "path", "other")


class RequestHeaders:
    """The headers of a request. A duplicate of a header that matters for security is refused."""

    def __init__(self, scope: Scope) -> None:
        self._headers: list[tuple[bytes, bytes]] = scope["headers"]

    def single(self, name: str) -> str | None:
        """Return the value of a header, or None."""
        key = name.encode()
        values = [value for other, value in self._headers if other.lower() == key]
        if len(values) > 1:
            raise Refused(400, "bad_header", f"The {name} header must be sent only once.")
        return values[0].decode("latin-1") if values else None

    def cookie(self, name: str) -> str:
        """Return the value of the first cookie with this name, or an empty string.

        Browsers send the cookies of all ports of this machine, and those of other programs may be malformed. They must
        not hide the gateway's cookie, so the standard parser is not used.
        """
        key = name.encode()
        for line in (value for other, value in self._headers if other == b"cookie"):
            for pair in line.split(b";"):
                other, _, value = pair.strip().partition(b"=")
                if other == key:
                    return value.decode("latin-1")
        return ""


def _lowered(caller: Caller, header: str | None) -> Caller:
    """Return a caller with the access of one request. A host may lower its own for an agent; it can never raise it."""
    asked = next((access for access in ACCESS if access == header), None)
    if header is not None and asked is None:
        raise Refused(400, "bad_request", f"`X-Memoriter-Access` must be one of {', '.join(ACCESS)}.")
    return caller if asked is None or grants(asked, caller.access) else replace(caller, access=asked)


class _Sender:
    """Sends a response with the headers that all responses have, and records its status."""

    def __init__(self, send: Send, record: RequestRecord) -> None:
        self._send = send
        self._record = record
        self.has_started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_started = True
            self._record.status = message["status"]
            headers = [(key.lower(), value) for key, value in message.get("headers", ())]
            names = {key for key, _ in headers}
            common = [
                *SECURITY_HEADERS,
                (b"cache-control", b"no-store"),
                (b"x-request-id", self._record.id.encode()),
            ]
            message = {
                **message,
                "headers": [*headers, *(header for header in common if header[0] not in names)],
            }
        await self._send(message)
