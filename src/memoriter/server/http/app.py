"""The routes, made from the table of operations, and what each answers with.

Everything here stands behind the guard: a request that arrives has a caller who may do what it asks. A result's
outcome becomes a status; the body of every error is one sentence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
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


def build(gateway: Gateway) -> FastAPI:
    """The application, without its guard."""
    app = FastAPI(
        title="memoriter",
        version=__version__,
        summary="Long-term memory for AI agents.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=gateway.lifespan,
        # Its own spans and logs carry addresses with tickets in them, and the sentences of failures.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    for tool in OPERATIONS.values():
        app.add_api_route(
            f"/v1/agents/{{agent}}/{tool.name}",
            _operation(gateway, tool),
            methods=["POST"],
            operation_id=tool.name,
            summary=tool.description,
            tags=[tool.access],
            response_model=None,
            responses=_responses(tool),
            openapi_extra=_request_body(tool),
        )
    for path, endpoint in (
        ("/v1/agents", _agents(gateway)),
        ("/v1/operations", _operations),
        ("/healthz", _health(gateway)),
    ):
        app.add_api_route(
            path, endpoint, response_model=None, responses=_errors(), operation_id=path.strip("/")
        )
    app.add_api_route("/metrics", _metrics(gateway), include_in_schema=False)
    app.add_api_route("/openapi.json", lambda: json_answer(app.openapi()), include_in_schema=False)
    pages.add(app, gateway.browsers)
    events = EventsDoor(gateway.hub, gateway.still, gateway.wake)
    app.router.routes.append(Route("/v1/events", endpoint=events, methods=["GET"]))
    app.router.routes.append(Route("/mcp", endpoint=gateway.mcp, methods=["POST"]))
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _wrong_request)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(Exception, _broken)
    return app


def json_answer(data: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Data as an answer."""
    return Response(encoded(data), status, headers, media_type="application/json")


# ---- operations -----------------------------------------------------------------------------------------------------


def _operation(gateway: Gateway, tool: Tool) -> Callable[..., Any]:
    async def endpoint(agent: str, request: Request) -> Response:
        visit = request.state.visit
        if (
            visit.operation != tool.name or visit.agent != agent
        ):  # the guard and the router read one path alike
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


def _request_body(tool: Tool) -> dict[str, Any]:
    schema = tool.schema()
    session = {
        "name": "X-Memoriter-Session",
        "in": "header",
        "required": False,
        "description": "The session's key, where the settings let only some sessions use the memory.",
        "schema": {"type": "string"},
    }
    return {
        "requestBody": {
            "required": bool(schema["required"]),
            "content": {"application/json": {"schema": schema}},
        },
        "parameters": [session],
    }


def _responses(tool: Tool) -> dict[int | str, dict[str, Any]]:
    done = {"description": "Done.", "content": {"application/json": {"schema": tool.output_schema()}}}
    return {200: done, **_errors()}


def _errors() -> dict[int | str, dict[str, Any]]:
    content = {"application/json": {"schema": ERROR_SCHEMA}}
    return {status: {"description": text, "content": content} for status, text in ERRORS.items()}


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


async def _operations() -> Response:
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
    async def healthz() -> Response:
        return json_answer({"status": "ok" if gateway.well else "degraded"})

    return healthz


# ---- errors ---------------------------------------------------------------------------------------------------------

_SENTENCES = {404: "There is nothing here.", 405: "This method is not for this path."}


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentence = _SENTENCES.get(error.status_code, str(error.detail))
    return json_answer({"error": sentence}, error.status_code, dict(error.headers or {}))


async def _wrong_request(_: Request, _error: Exception) -> Response:
    return json_answer({"error": "The request is not as /openapi.json says."}, 422)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    headers = {key.decode(): value.decode() for key, value in error.headers}
    return json_answer({"error": error.sentence}, error.status, headers)


async def _broken(_: Request, _error: Exception) -> Response:
    """A mistake of ours; it is raised once more after this, and the guard notes it."""
    return json_answer({"error": BROKEN}, 500)
