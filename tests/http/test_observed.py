"""The log, metrics and spans of operations. None contains user text, a token or a link."""

from __future__ import annotations

import io
import json
import logging
import socket

import pytest
from gateways import Running, Start, ask, poll
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

from memoriter import logs
from memoriter.server.http import app, guard, observe
from memoriter.server.http.observe import SPAN_NAMES, span_name
from memoriter.tools.search import NoArguments
from memoriter.tools.table import OPERATIONS
from memoriter.tools.tool import Call, Shape, Tool

CANARY = "canary-9f3e"


@pytest.fixture
def lines() -> io.StringIO:
    """Collect the log of the gateway at all levels."""
    written = io.StringIO()
    logs.setup("debug", written, observe.JsonFormatter())
    return written


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add an operation with a bug. Its message quotes user text."""

    def fail(call: Call[NoArguments]) -> Shape:
        raise KeyError(f"{CANARY} in a failure")

    tool = Tool("test.broken", "Fails.", NoArguments, Shape, fail)
    for module in (guard, observe, app):
        monkeypatch.setattr(module, "OPERATIONS", {**OPERATIONS, tool.name: tool})


def test_the_log_names_callers_and_operations_but_contains_no_user_text(
    start: Start, lines: io.StringIO, failing: None
) -> None:
    gateway = start(watch__enabled=False)
    token, secret = gateway.gateway.tokens.create("admin")
    owner = gateway.client(secret)
    ticket = gateway.gateway.browsers.tickets.issue()
    owner.get("/open", params={"ticket": ticket})
    ask(owner, "memory.search", query=f"{CANARY} in a query")
    ask(owner, "memory_store", text=f"I prefer {CANARY} tea in the morning.")
    messages = [{"role": "user", "content": f"I always drink {CANARY} tea."}]
    ask(owner, "capture", messages=messages, session=CANARY)
    for path in (f"/{CANARY}", f"/v1/agents/{CANARY}/memory.stats", f"/v1/agents/main/{CANARY}"):
        assert owner.post(path, json={CANARY: CANARY}).status_code == 404
    owner.post("/v1/agents/main/memory.get", json={"path": f"memory/{CANARY}.md"})
    owner.post("/v1/agents/main/memory.search", json={"query": CANARY, CANARY: 1})
    owner.post("/v1/agents/main/memory.search", content=CANARY)
    broken = owner.post("/v1/agents/main/test.broken")
    assert (broken.status_code, broken.json()) == (
        500,
        {
            "error": "test.broken failed: KeyError.",
            "code": "internal_error",
            "details": {"name": "test.broken"},
        },
    )
    gateway.client(f"mmr_{CANARY}").get("/v1/agents", headers={"Origin": f"http://{CANARY}"})
    gateway.server.stop()

    text = lines.getvalue()
    assert CANARY not in text
    assert secret not in text
    assert ticket not in text
    entries = [json.loads(line) for line in text.splitlines()]
    requests = [line for line in entries if line["message"] == "request"]
    search = next(line for line in requests if line.get("operation") == "memory.search")
    assert {name: search[name] for name in ("method", "route", "status", "caller", "agent", "outcome")} == {
        "method": "POST",
        "route": "/v1/agents/{agent}/memory.search",
        "status": 200,
        "caller": token.id,
        "agent": "main",
        "outcome": "ok",
    }
    assert len({line["request"] for line in requests}) == len(requests)
    assert next(line for line in entries if line.get("error") == "KeyError")["trace"]


@pytest.mark.parametrize("path", ["/mcp", "/v1/agents/main/memory.stats"])
def test_a_client_that_disconnects_before_its_body_is_complete_is_logged_as_499(
    start: Start, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    observe.setup("info")
    gateway = start(watch__enabled=False)
    place = gateway.address.removeprefix("http://")
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {place}\r\nContent-Length: 1000\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\n"
        f"Authorization: Bearer {gateway.gateway.tokens.create('read')[1]}\r\n\r\n{{"
    )
    host, port = place.split(":")
    with socket.create_connection((host, int(port))) as leaving:
        leaving.sendall(head.encode())
        poll(lambda: gateway.gateway.asgi.bodies.waiting == 1)
    entries: list[dict[str, object]] = []

    def requests() -> list[object]:
        entries.extend(json.loads(line) for line in capsys.readouterr().err.splitlines())
        return [line["status"] for line in entries if line["message"] == "request"]

    poll(lambda: requests() == [499])
    assert [line for line in entries if line["level"] not in ("debug", "info")] == []


def test_failures_in_other_packages_are_logged_as_json_without_quotes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    observe.setup("info")
    package = logging.getLogger("sse_starlette.sse")
    package.warning("this may quote: %s", CANARY)
    failed = KeyError(CANARY)
    package.error("it failed\nand quotes %s", CANARY, exc_info=failed)
    (line,) = capsys.readouterr().err.splitlines()
    entries = json.loads(line)
    assert (entries["message"], entries["error"], CANARY in line) == ("it failed", "KeyError", False)


def test_a_response_has_the_request_id_of_its_log_line(start: Start, lines: io.StringIO) -> None:
    gateway = start(watch__enabled=False)
    answer = gateway.client().get("/healthz")
    poll(lambda: f'"request": "{answer.headers["x-request-id"]}"' in lines.getvalue())


# ---- metrics --------------------------------------------------------------------------------------------------------


def samples_of(text: str) -> dict[tuple[str, ...], float]:
    """Return the samples that Prometheus reads from the metrics, by name and labels."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_are_in_the_prometheus_format(gateway: Running) -> None:
    caller = gateway.caller("admin")
    ask(caller, "memory.search", query=f"{CANARY} tea")
    caller.post("/v1/agents/main/memory.search", json={})
    ask(caller, "memory_store", text="I prefer green tea in the morning.")
    for path in (f"/{CANARY}", f"/v1/agents/main/{CANARY}"):
        caller.get(path)
    answer = caller.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert CANARY not in answer.text
    samples = samples_of(answer.text)
    name = "memoriter_operation_duration_seconds"
    assert samples[f"{name}_count", "main", "memory.search", "ok"] == 1
    assert samples[f"{name}_bucket", "main", "+Inf", "memory.search", "ok"] == 1
    assert samples[f"{name}_count", "main", "memory.search", "invalid"] == 1
    assert samples["memoriter_entries", "main"] == 1
    assert samples["memoriter_chunks", "main"] > 0
    assert samples["memoriter_http_requests_total", "other", "404"] == 2
    assert samples[("memoriter_event_listeners",)] == 0
    assert not any("_created" in key[0] for key in samples)
    buckets = [
        value
        for key, value in samples.items()
        if key[0] == f"{name}_bucket" and key[3:] == ("memory.search", "ok")
    ]
    assert buckets == sorted(buckets)


def test_an_operation_is_counted_once_whichever_interface_calls_it(gateway: Running) -> None:
    caller = gateway.caller("admin")
    ask(caller, "memory_search", query="tea")
    for arguments in ({"query": "tea"}, {}):
        body = {"name": "memory_search", "arguments": arguments}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": body}
        accepted = {"Accept": "application/json, text/event-stream"}
        assert caller.post("/mcp", json=request, headers=accepted).status_code == 200
    samples = samples_of(caller.get("/metrics").text)
    name = "memoriter_operation_duration_seconds_count"
    assert samples[name, "main", "memory_search", "ok"] == 2
    assert samples[name, "main", "memory_search", "invalid"] == 1


# ---- spans ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Set a trace provider that stores spans in memory."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return exporter


def test_spans_follow_the_conventions_and_contain_no_user_text(
    gateway: Running, spans: InMemorySpanExporter
) -> None:
    caller = gateway.caller("admin")
    ask(caller, "memory.search", query=f"{CANARY} tea")
    ask(caller, "memory_store", text=f"I prefer {CANARY} tea in the morning.")
    ask(caller, "entries.list")
    caller.post("/v1/agents/main/memory.get", json={"path": f"memory/{CANARY}.md"})
    seen = {span.attributes["gen_ai.tool.name"]: span for span in spans.get_finished_spans()}
    assert {name: dict(span.attributes) for name, span in seen.items()} == {
        "memory.search": {
            "gen_ai.operation.name": "search_memory",
            "gen_ai.provider.name": "memoriter",
            "gen_ai.memory.store.name": "main",
            "gen_ai.tool.name": "memory.search",
            "gen_ai.memory.record.count": seen["memory.search"].attributes["gen_ai.memory.record.count"],
        },
        "memory_store": {
            "gen_ai.operation.name": "upsert_memory",
            "gen_ai.provider.name": "memoriter",
            "gen_ai.memory.store.name": "main",
            "gen_ai.tool.name": "memory_store",
        },
        "entries.list": {
            "gen_ai.operation.name": "search_memory",
            "gen_ai.provider.name": "memoriter",
            "gen_ai.memory.store.name": "main",
            "gen_ai.tool.name": "entries.list",
            "gen_ai.memory.record.count": 1,
        },
        "memory.get": {
            "gen_ai.operation.name": "retrieval",
            "gen_ai.provider.name": "memoriter",
            "gen_ai.memory.store.name": "main",
            "gen_ai.tool.name": "memory.get",
            "error.type": "NotFound",
        },
    }
    assert seen["memory.search"].name == "search_memory main"
    assert not any(CANARY in span.to_json() for span in seen.values())


def test_spans_join_the_callers_trace_and_contain_text_if_allowed(
    start: Start, spans: InMemorySpanExporter
) -> None:
    gateway = start(watch__enabled=False, gateway__trace_content=True)
    caller = gateway.caller("admin")
    caller.headers["traceparent"] = f"00-{'ab' * 16}-{'cd' * 8}-01"
    ask(caller, "memory.search", query="the backup of the database")
    (span,) = spans.get_finished_spans()
    assert span.parent is not None
    assert (f"{span.context.trace_id:x}", f"{span.parent.span_id:x}") == ("ab" * 16, "cd" * 8)
    assert span.attributes["gen_ai.memory.query.text"] == "the backup of the database"
    assert json.loads(span.attributes["gen_ai.memory.records"])


def test_there_are_no_spans_without_a_provider(gateway: Running) -> None:
    ask(gateway.caller("admin"), "memory.search", query="backup")
    assert observe._tracer() is None


def test_every_operation_that_changes_data_has_a_span_name() -> None:
    known = {"search_memory", "retrieval", "create_memory", "update_memory", "upsert_memory", "delete_memory"}
    assert set(SPAN_NAMES) <= set(OPERATIONS)
    assert {span_name(tool) for tool in OPERATIONS.values() if not tool.read_only} <= known
