"""The routes and the OpenAPI document, both made from the table of operations.

All routes are behind the request guard, so every request here has a caller with the access that it needs. The outcome
of an operation becomes a status, and every error has a message and a code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route, Router

from memoriter import __version__
from memoriter.server.http import observe, pages
from memoriter.server.http.events import EventStream
from memoriter.server.http.limits import client_closed, parse_arguments
from memoriter.server.http.responses import ERROR_SCHEMA, Refused, json_response
from memoriter.tools.table import OPERATIONS
from memoriter.tools.tool import ACCESS, Outcome, Tool, grants

if TYPE_CHECKING:
    from memoriter.server.http.auth import Caller
    from memoriter.server.http.gateway import Gateway

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]

STATUS: Mapping[Outcome, int] = {
    "ok": 200,
    "unknown": 404,
    "invalid": 422,
    "not_found": 404,
    "refused": 403,
    "conflict": 409,
    "disabled": 503,
    "unavailable": 503,
    "failed": 400,
    "broken": 500,
}

#: When a client should ask again while a server of the store does not answer.
RETRY_AFTER_S = "5"

ERRORS = {
    400: "The body is not valid JSON, or the operation failed.",
    401: "The token is missing or invalid.",
    403: "The caller, the session or the origin may not do this.",
    404: "The agent, the operation or the item does not exist.",
    409: "The item was changed in the meantime.",
    413: "The body is too large.",
    415: "The content type is not JSON.",
    422: "An argument is wrong.",
    429: "Too many requests.",
    503: "Memory is disabled, the database does not answer, or the gateway is busy.",
    504: "The request took too long.",
}


def build(gateway: Gateway) -> Router:
    """Build the routes. Their errors become responses in the guard."""
    read_only = ["GET"]
    routes = [
        *(
            Route(f"/v1/agents/{{agent}}/{tool.name}", _operation(gateway, tool), methods=_methods(tool))
            for tool in OPERATIONS.values()
        ),
        Route("/v1/agents", _agents(gateway), methods=read_only),
        Route("/v1/operations", _report(_operations), methods=read_only),
        Route(
            "/v1/version", _report(lambda: {"name": "memoriter", "version": __version__}), methods=read_only
        ),
        *(
            Route(path, _report(lambda: {"status": gateway.health}), methods=read_only)
            for path in ("/healthz", "/health")
        ),
        Route("/metrics", _metrics(gateway), methods=read_only),
        Route("/openapi.json", _report(openapi), methods=read_only),
        *pages.routes(gateway.browsers),
        Route("/v1/events", EventStream(gateway.hub, gateway.is_valid, gateway.wake), methods=read_only),
        *(
            Mount(path, mount) if mount.has_paths else Route(path, mount, methods=mount.methods)
            for path, mount in gateway.mounts.items()
        ),
    ]
    return Router(routes, redirect_slashes=False, lifespan=gateway.lifespan)


# ---- operations -----------------------------------------------------------------------------------------------------


def _methods(tool: Tool) -> list[str]:
    return ["GET", "POST"] if tool.by_get else ["POST"]


def _operation(gateway: Gateway, tool: Tool) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        record = request.state.record
        # The guard and the router must agree on what a path means.
        if record.operation != tool.name or record.agent != request.path_params["agent"]:
            raise Refused(403, "forbidden", "The request guard did not check this operation.")
        sent = request.query_params if request.method == "GET" else parse_arguments(await _json_body(request))
        arguments = dict(sent)
        session = request.headers.get("x-memoriter-session")
        observe.join_trace(request.headers)
        event = gateway.hub.last_id(record.agent)  # before the work, so that nothing after it is missed
        work = gateway.perform(record, tool, arguments, session)
        outcome, result = await (_while_connected(request, work) if tool.read_only else work)
        status = STATUS.get(outcome, 500)
        if status == 200:
            return json_response(result, headers={"x-memoriter-event": event})
        message = result.get("error") or f"{tool.name} failed."
        headers = {"retry-after": RETRY_AFTER_S} if outcome == "unavailable" else None
        raise Refused(status, result.get("code") or outcome, message, headers, result.get("details"))

    return endpoint


async def _while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result, or cancel the work when the client disconnects. Only for work that changes nothing."""
    working = asyncio.ensure_future(work)
    disconnected = asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        await asyncio.wait((working, disconnected), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise client_closed()
        return working.result()
    finally:
        working.cancel()
        disconnected.cancel()


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _json_body(request: Request) -> bytes:
    body = await request.body()
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and media_type != "application/json":
        message = "Send the request body with `Content-Type: application/json`."
        raise Refused(415, "unsupported_media_type", message)
    return body


# ---- agents, operations, metrics, health, version -------------------------------------------------------------------


def _agents(gateway: Gateway) -> Endpoint:
    def listed(caller: Caller) -> list[dict[str, object]]:
        return [
            {
                "name": name,
                **({"workspace": str(folder)} if grants(caller.access, "admin") else {}),
                "slot": gateway.agents.slot(name),
                "default": name == gateway.agents.default,
            }
            for name, folder in gateway.agents.workspaces.items()
            if caller.may_see(name)
        ]

    async def agents(request: Request) -> Response:
        caller = request.state.record.caller
        return json_response(await gateway.workers.run(lambda: listed(caller)))  # may read settings files

    return agents


def _report(data: Callable[[], object]) -> Endpoint:
    async def endpoint(_: Request) -> Response:
        return json_response(data())

    return endpoint


def _operations() -> list[dict[str, object]]:
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "access": tool.access,
            "readOnly": tool.read_only,
            "destructive": tool.destructive,
            "input": tool.schema(),
            "output": tool.output_schema(),
        }
        for tool in OPERATIONS.values()
    ]


def _metrics(gateway: Gateway) -> Endpoint:
    async def metrics(request: Request) -> Response:
        caller = request.state.record.caller
        sizes = await gateway.workers.run(gateway.agents.sizes)
        listeners = gateway.hub.listeners if caller.agents is None else None
        text = gateway.metrics.render(caller.may_see, sizes, listeners)
        return Response(text, media_type=observe.CONTENT_TYPE)

    return metrics


# ---- OpenAPI --------------------------------------------------------------------------------------------------------


READ_ROUTES = {
    "/v1/agents": "List the agents.",
    "/v1/operations": "List the operations with their arguments.",
    "/v1/version": "Show the version of the gateway.",
    "/healthz": "Check whether the gateway works.",
}


def openapi() -> dict[str, object]:
    """Return the OpenAPI document, made from the table of operations."""
    paths = {
        path: {"get": {"operationId": path.strip("/"), "summary": summary, "responses": _responses({})}}
        for path, summary in READ_ROUTES.items()
    }
    operations = {
        f"/v1/agents/{{agent}}/{tool.name}": {
            method.lower(): _description(tool, method) for method in _methods(tool)
        }
        for tool in OPERATIONS.values()
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "memoriter", "summary": "Long-term memory for AI agents.", "version": __version__},
        "paths": {**operations, **paths},
    }


def _description(tool: Tool, method: str) -> dict[str, object]:
    schema, is_get = tool.schema(), method == "GET"
    body = {"required": bool(schema["required"]), "content": {"application/json": {"schema": schema}}}
    asked = schema["properties"].items() if is_get else ()
    return {
        "operationId": f"{tool.name}.get" if is_get else tool.name,
        "summary": tool.description,
        "tags": [tool.access],
        "parameters": [
            {"name": "agent", "in": "path", "required": True, "schema": {"type": "string"}},
            {
                "name": "X-Memoriter-Session",
                "in": "header",
                "required": False,
                "description": "The session key. Needed where the settings allow only some sessions.",
                "schema": {"type": "string"},
            },
            {
                "name": "X-Memoriter-Access",
                "in": "header",
                "required": False,
                "description": "Act with less access than the token permits, for words of an agent.",
                "schema": {"type": "string", "enum": list(ACCESS)},
            },
            *({"name": name, "in": "query", "required": False, "schema": kind} for name, kind in asked),
        ],
        **({} if is_get else {"requestBody": body}),
        "responses": _responses(tool.output_schema()),
    }


def _responses(schema: Mapping[str, object]) -> dict[str, object]:
    def described(text: str, body: Mapping[str, object]) -> dict[str, object]:
        return {"description": text, "content": {"application/json": {"schema": body}}}

    errors = {str(status): described(text, ERROR_SCHEMA) for status, text in ERRORS.items()}
    return {"200": described("Success.", schema), **errors}
