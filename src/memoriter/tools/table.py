"""The one table of tools and operations. Every interface, policy and document is made from it.

Operations work like tools: they check their arguments and answer in the same way. Agents call the tools; hosts and
owners also call the other operations. `Tool.access` says which access a caller needs, on every interface.
"""

from __future__ import annotations

from collections.abc import Mapping

from memoriter.extension import offers
from memoriter.memory import Memory
from memoriter.tools import entries, entry_changes, health, notes, recalls, search, turns
from memoriter.tools.tool import Result, Tool
from memoriter.tools.toolbox import TOOLS, Toolbox

_MODULES = (search, turns, entries, entry_changes, notes, recalls, health)

OPERATIONS: Mapping[str, Tool] = {
    **TOOLS,
    **{tool.name: tool for module in _MODULES for tool in module.OPERATIONS},
    **{name: offer.load() for name, offer in offers("operations").items()},
}
"""Every tool and operation by its name."""


def call(
    memory: Memory,
    operation: str,
    arguments: Mapping[str, object] | None = None,
    *,
    session: str | None = None,
    interface: str = "host",
) -> Result:
    """Call an operation. Never raises: a failure is in the result under ``error``."""
    toolbox = Toolbox(memory, session=session, tools=OPERATIONS, interface=interface)
    return toolbox.call(operation, arguments)
