"""MCP behind the gateway: the same guard, the same access, all agents."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from gateways import Running, Start, listening, poll
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from memoriter.server.http import observe
from memoriter.tools.table import OPERATIONS
from memoriter.tools.tool import Call, Shape

SPEAKS = {"Accept": "application/json, text/event-stream"}


def called(caller: httpx.Client, name: str, **headers: str) -> httpx.Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}}}
    return caller.post("/mcp", json=body, headers={**SPEAKS, **headers})


def test_a_tool_that_requires_more_access_is_403_over_mcp(gateway: Running) -> None:
    reader = gateway.caller("read")
    writing = [name for name, tool in OPERATIONS.items() if tool.access != "read"]
    assert {name: called(reader, name).status_code for name in writing} == dict.fromkeys(writing, 403)
    writer = gateway.caller("write")
    owners = [name for name, tool in OPERATIONS.items() if tool.access == "admin"]
    assert {name: called(writer, name).status_code for name in owners} == dict.fromkeys(owners, 403)


def tools_of(result: str) -> list[str]:
    data = next(line for line in result.splitlines() if line.startswith(("data: ", "{"))).removeprefix(
        "data: "
    )
    return [tool["name"] for tool in json.loads(data)["result"]["tools"]]


def test_a_caller_sees_only_tools_that_it_may_call(gateway: Running) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    listed = {
        access: tools_of(gateway.caller(access).post("/mcp", json=body, headers=SPEAKS).text)
        for access in ("read", "write")
    }
    assert "memory_save" in listed["write"]
    assert "memory_save" not in listed["read"]
    assert "memory_search" in listed["read"]


def test_the_sdk_client_can_search_and_its_changes_are_events(start: Start, tmp_path: Path) -> None:
    other = tmp_path / "work" / "memory"
    other.mkdir(parents=True)
    (other / "plans.md").write_text("# Plans\n\nThe zebra crossing is repainted in May.\n")
    gateway = start(watch__enabled=False, gateway__agents={"work": tmp_path / "work"})
    secret = gateway.gateway.tokens.create("write")[1]
    headers = {"Authorization": f"Bearer {secret}", "X-Memoriter-Agent": "work"}

    async def talk() -> Any:
        from mcp.shared._httpx_utils import create_mcp_http_client

        async with create_mcp_http_client(headers=headers) as http:
            transport = streamable_http_client(f"{gateway.address}/mcp", http_client=http)
            async with Client(transport) as client:
                found = await client.call_tool("memory_search", {"query": "zebra crossing"})
                await client.call_tool("memory_save", {"content": "The crossing was repainted today."})
                return found.structured_content

    with listening(gateway.caller("read"), "work") as events:
        events.until("hello")
        found = asyncio.run(talk())
        assert events.until("notes")["data"]["operation"] == "memory_save"
    assert found["results"][0]["path"] == "memory/plans.md"
    counts = gateway.caller("read").get("/metrics").text
    assert 'operation="memory_save",outcome="ok"' in counts


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Replace a tool by one that sets the first event and waits for the second."""
    begun, release = threading.Event(), threading.Event()

    def wait(call: Call[Any]) -> Shape:
        begun.set()
        release.wait(20)
        return OPERATIONS["memory_stats"].run(call)

    table = {**OPERATIONS, "memory_stats": replace(OPERATIONS["memory_stats"], run=wait)}
    monkeypatch.setattr(observe, "OPERATIONS", table)
    yield begun, release
    release.set()


def test_running_calls_get_responses_when_the_gateway_stops(
    start: Start, slow: tuple[threading.Event, threading.Event]
) -> None:
    begun, release = slow
    gateway = start(watch__enabled=False)
    answers: list[httpx.Response] = []
    caller = gateway.caller("read")
    asking = threading.Thread(target=lambda: answers.append(called(caller, "memory_stats")))
    asking.start()
    assert begun.wait(120)
    gateway.server.stop()
    threading.Timer(0.3, release.set).start()
    asking.join(120)
    assert [answer.status_code for answer in answers] == [200]
    assert "file_count" in answers[0].text


def test_mcp_accepts_only_post(gateway: Running) -> None:
    caller = gateway.caller("read")
    for method in ("GET", "DELETE", "HEAD"):
        answer = caller.request(method, "/mcp", headers=SPEAKS)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_a_call_that_takes_too_long_is_an_error_of_the_protocol(
    start: Start, slow: tuple[threading.Event, threading.Event]
) -> None:
    gateway = start(watch__enabled=False, gateway__limits__timeout_s=0.5)
    caller = gateway.caller("read")
    assert called(caller, "memory_search").status_code == 200  # imports everything
    late = called(caller, "memory_stats")
    assert (late.status_code, "The request took longer than 0.5 s." in late.text) == (200, True)
    assert gateway.gateway.workers.in_use == 1  # a thread cannot be stopped
    slow[1].set()
    poll(lambda: gateway.gateway.workers.in_use == 0)


def test_mcp_calls_count_for_the_concurrency_limit(
    start: Start, slow: tuple[threading.Event, threading.Event]
) -> None:
    gateway = start(watch__enabled=False, gateway__limits__concurrency=1)
    threads = [
        threading.Thread(target=called, args=(gateway.caller("read"), "memory_stats")) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    poll(lambda: gateway.gateway.workers.in_use == 8)
    assert gateway.caller("read").post("/v1/agents/main/memory.stats").status_code == 503
    assert "The gateway is busy. Try again." in called(gateway.caller("read"), "memory_stats").text
    slow[1].set()
    for thread in threads:
        thread.join(120)
