"""Errors: unknown tools, wrong arguments, and a memory that is switched off or misconfigured."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
import pytest
from mcp import Client, MCPError
from talking import OpenAgent, Talk, over_http, talk_to

from memoriter.agent import Agent, ReloadingAgent
from memoriter.config import Settings, load
from memoriter.errors import ConfigError
from memoriter.extensions.mcp.server import McpServer

DISABLED = "Memory is disabled: Memory is switched off: `plugins.slots.memory` is `none`."


def test_an_unknown_tool_is_an_error_that_lists_the_tools(talk: Talk) -> None:
    async def call(client: Client) -> tuple[int, str]:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("rm -rf", {})
        return refused.value.code, str(refused.value)

    code, message = talk(call)
    assert code == -32602
    assert message.startswith("There is no tool 'rm -rf'. The tools are: memory_search, memory_get,")


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("memory_search", {}, "memory_search needs `query`."),
        ("memory_search", {"query": 5}, "`query` must be a string of at most 10,000 characters."),
        (
            "memory_search",
            {"query": "x", "max": 1},
            "memory_search has no argument 'max'. Its arguments are: query, ",
        ),
        ("memory_get", {"path": "../x"}, "'../x' is refused. "),
        ("memory_get", {"path": "memory/none.md"}, "'memory/none.md' does not exist."),
        ("memory_forget", {}, "memory_forget needs either `memoryId` or `query`."),
    ],
)
def test_wrong_arguments_are_results_that_a_model_can_act_on(
    here: Talk, name: str, arguments: dict[str, object], message: str
) -> None:
    async def call(client: Client) -> object:
        return await client.call_tool(name, arguments)

    answer = here(call)
    assert answer.is_error
    assert answer.content[0].text.startswith(message)
    assert answer.structured_content["error"] == answer.content[0].text
    assert answer.structured_content["disabled"] is False


def test_a_memory_that_is_switched_off_has_no_tools_and_a_call_returns_the_reason(
    open_agent: OpenAgent,
) -> None:
    off = open_agent("none")

    async def ask(client: Client) -> tuple[list[str], list[str], int, str]:
        names = [tool.name for tool in (await client.list_tools()).tools]
        arguments_by_tool = {
            "memory_get": {"path": "x"},
            "memory_store": {"text": "x"},
            "search": {"query": "x"},
        }
        answers = [await client.call_tool(name, arguments) for name, arguments in arguments_by_tool.items()]
        assert all(answer.is_error for answer in answers)
        with pytest.raises(MCPError) as refused:
            await client.read_resource("memory://notes/memory/a.md")
        resources = (await client.list_resources()).resources
        return names, [answer.content[0].text for answer in answers], len(resources), str(refused.value)

    names, messages, resources, refused = talk_to(McpServer(lambda: off), ask)
    assert (names, messages, resources) == ([], [DISABLED] * 3, 0)
    assert refused == "Memory is switched off: `plugins.slots.memory` is `none`."


def test_a_memory_that_cannot_be_opened_lists_tools_that_return_the_reason() -> None:
    broken = Agent(None, None, error=ConfigError("search.max_results = 'many' is wrong."))

    async def ask(client: Client) -> tuple[list[str], list[str], list[bool]]:
        names = [tool.name for tool in (await client.list_tools()).tools]
        arguments_by_tool = {
            "memory_get": {"path": "x"},
            "memory_save": {"content": "x"},
            "fetch": {"id": "x"},
        }
        query = {"query": "x"}
        arguments_by_tool |= {"memory_search": query, "search": query, "memory_stats": {}}
        callable_names = [*names, "search", "fetch"]
        answers = [await client.call_tool(name, arguments_by_tool[name]) for name in callable_names]
        off = [answer.structured_content.get("disabled") for answer in answers[:4]]
        return names, [answer.content[0].text for answer in answers], off

    names, messages, disabled = talk_to(McpServer(lambda: broken), ask)
    assert names == ["memory_search", "memory_get", "memory_save", "memory_stats"]
    assert messages == ["Memory is disabled: search.max_results = 'many' is wrong."] * 6
    assert disabled == [True] * 4


class Owner:
    """Settings of the owner that change while the server runs."""

    def __init__(self, workspace: Path, home: Path) -> None:
        self.settings: dict[str, object] = {
            "workspace": workspace,
            "home": home,
            "embedding.provider": "none",
        }

    def __call__(self) -> Settings:
        return load(arguments=self.settings, environ={})


def test_changed_settings_apply_from_the_next_request(workspace: Path, tmp_path: Path) -> None:
    owner = Owner(workspace, tmp_path / "state")
    agent = ReloadingAgent(owner, check_interval_s=0.0)

    async def ask(client: Client) -> list[str | None]:
        errors = list[str | None]()
        for change in (
            {"plugins.slots.memory": "none"},
            {"plugins.slots.memory": "memory-core"},
            {"search.max_results": "many"},
            {"search.max_results": 3},
        ):
            owner.settings |= change
            answer = await client.call_tool("memory_stats", {})
            errors.append(answer.structured_content.get("error"))
        return errors

    try:
        switched, fine, misconfigured, fixed = talk_to(McpServer(agent), ask)
    finally:
        agent.close()
    assert (switched, fine, fixed) == (DISABLED, None, None)
    assert misconfigured is not None
    assert misconfigured.startswith("Memory is disabled: The setting search.max_results = 'many'")


def test_a_memory_that_stays_switched_off_is_opened_once(workspace: Path, tmp_path: Path) -> None:
    owner = Owner(workspace, tmp_path / "state")
    owner.settings |= {"plugins.slots.memory": "none"}
    agent = ReloadingAgent(owner, check_interval_s=0.0)
    assert len({id(agent()) for _ in range(5)}) == 1
    agent.close()


def test_a_replaced_agent_is_closed_after_the_grace_period(workspace: Path, tmp_path: Path) -> None:
    closed = threading.Event()
    owner = Owner(workspace, tmp_path / "state")
    agent = ReloadingAgent(owner, check_interval_s=0.0, grace_s=0.1)
    first = agent()
    first.memory._parts.engine.close = closed.set  # type: ignore[method-assign]
    owner.settings |= {"search.max_results": 3}
    assert agent() is not first
    assert closed.wait(120)
    agent.close()


def test_an_unknown_agent_is_one_clear_error() -> None:
    def lost() -> Agent:
        raise ConfigError("There is no agent 'b'.")

    async def ask(client: Client) -> tuple[str, str | None]:
        with pytest.raises(MCPError) as refused:
            await client.list_tools()
        return str(refused.value), client.instructions

    assert talk_to(McpServer(lost), ask) == ("There is no agent 'b'.", None)


def test_an_error_of_the_protocol_has_the_code_of_the_memorys_error(here: Talk) -> None:
    async def read(client: Client) -> object:
        with pytest.raises(MCPError) as refused:
            await client.read_resource("memory://elsewhere/x")
        return refused.value.data

    assert here(read) == {"code": "not_found"}


def test_the_message_of_a_bug_is_not_shown() -> None:
    def broken() -> Agent:
        raise ZeroDivisionError("secret")

    async def ask(client: Client) -> str:
        with pytest.raises(MCPError) as refused:
            await client.list_tools()
        return str(refused.value)

    assert talk_to(McpServer(broken), ask) == "The request failed: ZeroDivisionError."


NO_REQUESTS = [
    (b"", 400),
    (b"{", 400),
    (b"[]", 400),
    (b"null", 400),
    (b'{"method": "tools/call"}', 400),
    (b'{"method": "tools/call", "params": []}', 400),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": {}}}', 200),
    (b"[" * 100_000, 400),
    (b" " * (5 * 1024 * 1024), 413),
]


def test_malformed_requests_over_http_are_rejected(agent: Agent) -> None:
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    with over_http(McpServer(lambda: agent)) as url:
        answers = [
            httpx.post(url, content=body, headers=headers, timeout=60).status_code for body, _ in NO_REQUESTS
        ]
    assert answers == [status for _, status in NO_REQUESTS]
