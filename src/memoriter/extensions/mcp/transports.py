"""How requests arrive: as lines of standard input, or as POST requests behind the gateway.

Neither keeps anything for a client, except the version and the name that `initialize` agreed on over one connection.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from memoriter.extensions.mcp.protocol import (
    Context,
    Json,
    Protocol,
    ProtocolError,
    handshake_version,
    meta_of,
    modern_context,
    read_request,
    require_modern,
)

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

ReadLine = Callable[[], Awaitable[bytes]]
WriteLine = Callable[[bytes], Awaitable[None]]

#: An error code from the range that the protocol leaves to servers.
FORBIDDEN = -32003


def _encoded(message: Json) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _failure(error: ProtocolError, request_id: str | int | None = None) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "error": error.to_json()}


def _parsed(text: bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ProtocolError(types.PARSE_ERROR, "The message is not valid JSON.") from None


# ---- lines ----------------------------------------------------------------------------------------------------------


async def serve_lines(protocol: Protocol, read_line: ReadLine, write_line: WriteLine) -> None:
    """Answer the requests of one client until its input ends. Requests that then still run are cancelled."""
    connection = Context(types.DEFAULT_NEGOTIATED_VERSION)
    running = dict[str | int, asyncio.Task[None]]()

    async def send(message: Json) -> None:
        await write_line(_encoded(message) + b"\n")

    async def respond(request: types.JSONRPCRequest, context: Context) -> None:
        await send(await protocol.answer(request, context))

    async def begin(message: object) -> None:
        nonlocal connection
        request = read_request(message)
        if request.method == "initialize":  # before the next line, which depends on it
            connection = _agreed(request)
            await respond(request, connection)
            return
        meta = meta_of(request)
        try:
            if types.PROTOCOL_VERSION_META_KEY in meta:
                context = modern_context(request, send)
            else:
                context = replace(connection, progress_token=meta.get("progressToken"), notify=send)
        except ProtocolError as error:
            await send(_failure(error, request.id))
            return
        task = asyncio.create_task(respond(request, context))
        running[request.id] = task
        task.add_done_callback(lambda _: running.pop(request.id, None))

    try:
        while line := await read_line():
            if not line.strip():
                continue
            try:
                message = _parsed(line)
                if isinstance(message, dict) and "id" not in message:
                    _cancel(message, running)
                elif isinstance(message, dict) and "method" not in message:
                    continue  # a response to a request that this server never sends
                else:
                    await begin(message)
            except ProtocolError as error:
                await send(_failure(error))
    finally:
        for task in list(running.values()):
            task.cancel()
        await asyncio.gather(*running.values(), return_exceptions=True)


def _agreed(request: types.JSONRPCRequest) -> Context:
    params = request.params or {}
    client = params.get("clientInfo")
    name = str(client.get("name", "")) if isinstance(client, dict) else ""
    return Context(handshake_version(str(params.get("protocolVersion"))), name)


def _cancel(message: Json, running: Mapping[str | int, asyncio.Task[None]]) -> None:
    """Cancel the request that a notification names. No other notification changes anything."""
    params = message.get("params")
    wanted = params.get("requestId") if isinstance(params, dict) else None
    if message.get("method") == "notifications/cancelled" and isinstance(wanted, str | int):
        task = running.get(wanted)
        if task is not None:
            task.cancel()


# ---- HTTP -----------------------------------------------------------------------------------------------------------

#: Seconds without a word before a response becomes a stream, and between two signs of life of a stream.
PING_S = 15.0
VERSION_HEADER, METHOD_HEADER, NAME_HEADER = "mcp-protocol-version", "mcp-method", "mcp-name"
#: Parameters that `Mcp-Name` repeats.
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
STATUS = {
    types.PARSE_ERROR: 400,
    types.INVALID_REQUEST: 400,
    types.INVALID_PARAMS: 400,
    types.HEADER_MISMATCH: 400,
    types.UNSUPPORTED_PROTOCOL_VERSION: 400,
    types.METHOD_NOT_FOUND: 404,
    FORBIDDEN: 403,
}
JSON_TYPE, STREAM_TYPE = b"application/json", b"text/event-stream"


class McpHttpApp:
    """An ASGI application for one route. A response is JSON, or a stream as soon as there is progress to report."""

    def __init__(self, protocol: Protocol, *, max_body: int) -> None:
        self._protocol = protocol
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if scope["method"] != "POST":
            await _send(send, 405, headers=[(b"allow", b"POST")])
            return
        if not (_accepts(headers, "application/json") and _accepts(headers, "text/event-stream")):
            await _send(send, 406)
            return
        body = await _body(receive, self._max_body)
        if body is None:
            await _send(send, 413)
            return
        version = headers.get(VERSION_HEADER)
        is_older = version is None or version in HANDSHAKE_PROTOCOL_VERSIONS
        request_id: str | int | None = None
        try:
            message = _parsed(body)
            if isinstance(message, dict) and "id" not in message:
                _check_notification(message, None if is_older else version)
                await _send(send, 202)
                return
            request = read_request(message)
            request_id = request.id
            if not is_older:
                _check_headers(request, scope["headers"], headers)
        except ProtocolError as error:
            await _send(send, STATUS[error.code], _encoded(_failure(error, request_id)))
            return
        await self._respond(request, headers, version if is_older else None, receive, send)

    async def _respond(
        self,
        request: types.JSONRPCRequest,
        headers: Mapping[str, str],
        older: str | None,
        receive: Receive,
        send: Send,
    ) -> None:
        progress: asyncio.Queue[Json] = asyncio.Queue()
        agent, meta = headers.get("user-agent", ""), meta_of(request)
        is_modern = VERSION_HEADER in headers and older is None
        if is_modern:
            try:
                context = modern_context(request, progress.put, agent)
            except ProtocolError as error:
                await _send(send, STATUS[error.code], _encoded(_failure(error, request.id)))
                return
        else:
            version = older or types.DEFAULT_NEGOTIATED_VERSION
            context = Context(version, "", agent, meta.get("progressToken"), progress.put)
        answering = asyncio.create_task(self._protocol.answer(request, context))
        # An older client that closes the connection has not cancelled its request.
        gone = asyncio.create_task(_disconnected(receive)) if is_modern else None
        try:
            await _stream(answering, progress, gone, send, is_modern=is_modern)
        finally:
            for task in (answering, gone):
                if task is not None and not task.done():
                    task.cancel()


async def _stream(
    answering: asyncio.Task[Json],
    progress: asyncio.Queue[Json],
    gone: asyncio.Task[None] | None,
    send: Send,
    *,
    is_modern: bool,
) -> None:
    """Send progress as it comes, and then the response."""
    is_stream = False
    while not answering.done() or not progress.empty():
        next_one = asyncio.create_task(progress.get())
        waiting: set[asyncio.Task[Any]] = {answering, next_one}
        await asyncio.wait(
            waiting | ({gone} if gone else set()), timeout=PING_S, return_when=asyncio.FIRST_COMPLETED
        )
        if gone is not None and gone.done():
            next_one.cancel()
            return
        if not next_one.done() and answering.done():
            next_one.cancel()
            break
        if not is_stream:
            is_stream = True
            await _start(
                send, 200, STREAM_TYPE, [(b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")]
            )
        if next_one.done():
            await _continue(send, _event(next_one.result()))
        else:
            next_one.cancel()
            await _continue(send, b": ping\r\n\r\n")
    response = answering.result()
    if is_stream:
        await _continue(send, _event(response), more=False)
        return
    code = response.get("error", {}).get("code")
    # Older versions report errors in the body alone. A missing permission is a matter of the gateway.
    status = STATUS.get(code, 200) if is_modern or code == FORBIDDEN else 200
    await _send(send, status, _encoded(response))


def _event(message: Json) -> bytes:
    return b"event: message\r\ndata: " + _encoded(message) + b"\r\n\r\n"


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _accepts(headers: Mapping[str, str], wanted: str) -> bool:
    accepted = {part.partition(";")[0].strip().lower() for part in headers.get("accept", "").split(",")}
    return bool({wanted, f"{wanted.partition('/')[0]}/*", "*/*"} & accepted)


async def _body(receive: Receive, max_bytes: int) -> bytes | None:
    """Return the body, or None if it is too large."""
    body, more = bytearray(), True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > max_bytes:
            return None
    return bytes(body)


def _check_notification(message: Json, version: str | None) -> None:
    try:
        types.JSONRPCNotification.model_validate(message)
    except ValidationError:
        read_request(message)  # raises the error of a malformed message
    if version is not None:
        require_modern(version)


def _check_headers(
    request: types.JSONRPCRequest, raw: list[tuple[bytes, bytes]], headers: Mapping[str, str]
) -> None:
    """Raise if a header that proxies route by does not say what the request says."""
    names = [name.decode("latin-1") for name, _ in raw]
    version = meta_of(request).get(types.PROTOCOL_VERSION_META_KEY)
    wanted: dict[str, object] = {METHOD_HEADER: request.method}
    if version is not None:
        wanted[VERSION_HEADER] = version
    name = (request.params or {}).get(NAMED_BY.get(request.method, ""))
    if name is not None:
        wanted[NAME_HEADER] = name
    for header, value in wanted.items():
        if names.count(header) > 1 or _decoded(headers.get(header)) != value:
            sentence = f"The header {header} does not match the request."
            raise ProtocolError(types.HEADER_MISMATCH, sentence)


def _decoded(value: str | None) -> str | None:
    """Return the value of a header, which is base64 between marks where it is not plain ASCII."""
    if value is None or not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeError):
        return None


Headers = list[tuple[bytes, bytes]]


async def _start(send: Send, status: int, content_type: bytes, headers: Headers) -> None:
    given = [(b"content-type", content_type), *headers]
    await send({"type": "http.response.start", "status": status, "headers": given})


async def _continue(send: Send, body: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def _send(send: Send, status: int, body: bytes = b"", headers: Headers | None = None) -> None:
    length = (b"content-length", str(len(body)).encode())
    await _start(send, status, JSON_TYPE, [length, *(headers or [])])
    await _continue(send, body, more=False)
