"""The MCP server over standard I/O and HTTP: answers each request from a view of the agent.

Files, SQLite and embedders block, so each request runs in a thread. A cancelled request stops waiting immediately, and
the external programs that it uses are stopped. Every failure becomes one sentence for the client.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import RequestBodyLimitMiddleware, StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.responses import JSONResponse

from memoriter import __version__, logs
from memoriter.agent import ReloadingAgent
from memoriter.async_memory import in_thread
from memoriter.errors import BadArgument, MemoriterError, NotFound, SourceError
from memoriter.extensions.mcp import resources, results
from memoriter.extensions.mcp.results import View, granted_access, session_key
from memoriter.tools.table import OPERATIONS
from memoriter.tools.tool import Access, Tool, grants, writer
from memoriter.tools.toolbox import error_code, hide_folders

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from memoriter.agent import Agent
    from memoriter.records import Progress, ProgressCallback

log = logs.get("mcp")

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")

#: An error code from the range that the protocol leaves to servers.
FORBIDDEN = -32003
METHODS_WITH_INSTRUCTIONS = ("initialize", "server/discover")
#: Minimum time between two progress notifications.
PROGRESS_INTERVAL_S = 0.1


class Run(Protocol):
    """Runs a call in a thread."""

    def __call__(self, call: Callable[[], T], /) -> Awaitable[T]:
        """Return the result. Raise `MemoriterError` if the call is not run or takes too long."""


OnCall = Callable[[str, str, float], None]
"""Called with the name of a tool, the outcome of its call and the seconds."""


class McpServer:
    """The memory as an MCP server, for any transport.

    ``get_agent`` is called in a thread at each request and may block. ``table`` contains the tools that ``agent.tools``
    names, by default the table of operations. ``run`` runs a call in a thread; a gateway passes its own function, so
    that its limits apply. The access of the caller is read from `results` at each request.
    """

    def __init__(
        self,
        get_agent: Callable[[], Agent],
        *,
        table: Mapping[str, Tool] | None = None,
        run: Run | None = None,
        on_call: OnCall | None = None,
    ) -> None:
        self._on_call: OnCall = on_call or (lambda *_: None)
        self._get_agent = get_agent
        self._run: Run = in_thread if run is None else run
        self.table: Mapping[str, Tool] = OPERATIONS if table is None else table
        self.server: Server[Any] = Server(
            "memoriter",
            version=__version__,
            title="memoriter",
            description="Long-term memory: notes, past conversations and what was learned in them.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
        )
        self.server.middleware.append(self._add_instructions)

    # ---- tools ------------------------------------------------------------------------------------------------

    async def _list_tools(
        self, ctx: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """List the tools. Only one client sees those in its own form; calls of them work for every client."""
        tools = (await self._ask(lambda view: view.tools)).values()
        listed = [tool for tool in tools if not tool.client or _is_client(ctx, tool.client)]
        return types.ListToolsResult(tools=[results.describe_tool(tool) for tool in listed])

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        self.check_access(params.name)
        progress = _progress_callback(ctx, asyncio.get_running_loop())
        client = ctx.session.client_params.client_info.name if ctx.session.client_params else ""
        started_at, ended = time.perf_counter(), "cancelled"

        def work(view: View) -> types.CallToolResult:
            nonlocal ended
            writer.set(writer.get() or client)
            box = view.toolbox
            outcome, result = box.outcome(params.name, params.arguments or {}, progress=progress)
            ended = outcome
            if outcome == "unknown":
                raise BadArgument(result["error"])
            return results.call_result(box.tools[params.name], outcome, result)

        try:
            return await self._ask(work)
        finally:
            if params.name in self.table:
                self._on_call(params.name, ended, time.perf_counter() - started_at)

    def check_access(self, name: str) -> None:
        """Raise if the tool requires more access than the caller has."""
        tool = self.table.get(name)
        granted = granted_access.get()
        if tool and not grants(granted, tool.access):
            message = f"{name} requires {tool.access} access. This caller has {granted} access."
            raise MCPError(FORBIDDEN, message, {"code": "forbidden"})

    # ---- resources and prompts --------------------------------------------------------------------------------

    async def _list_resources(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        cursor = params.cursor if params else None
        return await self._ask(lambda view: resources.list_page(view, cursor))

    async def _list_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        found = await self._ask(resources.list_templates)
        return types.ListResourceTemplatesResult(resource_templates=found)

    async def _read_resource(
        self, _: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        contents = await self._ask(lambda view: resources.read(view, str(params.uri)))
        return types.ReadResourceResult(contents=[contents])

    async def _list_prompts(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=await self._ask(resources.list_prompts))

    async def _get_prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await self._ask(lambda view: resources.get_prompt(view, params.name, params.arguments or {}))

    async def _complete(self, _: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        ref, argument = params.ref, params.argument
        if not isinstance(ref, types.ResourceTemplateReference):
            return types.CompleteResult(completion=types.Completion(values=[]))
        found = await self._ask(lambda view: resources.complete(view, ref.uri, argument.name, argument.value))
        return types.CompleteResult(completion=found)

    # ---- all requests -----------------------------------------------------------------------------------------

    async def _add_instructions(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Add instructions on when to use the memory to the first response of a connection."""
        result = await call_next(ctx)
        if ctx.method not in METHODS_WITH_INSTRUCTIONS or not isinstance(result, dict):
            return result
        try:
            instructions = await self._ask(View.instructions)
        except MCPError:
            return result  # the tools will report what is wrong
        return {**result, "instructions": instructions} if instructions else result

    async def _ask(self, question: Callable[[View], T]) -> T:
        """Call the function with a new view, in a thread. A failure becomes an error of the protocol."""
        try:
            return await self._run(lambda: question(View.of(self._get_agent(), self.table)))
        except (BadArgument, NotFound, SourceError, resources.BadCursor) as error:
            raise _protocol_error(types.INVALID_PARAMS, error) from None
        except (MemoriterError, OSError) as error:
            log.warning("a request failed: %s", error)
            raise _protocol_error(types.INTERNAL_ERROR, error) from None
        except Exception as error:  # a bug must not end the server, and its message may contain user text
            log.exception("a request failed")
            message = f"The request failed: {type(error).__name__}."
            raise MCPError(types.INTERNAL_ERROR, message, {"code": "internal_error"}) from None


def _is_client(ctx: Context, wanted: str) -> bool:
    """Return whether the client has this name. A client without a session names itself only in a header."""
    client = ctx.session.client_params
    header = ctx.request.headers.get("user-agent", "") if ctx.request is not None else ""
    name = client.client_info.name if client else ""
    return any(named.lower().startswith(wanted) for named in (name, header))


def _protocol_error(code: int, error: MemoriterError | OSError) -> MCPError:
    """Return an error of the protocol. Its data contains the code of the memory's error."""
    return MCPError(code, hide_folders(str(error)), {"code": error_code(error)[0]})


def _progress_callback(ctx: Context, loop: asyncio.AbstractEventLoop) -> ProgressCallback:
    """Return a callback that sends progress to a client that asked for it, at most ten times a second."""
    sent_at = 0.0
    steps = 0

    def report(progress: Progress) -> None:
        nonlocal sent_at, steps
        steps += 1  # the protocol requires a growing number, and each stage starts at zero
        now = time.monotonic()
        if now - sent_at >= PROGRESS_INTERVAL_S:
            sent_at = now
            message = f"{progress.stage}: {progress.done} of {progress.total} {progress.path}".rstrip()
            if not loop.is_closed():  # the server may have ended
                asyncio.run_coroutine_threadsafe(ctx.session.report_progress(steps, None, message), loop)

    return report


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


#: Time for the memory to close. Its files are consistent without it, too.
CLOSE_TIMEOUT_S = 3.0
#: Maximum number of concurrent requests. Others wait.
MAX_THREADS = 16


def serve(agent: ReloadingAgent, *, access: Access, session: str | None = None) -> None:
    """Serve until the client closes its end or a signal arrives."""
    granted_access.set(access)
    session_key.set(session)
    logs.setup()  # until the settings are loaded, which may fail
    if sys.stdin.isatty():
        sys.stderr.write("Waiting for an MCP client on standard input. See `memoriter mcp --help`.\n")
    # At the same time as the `mcp` package, which is slow to import.
    agent.wake(load_model=True)
    import anyio

    anyio.run(_serve, agent)


async def _serve(agent: ReloadingAgent) -> None:
    import asyncio

    import anyio
    from mcp.server.stdio import stdio_server

    server = McpServer(agent).server
    loop = asyncio.get_running_loop()
    threads = ThreadPoolExecutor(MAX_THREADS, "memoriter-mcp")
    loop.set_default_executor(threads)
    status: int | None = None
    async with stdio_server() as (read, write):
        async with anyio.create_task_group() as group:

            def end(number: int) -> None:
                nonlocal status
                status = 128 + number
                group.cancel_scope.cancel()

            for number in (signal.SIGINT, signal.SIGTERM):
                with suppress(NotImplementedError):  # not on Windows
                    loop.add_signal_handler(number, end, number)
            await server.run(read, write, server.create_initialization_options())
            group.cancel_scope.cancel()
        # Running requests were cancelled. Give external programs a moment to stop.
        with anyio.move_on_after(CLOSE_TIMEOUT_S, shield=True) as closing:
            await anyio.to_thread.run_sync(threads.shutdown, abandon_on_cancel=True)
            close = partial(agent.close, CLOSE_TIMEOUT_S, cancel=True)
            await anyio.to_thread.run_sync(close, abandon_on_cancel=True)
        if status is not None or closing.cancelled_caught:
            # A thread is still working or reading standard input, and cannot be interrupted. Exit without it. Every
            # write is atomic, so no file is left half-written.
            sys.stderr.flush()
            os._exit(status or 0)
