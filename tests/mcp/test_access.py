"""The access of a caller decides which tools it sees and may call, for every tool and transport."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from talking import over_http, talk_to

from memoriter.agent import Agent, HookBus
from memoriter.agent.service import MemoryService
from memoriter.extensions.mcp.results import granted_access
from memoriter.extensions.mcp.server import McpServer
from memoriter.tools.table import OPERATIONS
from memoriter.tools.tool import ACCESS, Access, grants
from memoriter.tools.toolbox import TOOLS

Note = Callable[[str, str], Path]


class Everything:
    """A plugin with every operation."""

    name = "everything"
    tools = tuple(OPERATIONS)

    def register(self, bus: HookBus, service: MemoryService) -> None:
        pass


@pytest.fixture
def wide(agent: Agent) -> Agent:
    return Agent(agent.service, Everything(), owned=False)


@pytest.mark.parametrize("granted", ACCESS)
def test_tools_that_require_more_access_are_not_listed_and_cannot_be_called(
    wide: Agent, granted: Access
) -> None:
    async def verdicts(client: Client) -> tuple[set[str], dict[str, int]]:
        refused = dict[str, int]()
        for name, tool in OPERATIONS.items():
            if not grants(granted, tool.access):
                try:
                    await client.call_tool(name, {})
                except MCPError as error:
                    refused[name] = error.code
        return {tool.name for tool in (await client.list_tools()).tools}, refused

    token = granted_access.set(granted)
    try:
        listed, refused = talk_to(McpServer(lambda: wide), verdicts)
    finally:
        granted_access.reset(token)
    allowed = {name for name, tool in OPERATIONS.items() if grants(granted, tool.access)}
    assert listed == allowed
    assert refused == dict.fromkeys(set(OPERATIONS) - allowed, -32003)


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
def test_over_http_a_tool_that_requires_more_access_is_403(wide: Agent, version: str) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    with over_http(McpServer(lambda: wide)) as url, httpx.Client(timeout=60) as http:

        def call(name: str, granted: Access) -> tuple[int, object]:
            params = {"name": name, "arguments": {}, **({"_meta": meta} if version > "2026" else {})}
            asked = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
            headers = {
                "x-access": granted,
                "accept": "application/json, text/event-stream",
                "mcp-protocol-version": version,
                "mcp-method": "tools/call",
                "mcp-name": name,
            }
            answer = http.post(url, json=asked, headers=headers)
            json = answer.headers["content-type"].startswith("application/json")
            return answer.status_code, answer.json() if json else answer.text

        writing = [name for name, tool in OPERATIONS.items() if tool.access != "read"]
        answers = {name: call(name, "read") for name in writing}
        admitted = call("memory_stats", "read")
        written = call("memory_save", "write")
    assert {name: status for name, (status, _) in answers.items()} == dict.fromkeys(writing, 403)
    needed = {name: OPERATIONS[name].access for name in writing}
    assert {name: body for name, (_, body) in answers.items()} == {
        name: {
            "jsonrpc": "2.0",
            "id": 7,
            "error": {
                "code": -32003,
                "message": f"{name} requires {needed[name]} access. This caller has read access.",
                "data": {"code": "forbidden"},
            },
        }
        for name in writing
    }
    assert admitted[0] == 200
    assert written[0] == 200
    assert "memory_save needs `content`." in str(written[1])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_over_http_a_client_with_read_access_can_read_but_not_write(
    agent: Agent, note: Note, mode: str
) -> None:
    note("memory/birds.md", "A heron stands by the river.\n")

    async def ask(url: str) -> tuple[list[str], list[str], str, list[str]]:
        headers = {"x-access": "read"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            names = [tool.name for tool in (await client.list_tools()).tools]
            found = await client.call_tool("memory_search", {"query": "heron"})
            with pytest.raises(MCPError) as refused:
                await client.call_tool("memory_save", {"content": "x"})
            prompts = [one.name for one in (await client.list_prompts()).prompts]
            return (
                names,
                [hit["path"] for hit in found.structured_content["results"]],
                str(refused.value),
                prompts,
            )

    with over_http(McpServer(lambda: agent)) as url:
        names, found, refused, prompts = asyncio.run(ask(url))
    reading = [name for name, tool in TOOLS.items() if tool.access == "read"]
    assert names == reading
    assert found == ["memory/birds.md"]
    assert refused == "memory_save requires write access. This caller has read access."
    assert prompts == ["recall"]


def test_instructions_mention_only_tools_that_the_caller_may_call(agent: Agent) -> None:
    async def welcomed(client: Client) -> str | None:
        return client.instructions

    token = granted_access.set("read")
    try:
        instructions = talk_to(McpServer(lambda: agent), welcomed)
    finally:
        granted_access.reset(token)
    assert instructions is not None
    assert "memory_search" in instructions
    assert "memory_save" not in instructions


def test_changed_access_applies_from_the_next_request(agent: Agent) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"accept": "application/json, text/event-stream"}
    with over_http(McpServer(lambda: agent)) as url, httpx.Client(timeout=60) as http:
        listed = [
            http.post(url, json=request, headers={**accept, "x-access": granted}).text
            for granted in ("write", "read", "write")
        ]
    assert ['"memory_save"' in text for text in listed] == [True, False, True]
