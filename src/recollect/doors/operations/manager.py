"""Operations on the manager: what it holds, who answers, bring it up to date, try it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

from recollect.doors import schemas
from recollect.doors.tooling import Call, Param, Result, Tool, camel
from recollect.doors.tools import TOOLS


def _status(call: Call) -> Result:
    status = call.memory.status(deep=bool(call["deep"]))
    return {**camel(asdict(replace(status, details={}))), "details": dict(status.details)}


def _sync(call: Call) -> Result:
    report = call.memory.sync(force=bool(call["force"]), progress=call.progress)
    return {**camel(asdict(report)), "problems": [asdict(problem) for problem in report.problems]}


def _probe(call: Call) -> Result:
    manager = call.memory.manager
    return {"embedding": manager.probe_embedding() or "ok", "vectors": manager.probe_vector() or "ok"}


#: Tools of agents that gateways also know by the manager's own names.
_OF_AGENTS: Mapping[str, str] = {
    "memory.search": "memory_search",
    "memory.get": "memory_get",
    "memory.stats": "memory_stats",
}

_STATUS = {
    "backend": schemas.TEXT,
    "workspace": schemas.TEXT,
    "files": schemas.COUNT,
    "chunks": schemas.COUNT,
    "embedded": schemas.COUNT,
    "provider": schemas.TEXT,
    "model": schemas.TEXT,
    "vectorEngine": schemas.TEXT,
    "indexPath": schemas.TEXT,
    "indexBytes": schemas.COUNT,
    "lastSync": schemas.MAYBE_NUMBER,
    "fallback": schemas.BOOLEAN,
    "degraded": schemas.DEGRADED,
    "details": schemas.ANYTHING,
}
_REPORT = {
    **dict.fromkeys(
        ("files", "chunks", "changed", "unchanged", "removed", "failed", "embedded", "cached", "pending"),
        schemas.COUNT,
    ),
    "rebuilt": schemas.BOOLEAN,
    "seconds": schemas.NUMBER,
    "problems": schemas.many(schemas.shape(path=schemas.TEXT, reason=schemas.TEXT)),
    "degraded": schemas.DEGRADED,
    "healed": schemas.MAYBE_TEXT,
}

MANAGER = (
    *(replace(TOOLS[tool], name=name) for name, tool in _OF_AGENTS.items()),
    Tool(
        "memory.status",
        "What the manager holds, who answers, and what is missing.",
        (Param("deep", "boolean", "Also try the embedder and check the store."),),
        _status,
        {},
        returns=_STATUS,
    ),
    Tool(
        "memory.sync",
        "Bring the index up to date with the files.",
        (Param("force", "boolean", "Build everything anew."),),
        _sync,
        {},
        returns=_REPORT,
        read_only=False,
    ),
    Tool(
        "memory.probe",
        "Try the embedder and one vector search.",
        (),
        _probe,
        {},
        returns={"embedding": schemas.TEXT, "vectors": schemas.TEXT},
    ),
)
