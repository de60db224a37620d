"""Operations on the manager: what it holds, who answers, bring it up to date, try it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from memoriter.tools import results
from memoriter.tools.tool import Call, Param, Result, Tool, camel
from memoriter.tools.toolbox import TOOLS, hit_json

if TYPE_CHECKING:
    from memoriter.records import Hit


def _search(call: Call) -> Result:
    answer = call.memory.search(
        call["query"],
        max_results=call["maxResults"],
        min_score=call["minScore"],
        source=call["source"],
        path_prefix=call["pathPrefix"],
        session_key=call.session_key,
    )
    return {
        "results": [{**hit_json(hit), **(_explained(hit) if call["explain"] else {})} for hit in answer.hits],
        "provider": answer.provider,
        "model": answer.model,
        "fallback": answer.fallback,
        "citations": answer.citations,
        "degraded": answer.degraded,
    }


def _explained(hit: Hit) -> dict[str, object]:
    """How the score was made; the parts sum to it."""
    return {
        "parts": [asdict(part) for part in hit.explain.parts],
        "matched": list(hit.explain.matched),
        "date": hit.date,
        "chunkId": hit.chunk_id,
    }


def _status(call: Call) -> Result:
    status = call.memory.status(deep=bool(call["deep"]))
    return {**camel(asdict(replace(status, details={}))), "details": dict(status.details)}


def _sync(call: Call) -> Result:
    report = call.memory.sync(force=bool(call["force"]), progress=call.progress)
    return {**camel(asdict(report)), "problems": [asdict(problem) for problem in report.problems]}


def _probe(call: Call) -> Result:
    manager = call.memory.engine
    return {"embedding": manager.probe_embedding() or "ok", "vectors": manager.probe_vector() or "ok"}


#: Tools of agents that gateways also know by the manager's own names.
_OF_AGENTS: Mapping[str, str] = {"memory.get": "memory_get", "memory.stats": "memory_stats"}

_STATUS = {
    "backend": results.TEXT,
    "workspace": results.TEXT,
    "files": results.COUNT,
    "chunks": results.COUNT,
    "embedded": results.COUNT,
    "provider": results.TEXT,
    "model": results.TEXT,
    "vectorEngine": results.TEXT,
    "indexPath": results.TEXT,
    "indexBytes": results.COUNT,
    "lastSync": results.MAYBE_NUMBER,
    "fallback": results.BOOLEAN,
    "degraded": results.DEGRADED,
    "details": results.ANYTHING,
}
_REPORT = {
    **dict.fromkeys(
        ("files", "chunks", "changed", "unchanged", "removed", "failed", "embedded", "cached", "pending"),
        results.COUNT,
    ),
    "rebuilt": results.BOOLEAN,
    "seconds": results.NUMBER,
    "problems": results.many(results.shape(path=results.TEXT, reason=results.TEXT)),
    "degraded": results.DEGRADED,
    "healed": results.MAYBE_TEXT,
}

_SEARCH = TOOLS["memory_search"]

MANAGER = (
    Tool(
        "memory.search",
        "Search notes, past sessions and entries by meaning and by keyword, best first. Snippets are whole: they are "
        "not cut to fit a prompt.",
        (
            Param("query", "string", "Words or a question, in any language.", required=True),
            *_SEARCH.params[1:],
            Param("pathPrefix", "string", "Only files whose path begins so.", longest=4_096),
            Param("explain", "boolean", "Also say how each score was made."),
        ),
        _search,
        {},
        empty=_SEARCH.empty,
        returns=_SEARCH.returns,
    ),
    *(replace(TOOLS[tool], name=name) for name, tool in _OF_AGENTS.items()),
    Tool(
        "memory.status",
        "What the manager holds, who answers, and what is missing. Only the owner is told in which folders things are.",
        (Param("deep", "boolean", "Also try the embedder and check the store."),),
        _status,
        {},
        returns=_STATUS,
        about_us=True,
    ),
    Tool(
        "memory.sync",
        "Bring the index up to date with the files.",
        (Param("force", "boolean", "Build everything anew."),),
        _sync,
        {},
        returns=_REPORT,
        read_only=False,
        about_us=True,
    ),
    Tool(
        "memory.probe",
        "Try the embedder and one vector search.",
        (),
        _probe,
        {},
        returns={"embedding": results.TEXT, "vectors": results.TEXT},
        about_us=True,
    ),
)
