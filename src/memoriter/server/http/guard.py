"""Who may do what: the one door before every route, whatever it serves.

In this order: the name by which we are called (Host), the page that calls (Origin), who calls (a token, or the cookie
of the page), how often, for which agent, and whether they may do this. What an operation needs is said by the table
of operations alone. Then the body is counted and the time is limited. Every answer leaves with the same headers.
"""

from __future__ import annotations

import asyncio
import math
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import parse_qs

from memoriter import logs
from memoriter.config.gateway import GatewayLimits
from memoriter.server.http.auth import Caller, Places, Tokens
from memoriter.server.http.events import SEND_S
from memoriter.server.http.limits import Bodies, Rate, too_large
from memoriter.server.http.responses import (
    BROKEN,
    SAFE,
    Message,
    Receive,
    Refused,
    Scope,
    Send,
    answer,
    refuse,
)
from memoriter.tools.table import OPERATIONS
from memoriter.tools.tool import grants

log = logs.get("http")

OPEN_TO_ALL = frozenset(
    {"/healthz", "/open"}
)  #: the one says nothing, the other asks for a ticket of its own
RAW = frozenset({"/v1/events", "/mcp"})  #: routes of applications of their own
FILES = "/static/"  #: what the page is made of
READING = frozenset({"GET", "HEAD"})
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")

NOT_OPENED = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>memoriter</title>
<h1>memoriter</h1>
<p>This page opens with a link that is made for you. Run <code>memoriter open</code> and follow what it prints.</p>
<p lang="zh">请运行 <code>memoriter open</code>，然后打开它给出的链接。</p>
</html>
""".encode()


class Sessions(Protocol):
    """Whose browser a cookie is."""

    cookie: str

    def caller(self, value: str) -> Caller | None:
        """Who shows this cookie."""


class AsgiApp(Protocol):
    """What stands behind the guard."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""


@dataclass(slots=True)
class Visit:
    """One request, as it is noted: never its texts."""

    method: str
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    began: float = field(default_factory=time.perf_counter)
    caller: Caller | None = None
    agent: str | None = None
    operation: str | None = None
    route: str = "other"  #: as the table of routes writes it
    status: int = 0
    outcome: str | None = None

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.perf_counter() - self.began


class Guard:
    """The door; ``observe`` is told of every visit when it is over."""

    def __init__(
        self,
        app: AsgiApp,
        *,
        places: Places,
        tokens: Tokens,
        sessions: Sessions,
        agents: Mapping[str, object],
        default_agent: str,
        limits: GatewayLimits,
        observe: Callable[[Visit], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._places = places
        self._tokens = tokens
        self._sessions = sessions
        self._agents = agents
        self._default = default_agent
        self._limits = limits
        self._rate = Rate(limits.rate, limits.burst, clock=clock)
        self._bodies = Bodies(limits.body_bytes, limits.timeout_s)
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or say why not."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        visit = Visit(scope["method"])
        scope.setdefault("state", {})["visit"] = visit
        guarded = _Answer(send, visit)
        try:
            await self._admit(scope, receive, guarded, visit)
        except Refused as refused:
            await guarded.instead(refused)
        except TimeoutError:
            late = f"This took longer than {self._limits.timeout_s:g} s."
            await guarded.instead(Refused(504, late, [(b"connection", b"close")]))  # more may be on its way
        except Exception:  # a mistake of ours is told in one sentence, and in full to the log
            log.exception("a request failed", extra={"fields": {"request": visit.id}})
            await guarded.instead(Refused(500, BROKEN))
        finally:
            visit.route = _route(scope, visit.operation)
            self._observe(visit)

    async def _admit(self, scope: Scope, receive: Receive, send: _Answer, visit: Visit) -> None:
        path: str = scope["path"]
        headers = Head(scope)
        self._check_place(headers)
        if _CONTROLS.search(path):  # a router's pattern may stop before the last of them
            raise Refused(404, "There is nothing here.")
        if path not in OPEN_TO_ALL:
            visit.caller = self._caller(scope, headers)
            if visit.caller is None:
                await self._stranger(path, send)
                return
            if not path.startswith(FILES):  # the page is dozens of them, and a browser asks for all at once
                self._check_rate(visit.caller)
            self._check_agent(scope, headers, visit)
        await self._check_size(headers, receive)
        async with asyncio.timeout(self._time_for(path)):
            await self._app(scope, self._bodies.counted(receive), send)

    def end(self) -> None:
        """Wait no longer for what has not come."""
        self._bodies.hurry()

    def _time_for(self, path: str) -> float | None:
        if path == "/v1/events":
            return None  # it lasts as long as its caller
        # MCP says in its own words that a call took too long, and has a moment to send them.
        return self._limits.timeout_s + (SEND_S if path == "/mcp" else 0)

    def _check_place(self, headers: Head) -> None:
        if not self._places.knows_host(headers.one("host")):
            raise Refused(403, "The gateway is not called by this name; see `gateway.allowed_hosts`.")
        if not self._places.knows_origin(headers.one("origin")):
            raise Refused(403, "Pages from elsewhere may not call the gateway.")

    def _caller(self, scope: Scope, headers: Head) -> Caller | None:
        given = headers.one("authorization")
        if given is not None:
            kind, _, token = given.partition(" ")
            return self._tokens.caller(token.strip()) if kind.lower() == "bearer" else None
        caller = self._sessions.caller(headers.cookie(self._sessions.cookie))
        if caller and scope["method"] not in READING and headers.one("origin") is None:
            raise Refused(403, "A change by the page must come from the page: it has no Origin.")
        return caller

    @staticmethod
    async def _stranger(path: str, send: _Answer) -> None:
        asks = [(b"www-authenticate", b"Bearer")]
        if path == "/":
            await answer(send, 401, NOT_OPENED, asks, kind=b"text/html; charset=utf-8")
            return
        raise Refused(401, "A token is needed: Authorization: Bearer …", asks)

    def _check_rate(self, caller: Caller) -> None:
        wait = self._rate.take(caller.id)
        if wait:
            after = str(math.ceil(wait)).encode()
            raise Refused(429, "Too many requests; wait a moment.", [(b"retry-after", after)])

    async def _check_size(self, headers: Head, receive: Receive) -> None:
        declared = headers.one("content-length") or "0"
        if not declared.isascii() or not declared.isdigit():
            raise Refused(400, "The header content-length is no number.")
        if int(declared[:20]) > self._limits.body_bytes:
            if headers.one("expect") is None:  # who asks first has sent nothing yet
                await self._bodies.let_pass(receive)
            raise too_large(self._limits.body_bytes)

    def _check_agent(self, scope: Scope, headers: Head, visit: Visit) -> None:
        """Whose memory is meant, and whether the caller may do this with it; what they may not see is not there."""
        assert visit.caller is not None
        agent, operation = _meant(scope, headers, self._default)
        if agent is None:
            return
        if agent not in self._agents or not visit.caller.may_see(agent):
            raise Refused(404, "There is no such agent.")
        visit.agent = agent
        if operation is None:
            return
        tool = OPERATIONS.get(operation)
        if tool is None:
            raise Refused(404, "There is no such operation; GET /v1/operations lists them.")
        visit.operation = tool.name
        if not grants(visit.caller.access, tool.access):
            raise Refused(
                403, f"{tool.name} needs {tool.access} access, and this caller has {visit.caller.access}."
            )


def _meant(scope: Scope, headers: Head, default: str) -> tuple[str | None, str | None]:
    """The agent and the operation that a request names; None where it is about no single one."""
    path: str = scope["path"]
    if path.startswith("/v1/agents/"):
        agent, slash, operation = path.removeprefix("/v1/agents/").partition("/")
        return agent, operation if slash else None
    if path == "/v1/events":
        named = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("agent")
        return named[0] if named else default, None
    if path == "/mcp":
        return headers.one("x-memoriter-agent") or default, None
    return None, None


def _route(scope: Scope, operation: str | None) -> str:
    """The route as its table writes it: of bounded number, and without anybody's words."""
    path: str = scope["path"]
    if operation is not None:
        return f"/v1/agents/{{agent}}/{operation}"
    return path if path in RAW else getattr(scope.get("route"), "path", "other")


class Head:
    """The headers of a request; one that must be single and is not is refused."""

    def __init__(self, scope: Scope) -> None:
        self._all: list[tuple[bytes, bytes]] = scope["headers"]

    def one(self, name: str) -> str | None:
        """The header's value; None when it is not given."""
        wanted = name.encode()
        values = [value for key, value in self._all if key.lower() == wanted]
        if len(values) > 1:
            raise Refused(400, f"The header {name} is given more than once.")
        return values[0].decode("latin-1") if values else None

    def cookie(self, name: str) -> str:
        """The value of the first cookie of this name; empty when there is none.

        Browsers send the cookies of every port of this machine, and those of others may be odd: none hides ours.
        """
        wanted = name.encode()
        for line in (value for key, value in self._all if key == b"cookie"):
            for pair in line.split(b";"):
                key, _, value = pair.strip().partition(b"=")
                if key == wanted:
                    return value.decode("latin-1")
        return ""


class _Answer:
    """The way out: every answer gets the headers that all have, and its status is noted."""

    def __init__(self, send: Send, visit: Visit) -> None:
        self._send = send
        self._visit = visit
        self._begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            self._visit.status = message["status"]
            given = [(key.lower(), value) for key, value in message.get("headers", ())]
            names = {key for key, _ in given}
            more = [*SAFE, (b"cache-control", b"no-store"), (b"x-request-id", self._visit.id.encode())]
            message = {**message, "headers": [*given, *(one for one in more if one[0] not in names)]}
        await self._send(message)

    async def instead(self, refused: Refused) -> None:
        """Say no, unless an answer is on its way: then it can only be broken off."""
        self._visit.status = refused.status
        if not self._begun:
            await refuse(self, refused)
