"""What can be asked of a memory by name: the one table that every gateway, transport and policy is made from.

An operation is a tool: it checks its arguments and answers in the same way. The tools of agents are among them under
their own names; the others are for hosts and owners. `Tool.access` says who may call which, on every transport.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from memoriter.tools.entries import ENTRIES
from memoriter.tools.entry_changes import CHANGES
from memoriter.tools.health import HEALTH
from memoriter.tools.map import PICTURE
from memoriter.tools.notes import NOTES
from memoriter.tools.recalls import RECALLS
from memoriter.tools.search import MANAGER
from memoriter.tools.tool import Result, Tool
from memoriter.tools.toolbox import TOOLS, Toolbox
from memoriter.tools.turns import HOSTS

if TYPE_CHECKING:
    from memoriter.memory import Memory

OPERATIONS: Mapping[str, Tool] = {
    **TOOLS,
    **{
        tool.name: tool
        for tool in (*MANAGER, *HOSTS, *ENTRIES, *CHANGES, *NOTES, *RECALLS, *PICTURE, *HEALTH)
    },
}
"""Every operation by its name."""


def call(
    memory: Memory,
    operation: str,
    arguments: Mapping[str, object] | None = None,
    *,
    session_key: str | None = None,
) -> Result:
    """Call an operation; never raises, what goes wrong is in the result under ``error``."""
    return Toolbox(memory, session_key=session_key, tools=OPERATIONS).call(operation, arguments)
