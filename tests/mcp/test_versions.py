"""All protocol versions, over HTTP as sent on the wire."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from talking import over_http

from memoriter.agent import Agent
from memoriter.extensions.mcp.server import McpServer

OLDER = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ACCEPT = {"accept": "application/json, text/event-stream"}


def posted(url: str, method: str, params: dict[str, object], **headers: str) -> httpx.Response:
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return httpx.post(url, json=asked, headers={**ACCEPT, **headers}, timeout=60)


def answer_of(response: httpx.Response) -> dict[str, Any]:
    if response.headers["content-type"].startswith("application/json"):
        return response.json()
    data = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    return json.loads(data[-1])


def test_older_clients_initialize_and_then_call_without_a_session(agent: Agent) -> None:
    client = {"name": "test", "version": "1"}
    with over_http(McpServer(lambda: agent)) as url:
        for version in OLDER:
            hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
            welcomed = posted(url, "initialize", hello)
            assert answer_of(welcomed)["result"]["protocolVersion"] == version
            assert "mcp-session-id" not in welcomed.headers
            call = {"name": "memory_stats", "arguments": {}}
            called = posted(url, "tools/call", call, **{"mcp-protocol-version": version})
            result = answer_of(called)["result"]
            assert json.loads(result["content"][0]["text"])["file_count"] == 0
        hello = {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": client}
        unknown = answer_of(posted(url, "initialize", hello))
    assert unknown["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
def test_the_newest_protocol_needs_no_initialization(agent: Agent, method: str) -> None:
    version = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    with over_http(McpServer(lambda: agent)) as url:
        headers = {"mcp-protocol-version": version, "mcp-method": method}
        answer = posted(url, method, {"_meta": meta}, **headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("application/json")
    result = answer.json()["result"]
    if method == "server/discover":
        assert result["supportedVersions"] == [version]
        assert result["instructions"].startswith("## Memory recall")
    else:
        assert len(result["tools"]) == 8
