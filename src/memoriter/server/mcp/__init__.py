"""The memory over the Model Context Protocol, for Claude, Cursor, Codex, ChatGPT and other MCP clients.

Tools, schemas and descriptions come from the table of operations. A client gets the tools of the agent's memory slot
that its access allows. The server keeps no state for a client, so any process can answer any request.

The `mcp` package takes most of a second to import, so `build` imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memoriter.agent import Agent
    from memoriter.server.mcp.server import McpServer, OnCall, Run
    from memoriter.tools.tool import Tool

__all__ = ["build"]


def build(
    get_agent: Callable[[], Agent],
    *,
    name: str = "memoriter",
    table: Mapping[str, Tool] | None = None,
    run: Run | None = None,
    on_call: OnCall | None = None,
) -> McpServer:
    """Build a server for the agent that ``get_agent`` returns at each request.

    ``get_agent`` is called in a thread and may block. ``table`` contains the tools that ``agent.tools`` names, by
    default the table of operations. ``run`` runs a call in a thread; a gateway passes its own function, so that its
    limits apply. ``on_call`` is called with the name of a tool, the outcome of its call and the seconds. The access of
    the caller is read from `memoriter.server.mcp.results` at each request.
    """
    from memoriter.server.mcp.server import McpServer

    return McpServer(get_agent, name=name, table=table, run=run, on_call=on_call)
