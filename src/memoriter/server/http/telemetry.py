"""OpenTelemetry: a span for each operation, under the names that generative AI's conventions have for memories.

Only where the host of this process has set a provider of traces; otherwise nothing is loaded and nothing is done.
Texts (queries, what was found) are in a span only when `gateway.trace_content` is on.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from memoriter import __version__

if TYPE_CHECKING:
    from memoriter.tools.tool import Call, Shape, Tool

MEANING: Mapping[str, str] = {
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
    "entries.reject": "delete_memory",
}
"""What the conventions call an operation; other changes of entries are updates, other readings have no name there."""

_FOUND = ("results", "entries", "remembered", "lines", "memories")


_caller: ContextVar[Mapping[str, str] | None] = ContextVar("memoriter_http_trace", default=None)


def follow(headers: Mapping[str, str]) -> None:
    """Within this request, spans belong to the caller's trace, if it names one."""
    named = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
    if named:
        _caller.set(named)


class Span:
    """What is noted of one operation; this one notes nothing."""

    def done(self, result: Shape) -> None:
        """The operation gave this."""


NOTHING = Span()


class _Noted(Span):
    def __init__(self, span: Any, *, content: bool) -> None:
        self._span = span
        self._content = content

    def done(self, result: Shape) -> None:
        data = result.to_json()
        found = next((data[name] for name in _FOUND if isinstance(data.get(name), list)), None)
        if found is not None:
            self._span.set_attribute("gen_ai.memory.record.count", len(found))
            if self._content:
                self._span.set_attribute("gen_ai.memory.records", json.dumps(found, ensure_ascii=False))


@contextmanager
def span(tool: Tool, call: Call[Any], *, content: bool) -> Iterator[Span]:
    """Around one operation; a failure is noted by its kind."""
    tracer = _tracer()
    if tracer is None:
        yield NOTHING
        return
    meaning = meaning_of(tool)
    agent = call.memory.settings.agent
    attributes = {
        "gen_ai.operation.name": meaning,
        "gen_ai.provider.name": "memoriter",
        "gen_ai.memory.store.name": agent,
        "gen_ai.tool.name": tool.name,
    }
    query = getattr(call.arguments, "query", None) if content else None
    if isinstance(query, str):
        attributes["gen_ai.memory.query.text"] = query
    with tracer.start_as_current_span(
        f"{meaning} {agent}",
        context=_context(),
        attributes=attributes,
        record_exception=False,  # its sentence may quote what was asked
        set_status_on_exception=False,
    ) as noted:
        try:
            yield _Noted(noted, content=content)
        except Exception as error:
            from opentelemetry.trace import StatusCode

            noted.set_attribute("error.type", type(error).__name__)
            noted.set_status(StatusCode.ERROR)
            raise


def _context() -> Any:
    named = _caller.get()
    if not named:
        return None
    from opentelemetry import propagate

    return propagate.extract(named)


def meaning_of(tool: Tool) -> str:
    """The conventions' name of an operation."""
    if tool.name in MEANING:
        return MEANING[tool.name]
    return tool.name if tool.read_only else "update_memory"


def _tracer() -> Any:
    """The tracer of the provider that was set; None when there is none."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return trace.get_tracer("memoriter", __version__)
