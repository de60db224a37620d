"""The routes, made from the table of operations, and what each answers with.

Everything here stands behind the guard: a request that arrives has a caller who may do what it asks. A result's
outcome becomes a status; the body of every error is one sentence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memoriter import __version__
from memoriter.server.http import pages, telemetry
from memoriter.server.http.events import EventsDoor
from memoriter.server.http.limits import arguments
from memoriter.server.http.metrics import CONTENT_TYPE
from memoriter.server.http.responses import BROKEN, Refused, encoded
from memoriter.tools.table import OPERATIONS
from memoriter.tools.tool import Outcome, Tool, grants

if TYPE_CHECKING:
    from memoriter.server.http.auth import Caller
    from memoriter.server.http.gateway import Gateway

T = TypeVar("T")

STATUS: Mapping[Outcome, int] = {
    "ok": 200,
    "unknown": 404,
    "invalid": 422,
    "not_found": 404,
    "refused": 403,
    "conflict": 409,
    "disabled": 503,
    "failed": 400,
    "broken": 500,
}

ERRORS = {
    400: "Not JSON, or it failed.",
    401: "No token, or a wrong one.",
    403: "The caller, the session or the page may not do this.",
    404: "There is no such agent, operation or thing.",
    409: "Somebody has changed it meanwhile.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    422: "An argument is wrong.",
    429: "Too many requests.",
    503: "Memory is disabled, or the gateway is busy.",
    504: "It took too long.",
}
ERROR_SCHEMA = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
    "additionalProperties": False,
}


def build(gateway: Gateway) -> Starlette:
    """Build the application, without its guard."""
    read_only = ["GET"]
    routes = [
        *(
            Route(f"/v1/agents/{{agent}}/{tool.name}", _operation(gateway, tool), methods=["POST"])
            for tool in OPERATIONS.values()
        ),
        Route("/v1/agents", _agents(gateway), methods=read_only),
        Route("/v1/operations", _operations, methods=read_only),
        Route("/healthz", _health(gateway), methods=read_only),
        Route("/metrics", _metrics(gateway), methods=read_only),
        Route("/openapi.json", _openapi, methods=read_only),
        *pages.routes(gateway.browsers),
        Route("/v1/events", EventsDoor(gateway.hub, gateway.still, gateway.wake), methods=read_only),
        Route("/mcp", gateway.mcp, methods=["POST"]),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={HTTPException: _http_error, Refused: _refused, Exception: _broken},
        lifespan=gateway.lifespan,
    )
    app.router.redirect_slashes = False
    return app


def json_answer(data: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return data as a JSON response."""
    return Response(encoded(data), status, headers, media_type="application/json")


# ---- operations -----------------------------------------------------------------------------------------------------


def _operation(gateway: Gateway, tool: Tool) -> Callable[..., Any]:
    async def endpoint(request: Request) -> Response:
        visit = request.state.visit
        # The guard and the router must agree on what a path means.
        if visit.operation != tool.name or visit.agent != request.path_params["agent"]:
            raise Refused(403, "The guard did not let this pass.")
        given = arguments(await _json_body(request))
        session = request.headers.get("x-memoriter-session")
        telemetry.follow(request.headers)
        work = gateway.perform(visit, tool, given, session)
        outcome, result = await (_while_there(request, work) if tool.read_only else work)
        status = STATUS.get(outcome, 500)
        if status == 200:
            return json_answer(result)
        return json_answer({"error": result.get("error") or f"{tool.name} failed."}, status)

    return endpoint


async def _while_there(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The work's result; who goes away while somebody else is served is not worked for. Changes are carried through."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Refused(499, "The caller went away.")
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _json_body(request: Request) -> bytes:
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and kind != "application/json":
        raise Refused(415, "The body must be declared as application/json.")
    return body


# ---- what there is --------------------------------------------------------------------------------------------------


def _agents(gateway: Gateway) -> Callable[..., Any]:
    def listed(caller: Caller) -> list[dict[str, object]]:
        return [
            {
                "name": name,
                **({"workspace": str(place)} if grants(caller.access, "admin") else {}),
                "slot": gateway.agents[name].slot,
                "default": name == gateway.agents.default,
            }
            for name, place in gateway.agents.workspaces.items()
            if caller.may_see(name)
        ]

    async def agents(request: Request) -> Response:
        caller = request.state.visit.caller
        return json_answer(await gateway.workers.run(lambda: listed(caller)))  # settings may have to be read

    return agents


async def _operations(_: Request) -> Response:
    return json_answer(
        [
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
    )


def _metrics(gateway: Gateway) -> Callable[..., Any]:
    async def metrics(request: Request) -> Response:
        caller = request.state.visit.caller
        sizes = await gateway.workers.run(gateway.measured)
        listeners = gateway.hub.listeners if caller.agents is None else None
        text = gateway.metrics.text(caller.may_see, sizes, listeners)
        return Response(text, media_type=CONTENT_TYPE)

    return metrics


def _health(gateway: Gateway) -> Callable[..., Any]:
    async def healthz(_: Request) -> Response:
        return json_answer({"status": "ok" if gateway.well else "degraded"})

    return healthz


# ---- OpenAPI --------------------------------------------------------------------------------------------------------


async def _openapi(_: Request) -> Response:
    return json_answer(openapi())


def openapi() -> dict[str, object]:
    """Return the OpenAPI document, made from the table of operations."""
    reading = {"/v1/agents": "Agents", "/v1/operations": "Operations", "/healthz": "Healthz"}
    paths = {path: {"get": _read_description(path, summary)} for path, summary in reading.items()}
    operations = {
        f"/v1/agents/{{agent}}/{tool.name}": {"post": _description(tool)} for tool in OPERATIONS.values()
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "memoriter",
            "summary": "Long-term memory for AI agents.",
            "version": __version__,
        },
        "paths": {**operations, **paths},
    }


def _read_description(path: str, summary: str) -> dict[str, object]:
    return {"operationId": path.strip("/"), "summary": summary, "responses": _responses({})}


def _description(tool: Tool) -> dict[str, object]:
    schema = tool.schema()
    return {
        "operationId": tool.name,
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
        ],
        "requestBody": {
            "required": bool(schema["required"]),
            "content": {"application/json": {"schema": schema}},
        },
        "responses": _responses(tool.output_schema()),
    }


def _responses(schema: Mapping[str, object]) -> dict[str, object]:
    def described(text: str, body: Mapping[str, object]) -> dict[str, object]:
        return {"description": text, "content": {"application/json": {"schema": body}}}

    errors = {str(status): described(text, ERROR_SCHEMA) for status, text in ERRORS.items()}
    return {"200": described("Success.", schema), **errors}


# ---- errors ---------------------------------------------------------------------------------------------------------

_SENTENCES = {404: "There is nothing here.", 405: "This method is not for this path."}


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentence = _SENTENCES.get(error.status_code, str(error.detail))
    return json_answer({"error": sentence}, error.status_code, dict(error.headers or {}))


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    headers = {key.decode(): value.decode() for key, value in error.headers}
    return json_answer({"error": error.sentence}, error.status, headers)


async def _broken(_: Request, _error: Exception) -> Response:
    """A mistake of ours; it is raised once more after this, and the guard notes it."""
    return json_answer({"error": BROKEN}, 500)
