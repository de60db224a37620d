"""The MCP server over standard I/O and HTTP: answers each request from a view of the agent.

Files, SQLite and embedders block, so each request runs in a thread. A cancelled request stops waiting immediately, and
the external programs that it uses are stopped. Every failure becomes one sentence for the client.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, Protocol, TypeVar

import mcp_types as types
from pydantic import BaseModel

from memoriter import logs
from memoriter.agent import Agent, ReloadingAgent
from memoriter.async_memory import in_thread
from memoriter.errors import BadArgument, MemoriterError, NotFound, SourceError, message_of
from memoriter.extensions.mcp import protocol, resources, results
from memoriter.extensions.mcp.protocol import Context, ProtocolError
from memoriter.extensions.mcp.results import View, granted_access, session_key
from memoriter.extensions.mcp.transports import FORBIDDEN, serve_lines
from memoriter.records import Progress, ProgressCallback
from memoriter.tools.table import OPERATIONS
from memoriter.tools.tool import Access, Tool, grants, writer
from memoriter.tools.toolbox import error_code, hide_folders

log = logs.get("mcp")

T = TypeVar("T")

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
        handlers: dict[str, protocol.Handler] = {
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "resources/list": self._answer_by(resources.list_page),
            "resources/templates/list": self._answer_by(resources.list_templates),
            "resources/read": self._answer_by(resources.read),
            "prompts/list": self._answer_by(resources.list_prompts),
            "prompts/get": self._answer_by(resources.get_prompt),
            "completion/complete": self._answer_by(resources.complete),
        }
        self.protocol = protocol.Protocol(handlers, self._instructions)

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
        started_at, ended = time.perf_counter(), "cancelled"

        def work(view: View) -> types.CallToolResult:
            nonlocal ended
            writer.set(writer.get() or ctx.client)
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
            raise ProtocolError(FORBIDDEN, message, {"code": "forbidden"})

    # ---- all requests -----------------------------------------------------------------------------------------

    def _answer_by(self, function: Callable[[View, Any], BaseModel]) -> protocol.Handler:
        """Return the handler of requests that a function of the view and the parameters answers."""

        async def handle(_: Context, params: Any) -> BaseModel:
            return await self._ask(lambda view: function(view, params))

        return handle

    async def _instructions(self) -> str | None:
        """Return when to use the memory, for the first response to a client."""
        try:
            return await self._ask(View.instructions) or None
        except Exception:
            log.debug("there are no instructions", exc_info=True)  # the tools will report what is wrong
            return None

    async def _ask(self, question: Callable[[View], T]) -> T:
        """Call the function with a new view, in a thread. A failure becomes an error of the protocol."""
        try:
            return await self._run(lambda: question(View.of(self._get_agent(), self.table)))
        except (BadArgument, NotFound, SourceError, resources.BadCursor) as error:
            raise _protocol_error(types.INVALID_PARAMS, error) from None
        except (MemoriterError, OSError) as error:
            log.warning("a request failed: %s", error)
            raise _protocol_error(types.INTERNAL_ERROR, error) from None


def _is_client(ctx: Context, wanted: str) -> bool:
    """Return whether the client has this name. A client without a session names itself only in a header."""
    return any(named.lower().startswith(wanted) for named in (ctx.client, ctx.user_agent))


def _protocol_error(code: int, error: MemoriterError | OSError) -> ProtocolError:
    """Return an error of the protocol. Its data contains the code of the memory's error."""
    return ProtocolError(code, hide_folders(message_of(error)), {"code": error_code(error)[0]})


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
                asyncio.run_coroutine_threadsafe(ctx.report_progress(steps, None, message), loop)

    return report


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
    agent.wake(load_model=True)
    asyncio.run(_serve(agent))


async def _serve(agent: ReloadingAgent) -> None:
    loop = asyncio.get_running_loop()
    threads = ThreadPoolExecutor(MAX_THREADS, "memoriter-mcp")
    loop.set_default_executor(threads)
    reading, writing = ThreadPoolExecutor(1, "memoriter-mcp-in"), ThreadPoolExecutor(1, "memoriter-mcp-out")
    given, taken = _claim_standard_streams()

    async def read_line() -> bytes:
        return await loop.run_in_executor(reading, given.readline)

    def write(line: bytes) -> None:
        taken.write(line)
        taken.flush()

    async def write_line(line: bytes) -> None:
        await loop.run_in_executor(writing, write, line)

    status: int | None = None
    serving = asyncio.create_task(serve_lines(McpServer(agent).protocol, read_line, write_line))

    def end(number: int) -> None:
        nonlocal status
        status = 128 + number
        serving.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        # Windows has no `add_signal_handler`.
        signal.signal(number, lambda number, _: loop.call_soon_threadsafe(end, number))
    with suppress(asyncio.CancelledError, BrokenPipeError):
        await serving
    # Running requests were cancelled. Give external programs a moment to stop.
    is_late = False
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await loop.run_in_executor(writing, threads.shutdown)
            await loop.run_in_executor(writing, partial(agent.close, CLOSE_TIMEOUT_S, cancel=True))
    except TimeoutError:
        is_late = True
    if status is not None or is_late:
        # A thread is still working or reading standard input, and cannot be interrupted. Exit without it. Every
        # write is atomic, so no file is left half-written.
        sys.stderr.flush()
        os._exit(status or 0)


def _claim_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return the input and the output of the client, which no other code and no external program can then reach."""
    given, taken = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return os.fdopen(given, "rb"), os.fdopen(taken, "wb")
