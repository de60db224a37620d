"""Tools over MCP: which are listed, and that a call returns the same as in Python."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mcp import Client
from talking import OpenAgent, Talk, talk_to

from lab.evals.recalled_blocks import read_back
from memoriter.agent import Agent
from memoriter.extensions.mcp.results import MAX_RESULT_BYTES, limit_size
from memoriter.extensions.mcp.server import McpServer
from memoriter.text.tokens import estimate_tokens
from memoriter.tools.tool import Shape
from memoriter.tools.toolbox import TOOLS, Toolbox

Note = Callable[[str, str], Path]
READING = {
    "memory_search": {"query": "how is the database backed up?"},
    "memory_get": {"path": "memory/2026-02-08.md"},
    "memory_stats": {},
}


def test_the_tools_of_the_slot_are_listed_with_the_arguments_of_the_table(talk: Talk) -> None:
    async def listed(client: Client) -> list[object]:
        return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in talk(listed)}
    assert list(tools) == list(TOOLS)
    for name, tool in TOOLS.items():
        assert tools[name].description == tool.description
        assert list(tools[name].input_schema["properties"]) == list(tool.schema()["properties"])
        assert tools[name].input_schema.get("required", []) == tool.schema()["required"]
        assert tools[name].output_schema is None
        hints = tools[name].annotations.model_dump(by_alias=True, exclude_none=True)
        assert hints["openWorldHint"] is False
        assert hints.get("readOnlyHint", False) == tool.read_only
    assert tools["memory_search"].annotations.read_only_hint
    assert not tools["memory_save"].annotations.read_only_hint
    assert tools["memory_forget"].annotations.destructive_hint


def test_the_list_of_tools_costs_at_most_1200_tokens(talk: Talk) -> None:
    """It is part of every conversation. Counted are all eight tools, as the client receives them."""

    async def listed(client: Client) -> str:
        result = await client.list_tools()
        tools = result.model_dump(by_alias=True, exclude_none=True, mode="json")["tools"]
        return json.dumps(tools, ensure_ascii=False, separators=(",", ":"))

    assert estimate_tokens(talk(listed)) <= 1200


def test_tools_that_read_return_the_same_as_in_python(
    every_transport: Talk, agent: Agent, note: Note
) -> None:
    note("memory/2026-02-08.md", "# Backups\n\nThe database is backed up at night to the NAS.\n")
    box = Toolbox(agent.memory)
    expected = {name: box.call(name, arguments) for name, arguments in READING.items()}

    async def asked(client: Client) -> dict[str, object]:
        return {name: await client.call_tool(name, arguments) for name, arguments in READING.items()}

    answers = every_transport(asked)
    assert {name: answer.structured_content for name, answer in answers.items()} == expected
    assert {name: json.loads(answer.content[0].text) for name, answer in answers.items()} == expected
    assert not any(answer.is_error for answer in answers.values())


def test_a_note_that_was_written_between_two_calls_is_found(every_transport: Talk, note: Note) -> None:
    """As an editor or the file tool of the agent writes it: nothing tells the memory."""
    note("memory/bird.md", "The heron stands in the river.\n")

    async def use(client: Client) -> list[list[str]]:
        found = []
        for bird in ("heron", "stork", "otter"):
            note("memory/bird.md", f"The {bird} stands in the river.\n")
            answer = await client.call_tool("memory_search", {"query": bird, "maxResults": 1})
            result = answer.structured_content
            found.append([result["degraded"], *(hit["snippet"].split()[1] for hit in result["results"])])
        return found

    assert every_transport(use) == [[None, "heron"], [None, "stork"], [None, "otter"]]


def test_the_result_of_every_tool_matches_its_schema(every_transport: Talk) -> None:
    async def use(client: Client) -> dict[str, object]:
        stored = await client.call_tool(
            "memory_store", {"text": "Anna prefers tea.", "category": "preference"}
        )
        arguments_by_tool = {
            **READING,
            "memory_save": {"content": "Boris drinks coffee.", "title": "Boris"},
            "memory_recall": {"query": "Anna"},
            "memory": {"action": "list"},
            "memory_forget": {"memoryId": stored.structured_content["memory"]["id"]},
            "search": {"query": "coffee"},
        }
        arguments_by_tool["memory_get"] = {"path": "MEMORY.md"}
        results = {
            name: await client.call_tool(name, arguments) for name, arguments in arguments_by_tool.items()
        }
        ids = [one["id"] for one in results["search"].structured_content["results"]]
        return {**results, "memory_store": stored, "fetch": await client.call_tool("fetch", {"id": ids[0]})}

    answers = every_transport(use)
    assert set(answers) == {*TOOLS, "search", "fetch"}
    failed = {name: answer.content[0].text for name, answer in answers.items() if answer.is_error}
    assert failed == {"memory_get": "'MEMORY.md' does not exist."}
    for name, answer in answers.items():
        if name in TOOLS:
            jsonschema.validate(answer.structured_content, TOOLS[name].output_schema())


@pytest.mark.parametrize(
    ("slot", "names"),
    [
        ("memory-core", ["memory_search", "memory_get", "memory_save", "memory_stats"]),
        ("memory-lancedb", ["memory_recall", "memory_store", "memory_forget", "memory"]),
    ],
)
def test_the_slot_decides_which_tools_exist(slot: str, names: list[str], open_agent: OpenAgent) -> None:
    agent = open_agent(slot, entries__vector_engine="scan")

    async def listed(client: Client) -> list[str]:
        with pytest.raises(Exception, match="There is no tool"):
            await client.call_tool("memory_get" if slot == "memory-lancedb" else "memory_recall", {})
        return [tool.name for tool in (await client.list_tools()).tools]

    assert talk_to(McpServer(lambda: agent), listed) == names


def test_many_concurrent_calls_all_get_results(talk: Talk, note: Note) -> None:
    note("memory/birds.md", "A heron stands by the river.\n")

    async def ask(client: Client) -> list[object]:
        calls = [client.call_tool("memory_search", {"query": "heron"}) for _ in range(16)]
        return await asyncio.gather(*calls)

    found = [[hit["path"] for hit in answer.structured_content["results"]] for answer in talk(ask)]
    assert found == [["memory/birds.md"]] * 16


def test_the_instructions_are_the_section_of_the_system_prompt(talk: Talk, agent: Agent) -> None:
    async def welcomed(client: Client) -> str | None:
        return client.instructions

    assert talk(welcomed) == Toolbox(agent.memory).prompt()


def test_a_result_that_is_too_long_is_shortened_and_says_so(here: Talk, agent: Agent) -> None:
    facts = [f"Fact number {number}: " + f"语言{number} 记忆 " * 230 for number in range(20)]
    agent.memory.entries.import_(json.dumps(facts))

    async def ask(client: Client) -> object:
        return await client.call_tool("memory", {"action": "list", "limit": 500})

    answer = here(ask)
    size = len(answer.content[0].text.encode())
    count = len(answer.structured_content["memories"])
    assert MAX_RESULT_BYTES - 5000 < size <= MAX_RESULT_BYTES
    assert answer.structured_content["cut"] == (
        f"The result was too long. This is {count} of 20 memories. Ask for less at a time."
    )
    assert not answer.is_error


@pytest.mark.parametrize(
    "result",
    [
        {"text": "long " * 10_000},
        {"text": "语言" * 10_000},
        {"memories": [{"text": "long " * 10_000}]},
        {"memory": {"text": "\n" * 50_000, "id": "a"}, "disabled": False},
        {"results": ["语言" * 300] * 40, "note": None},
        {"data": "x" * 90_000, "other": ["y" * 30_000, "z" * 30_000]},
    ],
)
def test_the_longest_part_is_shortened_and_the_shape_stays(result: dict[str, object]) -> None:
    short = limit_size(result, 1000)
    assert len(json.dumps(short, ensure_ascii=False).encode()) <= 1000
    assert len(json.dumps(short, ensure_ascii=False).encode()) > 300
    assert {name: type(value) for name, value in short.items() if name != "cut"} == {
        name: type(value) for name, value in result.items()
    }
    assert str(short["cut"]).startswith("The result was too long.")


def test_a_short_result_is_not_changed() -> None:
    result = {"text": "short", "disabled": False}
    assert limit_size(result) is result


def test_a_bug_in_a_tool_is_a_result_and_the_server_continues(open_agent: OpenAgent) -> None:
    from dataclasses import replace

    def broken(_: object) -> Shape:
        raise ZeroDivisionError

    agent = open_agent()
    server = McpServer(
        lambda: agent, table={**TOOLS, "memory_stats": replace(TOOLS["memory_stats"], run=broken)}
    )

    async def ask(client: Client) -> list[object]:
        return [
            await client.call_tool("memory_stats", {}),
            await client.call_tool("memory_recall", {"query": "x"}),
        ]

    first, second = talk_to(server, ask)
    assert (first.is_error, first.content[0].text) == (True, "memory_stats failed: ZeroDivisionError.")
    assert not second.is_error


@pytest.mark.parametrize(
    "result",
    [
        {"tags": {f"tag number {number}": number for number in range(5000)}},
        {"stats": {"a": [{f"k{number}": 1 for number in range(9000)}]}},
        {"stats": {"k" * 50_000: 1, "b": "x" * 50_000}},
    ],
    ids=["numbers", "deeper", "names"],
)
def test_an_object_with_many_small_values_is_shortened(result: dict[str, Any]) -> None:
    short = limit_size(result)
    assert len(json.dumps(short).encode()) <= MAX_RESULT_BYTES
    assert short["cut"].startswith("The result was too long. This is ")
    assert short.keys() - {"cut"} == result.keys()


def test_a_prompt_says_that_what_a_client_wrote_may_come_from_outside(open_agent: OpenAgent) -> None:
    """A server does not see what its client has read before."""
    agent = open_agent(retrieval__min_confidence=0)

    async def write(client: Client) -> None:
        await client.call_tool("memory_store", {"text": "The heron nests on the water tower."})
        saved = {"content": "The heron returns in March.", "title": "Heron", "category": "birds"}
        await client.call_tool("memory_save", saved)

    talk_to(McpServer(lambda: agent), write)
    agent.memory.sync()
    block = agent.memory.recall("When does the heron return to the water tower?").text
    assert {line.whose for line in read_back(block)[1]} == {"agent"}
    assert len(read_back(block)[1]) == 2
    assert "agent = written by an agent, maybe from outside text" in block
