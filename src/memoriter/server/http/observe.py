"""Observability of operations: events for listeners, metrics, OpenTelemetry spans, and the log of requests.

The gateway wraps each operation of the table once, and HTTP and MCP both call the wrapped operations. No metric, and
by default no span, contains user text.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from memoriter import __version__, logs
from memoriter.invisible import escape_json
from memoriter.server.http.events import EventKind, Hub
from memoriter.tools.table import OPERATIONS
from memoriter.tools.tool import Call, Result, Shape, Tool
from memoriter.tools.toolbox import hide_folders

if TYPE_CHECKING:
    from memoriter.agent.service import Synced
    from memoriter.records import Progress, ProgressCallback
    from memoriter.server.http.guard import RequestRecord

log = logs.get("http")

#: Other packages that log, with their lowest level. Below it, their messages may quote requests.
OTHER_LOGGERS = {"uvicorn": logging.WARNING, "sse_starlette": logging.ERROR, "asyncio": logging.ERROR}


class JsonFormatter(logging.Formatter):
    """Formats a log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {
            "at": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            # Only the first line: other packages may quote requests in the lines below.
            "message": record.getMessage().partition("\n")[0],
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            line["trace"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return escape_json(json.dumps(line, ensure_ascii=False, default=str))


def setup(level: str) -> None:
    """Write JSON lines to standard error, for memoriter and for the packages that serve it."""
    logs.setup(level, formatter=JsonFormatter())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name, lowest in OTHER_LOGGERS.items():
        other = logging.getLogger(name)
        other.handlers[:] = [handler]
        other.setLevel(lowest)
        other.propagate = False


def log_request(record: RequestRecord) -> None:
    """Log a request."""
    if not log.isEnabledFor(logging.INFO):
        return
    fields = {
        "request": record.id,
        "method": record.method if record.method.isascii() and len(record.method) < 16 else "?",
        "route": record.route,
        "status": record.status,
        "ms": round(record.seconds * 1000, 2),
        "caller": record.caller.id if record.caller else None,
        "agent": record.agent,
        "operation": record.operation,
        "outcome": record.outcome,
    }
    present = {name: value for name, value in fields.items() if value is not None}
    log.info("request", extra={"fields": present})


EVENT_KINDS: Mapping[str, EventKind] = {
    "capture": "capture",
    "recall": "recall",
    "memory_recall": "recall",
    "memory.sync": "sync",
    "memory_save": "notes",
    "flush": "notes",
    "summarise": "notes",
}
"""The event of an operation. All other operations that change data change entries."""

#: Fields of a result that its event contains, besides the ids of entries.
EVENT_FIELDS = ("recallId", "path", "changed", "removed", "files", "chunks", "pending")
#: Fields of a result that contain entries.
ENTRY_FIELDS = ("remembered", "approved", "memory", "entry", "entries")
#: Minimum time between two progress events.
PROGRESS_INTERVAL_S = 0.2


# ---- events ---------------------------------------------------------------------------------------------------------


def wrap_operations(hub: Hub, *, content: bool) -> dict[str, Tool]:
    """Return the table of operations, wrapped with events and spans. ``content`` allows user text in spans."""
    return {name: replace(tool, run=_wrap(tool, hub, content)) for name, tool in OPERATIONS.items()}


def _wrap(tool: Tool, hub: Hub, content: bool) -> Callable[[Call[Any]], Shape]:
    kind = EVENT_KINDS.get(tool.name) or (None if tool.read_only else "entries")

    def run(call: Call[Any]) -> Shape:
        agent = call.memory.settings.agent
        if tool.name == "memory.sync":
            call = replace(call, progress=progress_to(hub, agent, call.progress))
        result = _run_in_span(tool, call, content=content)
        if kind:
            hub.publish(agent, kind, operation=tool.name, **_event_data(result.to_json()))
        return result

    return run


def _event_data(result: Result) -> dict[str, object]:
    """Return the ids, counts and paths of a result, so that a listener knows what to request."""
    data = {name: result[name] for name in EVENT_FIELDS if isinstance(result.get(name), str | int)}
    ids = [entry_id for name in ENTRY_FIELDS for entry_id in _entry_ids(result.get(name))]
    return {**data, **({"ids": ids} if ids else {})}


def _entry_ids(part: object) -> Iterator[str]:
    """Yield the ids in a part of a result: an entry, the outcome of a statement, or a list of them."""
    match part:
        case {"id": str(entry_id)} | {"memory": {"id": str(entry_id)}}:
            yield entry_id
        case list():
            for item in part:
                yield from _entry_ids(item)


def progress_to(hub: Hub, agent: str, also: ProgressCallback | None = None) -> ProgressCallback:
    """Return a callback that publishes the progress of a sync, a few times a second. ``also`` gets all of it."""
    sent_at = 0.0

    def report(progress: Progress) -> None:
        nonlocal sent_at
        if also:
            also(progress)
        now = time.monotonic()
        if now - sent_at >= PROGRESS_INTERVAL_S or progress.done == progress.total:
            sent_at = now
            hub.publish(agent, "progress", stage=progress.stage, done=progress.done, total=progress.total)

    return report


def publish_sync(hub: Hub, agent: str, synced: Synced) -> None:
    """Publish an automatic sync."""
    report = synced.report
    counts = {
        name: getattr(report, name) if report else 0
        for name in ("changed", "removed", "files", "chunks", "pending")
    }
    # Every caller with `read` access can listen, so absolute paths are removed.
    error = None if synced.error is None else hide_folders(synced.error)
    hub.publish(agent, "sync", reason=synced.reason, error=error, **counts)


# ---- metrics --------------------------------------------------------------------------------------------------------

# Label values are names of agents, operations, outcomes, routes and statuses. All of them come from fixed tables, so a
# caller cannot create new ones.

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
GAUGES = {"memoriter_chunks": "Chunks in the index.", "memoriter_entries": "Entries in the memory."}


class Metrics:
    """The metrics of one gateway since it was started."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._operations = Histogram(
            "memoriter_operation_duration_seconds",
            "Duration of operations.",
            ("agent", "operation", "outcome"),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._syncs = Histogram(
            "memoriter_sync_duration_seconds",
            "Duration of automatic syncs.",
            ("agent", "outcome"),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._requests = Counter(
            "memoriter_http_requests",
            "Requests by route and status.",
            ("route", "status"),
            registry=self._registry,
        )

    def count_operation(self, agent: str, name: str, outcome: str, seconds: float) -> None:
        """Count an operation."""
        self._operations.labels(agent, name, outcome).observe(seconds)

    def count_sync(self, agent: str, outcome: str, seconds: float) -> None:
        """Count a sync."""
        self._syncs.labels(agent, outcome).observe(seconds)

    def count_request(self, route: str, status: int) -> None:
        """Count a request."""
        self._requests.labels(route, str(status)).inc()

    def render(
        self, may_see: Callable[[str], bool], sizes: Mapping[str, Mapping[str, float]], listeners: int | None
    ) -> bytes:
        """Return the metrics of the agents that the caller may see.

        ``sizes`` holds the gauges by agent. ``listeners`` is None for a caller that may not see the gateway's own
        metrics.
        """
        return generate_latest(_Visible(self._registry, may_see, sizes, listeners))


class _Visible(Collector):
    """The metrics that one caller may see."""

    def __init__(
        self,
        registry: CollectorRegistry,
        may_see: Callable[[str], bool],
        sizes: Mapping[str, Mapping[str, float]],
        listeners: int | None,
    ) -> None:
        self._registry = registry
        self._may_see = may_see
        self._sizes = sizes
        self._listeners = listeners

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics with the samples that the caller may see."""
        for metric in self._registry.collect():
            visible = Metric(metric.name, metric.documentation, metric.type)
            visible.samples = [
                sample
                for sample in metric.samples
                if self._is_visible(sample.labels) and not sample.name.endswith("_created")
            ]
            if visible.samples:
                yield visible
        for name, help_text in GAUGES.items():
            gauge = GaugeMetricFamily(name, help_text, labels=("agent",))
            for agent, value in self._sizes.get(name, {}).items():
                if self._may_see(agent):
                    gauge.add_metric((agent,), value)
            yield gauge
        if self._listeners is not None:
            yield GaugeMetricFamily("memoriter_event_listeners", "Open event streams.", self._listeners)

    def _is_visible(self, labels: Mapping[str, str]) -> bool:
        agent = labels.get("agent")
        return self._listeners is not None if agent is None else self._may_see(agent)


# ---- spans ----------------------------------------------------------------------------------------------------------

SPAN_NAMES: Mapping[str, str] = {
    "memory_search": "search_memory",
    "memory_recall": "search_memory",
    "memory.search": "search_memory",
    "recall": "search_memory",
    "entries.list": "search_memory",
    "memory_get": "retrieval",
    "memory.get": "retrieval",
    "entries.get": "retrieval",
    "notes.get": "retrieval",
    "memory_save": "create_memory",
    "memory_store": "upsert_memory",
    "entries.add": "create_memory",
    "entries.import": "upsert_memory",
    "capture": "upsert_memory",
    "flush": "create_memory",
    "summarise": "create_memory",
    "memory_forget": "delete_memory",
    "entries.forget": "delete_memory",
    "entries.erase": "delete_memory",
    "entries.reject": "delete_memory",
}
"""Names from the OpenTelemetry conventions for generative AI. All other changes are `update_memory`."""

_RECORD_FIELDS = ("results", "entries", "remembered", "lines", "memories")

_trace_headers: ContextVar[Mapping[str, str] | None] = ContextVar("memoriter_http_trace", default=None)


def join_trace(headers: Mapping[str, str]) -> None:
    """Make the spans of this request part of the caller's trace, if the headers name one."""
    present = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
    if present:
        _trace_headers.set(present)


def _run_in_span(tool: Tool, call: Call[Any], *, content: bool) -> Shape:
    """Run an operation in a span with the number of records, and with the records themselves if content is allowed.

    A failure is recorded by its type. Without a trace provider in this process, no OpenTelemetry package is imported
    and nothing is recorded.
    """
    tracer = _tracer()
    if tracer is None:
        return tool.run(call)
    name = span_name(tool)
    agent = call.memory.settings.agent
    attributes = {
        "gen_ai.operation.name": name,
        "gen_ai.provider.name": "memoriter",
        "gen_ai.memory.store.name": agent,
        "gen_ai.tool.name": tool.name,
    }
    query = getattr(call.arguments, "query", None) if content else None
    if isinstance(query, str):
        attributes["gen_ai.memory.query.text"] = query
    with tracer.start_as_current_span(
        f"{name} {agent}",
        context=_trace_context(),
        attributes=attributes,
        record_exception=False,  # its message may quote the query
        set_status_on_exception=False,
    ) as span:
        try:
            result = tool.run(call)
        except Exception as error:
            from opentelemetry.trace import StatusCode

            span.set_attribute("error.type", type(error).__name__)
            span.set_status(StatusCode.ERROR)
            raise
        data = result.to_json()
        records = next((data[name] for name in _RECORD_FIELDS if isinstance(data.get(name), list)), None)
        if records is not None:
            span.set_attribute("gen_ai.memory.record.count", len(records))
            if content:
                span.set_attribute("gen_ai.memory.records", json.dumps(records, ensure_ascii=False))
        return result


def _trace_context() -> Any:
    headers = _trace_headers.get()
    if not headers:
        return None
    from opentelemetry import propagate

    return propagate.extract(headers)


def span_name(tool: Tool) -> str:
    """Return the name of an operation in the conventions."""
    if tool.name in SPAN_NAMES:
        return SPAN_NAMES[tool.name]
    return tool.name if tool.read_only else "update_memory"


def _tracer() -> Any:
    """Return the tracer of the trace provider, or None if none is set."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return trace.get_tracer("memoriter", __version__)
