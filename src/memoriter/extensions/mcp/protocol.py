"""The protocol: JSON-RPC requests in, validated results out, for every version that `mcp_types` knows.

Older versions begin with `initialize`. Since 2026-07-28 each request carries its version and its client in `_meta`.
The server sends no requests of its own, only progress.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp_types import methods
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from memoriter import __version__, logs

log = logs.get("mcp")

Json = dict[str, Any]
Notify = Callable[[Json], Awaitable[None]]

SERVER = types.Implementation(
    name="memoriter",
    version=__version__,
    title="memoriter",
    description="Long-term memory: notes, past conversations and what was learned in them.",
)
CAPABILITIES = types.ServerCapabilities(
    tools=types.ToolsCapability(list_changed=False),
    resources=types.ResourcesCapability(subscribe=False, list_changed=False),
    prompts=types.PromptsCapability(list_changed=False),
    completions=types.CompletionsCapability(),
)


class ProtocolError(Exception):
    """An error of the protocol, with its code and data."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    def to_json(self) -> Json:
        """Return the error as the protocol sends it."""
        error = {"code": self.code, "message": str(self)}
        return error if self.data is None else {**error, "data": self.data}


@dataclass(frozen=True, slots=True)
class Context:
    """One request: its version, the name that its client gives itself, and the way to report progress."""

    version: str
    client: str = ""
    user_agent: str = ""
    progress_token: str | int | None = None
    notify: Notify | None = None

    @property
    def is_modern(self) -> bool:
        """Return whether the request carries its version and its client."""
        return self.version in MODERN_PROTOCOL_VERSIONS

    async def report_progress(self, done: float, total: float | None, message: str | None = None) -> None:
        """Send progress to a client that asked for it."""
        if self.notify is None or self.progress_token is None:
            return
        given = {"progressToken": self.progress_token, "progress": done, "total": total, "message": message}
        params = {name: value for name, value in given.items() if value is not None}
        await self.notify({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})


Handler = Callable[[Context, Any], Awaitable[BaseModel]]


def read_request(message: object) -> types.JSONRPCRequest:
    """Return the request in a message. Raise if it is none."""
    try:
        return types.JSONRPCRequest.model_validate(message)
    except ValidationError:
        sentence = "A message must be one JSON-RPC request or notification."
        raise ProtocolError(types.INVALID_REQUEST, sentence) from None


def meta_of(request: types.JSONRPCRequest) -> Mapping[str, Any]:
    """Return the metadata of a request, or none."""
    meta = (request.params or {}).get("_meta")
    return meta if isinstance(meta, dict) else {}


def modern_context(request: types.JSONRPCRequest, notify: Notify, user_agent: str = "") -> Context:
    """Return the context of a request that carries its version. Raise if it is incomplete or not supported."""
    meta = meta_of(request)
    version = meta.get(types.PROTOCOL_VERSION_META_KEY)
    if not isinstance(version, str) or types.CLIENT_CAPABILITIES_META_KEY not in meta:
        needed = f"{types.PROTOCOL_VERSION_META_KEY} and {types.CLIENT_CAPABILITIES_META_KEY}"
        raise ProtocolError(types.INVALID_PARAMS, f"`params._meta` needs {needed}.")
    require_modern(version)
    client = meta.get(types.CLIENT_INFO_META_KEY)
    name = str(client.get("name", "")) if isinstance(client, dict) else ""
    return Context(version, name, user_agent, meta.get("progressToken"), notify)


def require_modern(version: str) -> None:
    """Raise if no request may carry this version."""
    if version not in MODERN_PROTOCOL_VERSIONS:
        data = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": version}
        raise ProtocolError(types.UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version.", data)


class Protocol:
    """Answers requests with the handlers of a server, and its instructions with the first answer of a client."""

    def __init__(
        self, handlers: Mapping[str, Handler], instructions: Callable[[], Awaitable[str | None]]
    ) -> None:
        self._handlers: dict[str, Handler] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": self._ping,
            **handlers,
        }
        self._instructions = instructions

    async def answer(self, request: types.JSONRPCRequest, context: Context) -> Json:
        """Return the response to a request: a result or an error."""
        response: Json = {"jsonrpc": "2.0", "id": request.id}
        try:
            return {**response, "result": await self._result(request, context)}
        except ProtocolError as error:
            return {**response, "error": error.to_json()}
        except Exception as error:  # a bug must not end the server, and its message may contain user text
            log.exception("a request failed")
            message = f"The request failed: {type(error).__name__}."
            failure = ProtocolError(types.INTERNAL_ERROR, message, {"code": "internal_error"})
            return {**response, "error": failure.to_json()}

    async def _result(self, request: types.JSONRPCRequest, context: Context) -> Json:
        method, version = request.method, context.version
        try:
            parsed = methods.parse_client_request(method, version, request.params)
            handler = self._handlers[method]
        except KeyError:
            raise ProtocolError(types.METHOD_NOT_FOUND, "Method not found", method) from None
        except ValidationError:
            raise ProtocolError(types.INVALID_PARAMS, "Invalid request parameters", "") from None
        result = await handler(context, parsed.params)
        shaped = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        shaped = methods.serialize_server_result(method, version, shaped)
        if context.is_modern:
            stamp = {types.SERVER_INFO_META_KEY: SERVER.model_dump(by_alias=True, exclude_none=True)}
            shaped = {"resultType": "complete", **shaped, "_meta": {**shaped.get("_meta", {}), **stamp}}
        return shaped

    async def _initialize(self, _: Context, params: types.InitializeRequestParams) -> types.InitializeResult:
        return types.InitializeResult(
            protocol_version=handshake_version(params.protocol_version),
            capabilities=CAPABILITIES,
            server_info=SERVER,
            instructions=await self._instructions(),
        )

    async def _discover(self, _: Context, __: object) -> types.DiscoverResult:
        return types.DiscoverResult(
            supported_versions=list(MODERN_PROTOCOL_VERSIONS),
            capabilities=CAPABILITIES,
            instructions=await self._instructions(),
        )

    async def _ping(self, _: Context, __: object) -> types.EmptyResult:
        return types.EmptyResult()


def handshake_version(wanted: str) -> str:
    """Return the version that `initialize` agrees on."""
    return wanted if wanted in HANDSHAKE_PROTOCOL_VERSIONS else LATEST_HANDSHAKE_VERSION
