"""Operations on the manager: what it holds, who answers, bring it up to date, try it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

from recollect.doors.tooling import Call, Param, Result, Tool
from recollect.doors.tools import TOOLS


def _status(call: Call) -> Result:
    status = asdict(call.memory.status(deep=bool(call["deep"])))
    return {**status, "details": dict(status["details"])}


def _sync(call: Call) -> Result:
    return asdict(call.memory.sync(force=bool(call["force"]), progress=call.progress))


def _probe(call: Call) -> Result:
    manager = call.memory.manager
    return {"embedding": manager.probe_embedding() or "ok", "vectors": manager.probe_vector() or "ok"}


#: Tools of agents that gateways also know by the manager's own names.
_OF_AGENTS: Mapping[str, str] = {
    "memory.search": "memory_search",
    "memory.get": "memory_get",
    "memory.stats": "memory_stats",
}

MANAGER = (
    *(replace(TOOLS[tool], name=name) for name, tool in _OF_AGENTS.items()),
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
