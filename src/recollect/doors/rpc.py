"""Calls to the manager by name, for gateways: `call(memory, "memory.search", {"query": "…"})`.

The operations are tools like those that agents have, with a few more for owners; they check their arguments and answer
in the same way. Who may call which is the gateway's duty: `read_only` tells what changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from recollect.doors.tooling import Call, Param, Result, Tool
from recollect.doors.tools import TOOLS, Toolbox

if TYPE_CHECKING:
    from recollect.memory import Memory


def _status(call: Call) -> Result:
    status = asdict(call.memory.status(deep=bool(call["deep"])))
    return {**status, "details": dict(status["details"])}


def _sync(call: Call) -> Result:
    return asdict(call.memory.sync(force=bool(call["force"])))


def _probe(call: Call) -> Result:
    manager = call.memory.manager
    return {"embedding": manager.probe_embedding() or "ok", "vectors": manager.probe_vector() or "ok"}


_MORE = (
    Tool(
        "memory.status",
        "What the manager holds, who answers, and what is missing.",
        (Param("deep", "boolean", "Also try the embedder and check the store."),),
        _status,
        {},
    ),
    Tool(
        "memory.sync",
        "Bring the index up to date with the files.",
        (Param("force", "boolean", "Build everything anew."),),
        _sync,
        {},
        read_only=False,
    ),
    Tool("memory.probe", "Try the embedder and one vector search.", (), _probe, {}),
)
_OF_AGENTS = {"memory.search": "memory_search", "memory.get": "memory_get", "memory.stats": "memory_stats"}

OPERATIONS: Mapping[str, Tool] = {
    **{name: replace(TOOLS[tool], name=name) for name, tool in _OF_AGENTS.items()},
    **{tool.name: tool for tool in _MORE},
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
