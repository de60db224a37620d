"""What operations are noticed by: events for listeners, spans for traces, counts for metrics.

Every door calls the operations through the table that is made here, so what comes in by HTTP and what comes in by MCP
is noticed alike. An operation itself knows nothing of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memoriter.server.http import telemetry
from memoriter.server.http.events import EventKind, Hub
from memoriter.tools.hide_paths import shortened
from memoriter.tools.table import OPERATIONS
from memoriter.tools.tool import Call, Result, Shape, Tool

if TYPE_CHECKING:
    from memoriter.agent.service import Synced
    from memoriter.records import Progress, ProgressCallback

KINDS: Mapping[str, EventKind] = {
    "capture": "capture",
    "recall": "recall",
    "memory_recall": "recall",
    "memory.sync": "sync",
    "memory_save": "notes",
    "flush": "notes",
    "summarise": "notes",
}
"""The event of an operation; any other that changes something changes entries."""

TOLD = (
    "recallId",
    "path",
    "changed",
    "removed",
    "files",
    "chunks",
    "pending",
)  #: of a result, beside its ids
HOLDING = ("remembered", "approved", "memory", "entry", "entries")  #: where a result has entries
PROGRESS_S = 0.2  #: between two reports of progress


def observed(hub: Hub, *, content: bool) -> dict[str, Tool]:
    """The table of operations, each noticed; ``content`` lets texts into spans."""
    return {name: replace(tool, run=_run(tool, hub, content)) for name, tool in OPERATIONS.items()}


def _run(tool: Tool, hub: Hub, content: bool) -> Callable[[Call[Any]], Shape]:
    kind = KINDS.get(tool.name) or (None if tool.read_only else "entries")

    def run(call: Call[Any]) -> Shape:
        agent = call.memory.settings.agent
        if tool.name == "memory.sync":
            call = replace(call, progress=_both(call.progress, progress_to(hub, agent)))
        with telemetry.span(tool, call, content=content) as span:
            result = tool.run(call)
            span.done(result)
        if kind:
            hub.publish(agent, kind, operation=tool.name, **_told(result.to_json()))
        return result

    return run


def _told(result: Result) -> dict[str, object]:
    """Of a result, what a listener is told: ids, counts and places, so that it knows what to ask for."""
    told = {name: result[name] for name in TOLD if isinstance(result.get(name), str | int)}
    found = [entry for name in HOLDING for entry in _ids(result.get(name))]
    return {**told, **({"ids": found} if found else {})}


def _ids(held: object) -> Iterator[str]:
    """The ids of entries in a part of a result: an entry, what became of a statement, or many of them."""
    match held:
        case {"id": str(id_)} | {"memory": {"id": str(id_)}}:
            yield id_
        case list():
            for item in held:
                yield from _ids(item)


def progress_to(hub: Hub, agent: str) -> ProgressCallback:
    """Tells listeners how far a sync has come, not more often than they can use."""
    told_at = 0.0

    def report(progress: Progress) -> None:
        nonlocal told_at
        now = time.monotonic()
        if now - told_at >= PROGRESS_S or progress.done == progress.total:
            told_at = now
            hub.publish(agent, "progress", stage=progress.stage, done=progress.done, total=progress.total)

    return report


def _both(first: ProgressCallback | None, second: ProgressCallback) -> ProgressCallback:
    if first is None:
        return second

    def report(progress: Progress) -> None:
        first(progress)
        second(progress)

    return report


def publish_sync(hub: Hub, agent: str, synced: Synced) -> None:
    """A sync that happened by itself."""
    report = synced.report
    counts = {
        name: getattr(report, name) if report else 0
        for name in ("changed", "removed", "files", "chunks", "pending")
    }
    error = None if synced.error is None else shortened(synced.error)  # whoever may read may listen
    hub.publish(agent, "sync", reason=synced.reason, error=error, **counts)
