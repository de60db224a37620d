"""The server: what the protocol asks, answered from a view of the host that is made for each request.

Files, SQLite and embedders block, so every answer is made in a thread; a request that is cancelled stops waiting at
once, and what it waits for outside is stopped. Whatever goes wrong is one sentence for the client.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from memoriter import __version__, logs
from memoriter.async_memory import in_thread
from memoriter.errors import BadArgument, MemoriterError, NotFound, SourceError
from memoriter.server.mcp import access, prompts, resources, results
from memoriter.server.mcp.chatgpt import PAIR
from memoriter.server.mcp.view import View
from memoriter.tools.hide_paths import shortened
from memoriter.tools.table import OPERATIONS
from memoriter.tools.tool import Tool, grants

if TYPE_CHECKING:
    from memoriter.agent import Agent
    from memoriter.records import Progress, ProgressCallback
    from memoriter.server.mcp.http import McpHttpApp

log = logs.get("mcp")

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")

FORBIDDEN = -32003  #: of our own, among the codes that the protocol leaves to servers
WELCOMING = ("initialize", "server/discover")
PROGRESS_S = 0.1  #: between two reports


class Run(Protocol):
    """Runs a call in a thread."""

    def __call__(self, call: Callable[[], T], /) -> Awaitable[T]:
        """What the call gives; raises a `MemoriterError` where it is not run, or takes too long."""


OnCall = Callable[[str, str, float], None]
"""Called with the name of a tool, the outcome of its call and the seconds."""


class McpServer:
    """The memory as a server of the Model Context Protocol, over any transport."""

    def __init__(
        self,
        host_of: Callable[[], Agent],
        *,
        name: str,
        table: Mapping[str, Tool] | None = None,
        run: Run | None = None,
        on_call: OnCall | None = None,
    ) -> None:
        self._on_call: OnCall = on_call or (lambda *_: None)
        self._host_of = host_of
        self._run: Run = in_thread if run is None else run
        self.table: Mapping[str, Tool] = OPERATIONS if table is None else table
        self.server: Server[Any] = Server(
            name,
            version=__version__,
            title="memoriter",
            description="Long-term memory: notes, past conversations, and what was learned in them.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
        )
        self.server.middleware.append(self._welcomed)

    def asgi(self, *, max_body: int = 4 * 1024 * 1024) -> McpHttpApp:
        """Streamable HTTP as an ASGI application; see `McpHttpApp` for how it is mounted."""
        from memoriter.server.mcp.http import McpHttpApp

        return McpHttpApp(self, max_body=max_body)

    # ---- tools ------------------------------------------------------------------------------------------------

    async def _list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        tools = await self._ask(lambda view: view.tools)
        return types.ListToolsResult(tools=[results.listed(tool) for tool in tools.values()])

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        self.refuse_beyond_access(params.name)
        progress = _reporting(ctx, asyncio.get_running_loop())

        started_at, ended = time.perf_counter(), "cancelled"

        def work(view: View) -> types.CallToolResult:
            nonlocal ended
            box = view.toolbox
            outcome, result = box.outcome(params.name, params.arguments or {}, progress=progress)
            ended = outcome
            if outcome == "unknown":
                raise BadArgument(result["error"])
            return results.answered(box.tools[params.name], outcome, result)

        try:
            return await self._ask(work)
        finally:
            if params.name in self.table:
                self._on_call(params.name, ended, time.perf_counter() - started_at)

    def refuse_beyond_access(self, name: str) -> None:
        """Raise when the tool of this name needs more than the caller was granted."""
        tool = self.table.get(name) or PAIR.get(name)
        if tool and not grants(access.granted.get(), tool.access):
            sentence = f"{name} needs {tool.access} access; this caller has {access.granted.get()} access."
            raise MCPError(FORBIDDEN, sentence)

    # ---- resources and prompts --------------------------------------------------------------------------------

    async def _list_resources(
        self, _: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        cursor = params.cursor if params else None
        return await self._ask(lambda view: resources.page(view, cursor))

    async def _list_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        found = await self._ask(resources.templates)
        return types.ListResourceTemplatesResult(resource_templates=found)

    async def _read_resource(
        self, _: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        contents = await self._ask(lambda view: resources.read(view, str(params.uri)))
        return types.ReadResourceResult(contents=[contents])

    async def _list_prompts(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=await self._ask(prompts.prompts))

    async def _get_prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await self._ask(lambda view: prompts.prompted(view, params.name, params.arguments or {}))

    async def _complete(self, _: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        ref, argument = params.ref, params.argument
        if not isinstance(ref, types.ResourceTemplateReference):
            return types.CompleteResult(completion=types.Completion(values=[]))
        found = await self._ask(
            lambda view: resources.completed(view, ref.uri, argument.name, argument.value)
        )
        return types.CompleteResult(completion=found)

    # ---- for all of them --------------------------------------------------------------------------------------

    async def _welcomed(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Say at the start when to use the memory: the section of the system prompt, for the tools of this agent."""
        result = await call_next(ctx)
        if ctx.method not in WELCOMING or not isinstance(result, dict):
            return result
        try:
            said = await self._ask(View.instructions)
        except MCPError:
            said = ""  # no reason to turn a client away: the tools will say what is wrong
        return {**result, "instructions": said} if said else result

    async def _ask(self, question: Callable[[View], T]) -> T:
        """Answer from a view made now, in a thread; whatever is wrong becomes an error of the protocol."""
        try:
            return await self._run(lambda: question(View.of(self._host_of(), self.table)))
        except (BadArgument, NotFound, SourceError, resources.BadCursor) as error:
            raise MCPError(types.INVALID_PARAMS, shortened(str(error))) from None
        except (MemoriterError, OSError) as error:
            log.warning("a request failed: %s", error)
            raise MCPError(types.INTERNAL_ERROR, shortened(str(error))) from None
        except Exception as error:  # a mistake of ours must not end the server, nor show its inside
            log.exception("a request failed")
            raise MCPError(types.INTERNAL_ERROR, f"The request failed: {type(error).__name__}.") from None


def _reporting(ctx: Context, loop: asyncio.AbstractEventLoop) -> ProgressCallback:
    """Tells a client that asked for it how far a long piece of work has come, not more often than it can use."""
    told_at = 0.0
    steps = 0

    def report(progress: Progress) -> None:
        nonlocal told_at, steps
        steps += 1  # the protocol wants a number that only grows; stages count from nothing each
        now = time.monotonic()
        if now - told_at >= PROGRESS_S:
            told_at = now
            message = f"{progress.stage}: {progress.done} of {progress.total} {progress.path}".rstrip()
            if not loop.is_closed():  # the caller may have gone, and the server with it
                asyncio.run_coroutine_threadsafe(ctx.session.report_progress(steps, None, message), loop)

    return report
