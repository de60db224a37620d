"""The memory over the Model Context Protocol: for Claude, Cursor, Codex, ChatGPT and every other client that speaks it.

Everything that a client sees is made from the tables of the doors: tools, their schemas and their words; the tools
that an agent gets are those of its host's slot, within the access that was granted. No state is kept for a client, so
any request can be answered by any process.

The protocol's package takes most of a second to load, so it is loaded by `build` and not before.
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
    host_of: Callable[[], Agent],
    *,
    name: str = "memoriter",
    table: Mapping[str, Tool] | None = None,
    run: Run | None = None,
    on_call: OnCall | None = None,
) -> McpServer:
    """A server over the host that ``host_of`` gives at each request; it is called in a thread, and may block.

    ``table`` holds what the names in ``host.tools`` mean; it is the table of operations if not given. The caller's
    access is read from `memoriter.server.mcp.access` at each request. ``run`` runs a call in a thread; a gateway
    passes its own function, so that its limits apply here too.
    ``on_call`` is called with the name of a tool, the outcome of its call and the seconds.
    """
    from memoriter.server.mcp.server import McpServer

    return McpServer(host_of, name=name, table=table, run=run, on_call=on_call)
