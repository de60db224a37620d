"""MemoriterToolset and MemoriterMemory in a real pydantic-ai agent, with models that record their requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from memoriter import Memory
from memoriter.extensions.pydantic_ai.toolset import MemoriterMemory, MemoriterToolset
from memoriter.tools.toolbox import TOOLS, Toolbox

# Loading the framework takes seconds in every worker.
pytestmark = pytest.mark.integration

OpenMemory = Callable[..., Memory]
Given = MemoriterToolset[None] | MemoriterMemory[None]


class Scripted:
    """A model that makes some calls, then answers with the last result. It records its requests."""

    def __init__(self, *calls: tuple[str, Any]) -> None:
        self.calls = list(calls)
        self.infos: list[AgentInfo] = []
        # The texts of the user's turns in each request.
        self.prompts: list[list[str]] = []
        self.results: list[Any] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.infos.append(info)
        requests = [message for message in messages if isinstance(message, ModelRequest)]
        parts = [part for message in requests for part in message.parts if isinstance(part, UserPromptPart)]
        self.prompts.append([str(part.content) for part in parts])
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        self.results += [part.content for part in last.parts if isinstance(part, ToolReturnPart)]
        if self.calls:
            name, arguments = self.calls.pop(0)
            return ModelResponse(parts=[ToolCallPart(name, arguments)])
        return ModelResponse(parts=[TextPart("done")])

    def agent(self, given: Given) -> Agent[None, str]:
        if isinstance(given, MemoriterToolset):
            return Agent(FunctionModel(self), toolsets=[given])
        return Agent(FunctionModel(self), capabilities=[given])

    def run(self, given: Given, prompt: str | None = None, **more: Any) -> str:
        return asyncio.run(self.agent(given).run(prompt, **more)).output


def test_every_tool_has_its_definition_from_the_table(memory: Memory) -> None:
    model = Scripted()
    model.run(MemoriterToolset(memory), "hello")
    given = {tool.name: tool for tool in model.infos[0].function_tools}
    assert {name: (tool.description, tool.parameters_json_schema) for name, tool in given.items()} == {
        name: (tool.description, tool.schema()) for name, tool in TOOLS.items()
    }


def test_an_agent_finds_what_it_saved_the_day_before(open_memory: OpenMemory) -> None:
    with open_memory() as memory:
        model = Scripted(
            ("memory_save", {"content": "The ferry to Barreiro leaves at nine.", "title": "Ferry"})
        )
        model.run(MemoriterToolset(memory), "Remember the ferry")
        assert model.results[0]["saved"] is True
    memory = open_memory()
    model = Scripted(("memory_search", '{"query": "when does the ferry leave?"}'))
    model.run(MemoriterToolset(memory), "ferry?")
    assert "leaves at nine" in model.results[0]["results"][0]["snippet"]


def test_the_test_model_can_call_every_read_only_tool(memory: Memory) -> None:
    names = [name for name, tool in TOOLS.items() if tool.read_only]
    agent = Agent(TestModel(), toolsets=[MemoriterToolset(memory, names=names)])
    done = asyncio.run(agent.run("go"))
    assert all(name in done.output for name in names)


def test_a_failure_is_a_result_and_not_retried(memory: Memory) -> None:
    model = Scripted(("memory_get", {"path": "../../etc/passwd"}), ("memory_search", {"quary": "x"}))
    assert model.run(MemoriterToolset(memory), "go") == "done"
    refused, wrong = model.results
    assert "refused" in refused["error"]
    assert wrong["error"].startswith("memory_search has no argument 'quary'")


QUESTION = "Is Mira allergic to hazelnuts?"


@pytest.fixture
def mira(note: Callable[[str, str], Path]) -> None:
    note("memory/mira.md", "# Mira\n\nMira is allergic to hazelnuts and to nothing else.\n")


@pytest.mark.usefixtures("mira")
def test_recalled_memories_come_before_the_prompt_and_not_in_the_instructions(memory: Memory) -> None:
    model = Scripted(("memory_stats", {}))
    agent = model.agent(MemoriterMemory(memory))
    done = asyncio.run(agent.run(QUESTION))
    told, asked = model.prompts[0]
    assert "allergic to hazelnuts and to nothing else" in told
    assert asked == QUESTION
    assert model.prompts[1] == model.prompts[0]  # recalled once per run
    assert [info.instructions for info in model.infos] == [Toolbox(memory).prompt("en")] * 2
    recalls = memory.entries.recalls().recalls
    assert [(one.interface, one.query) for one in recalls] == [("pydantic-ai", QUESTION)]
    assert "nothing else" not in done.all_messages_json().decode()  # the history is not changed


@pytest.mark.usefixtures("mira")
def test_the_toolset_recalls_nothing(memory: Memory) -> None:
    model = Scripted()
    model.run(MemoriterToolset(memory), QUESTION)
    assert model.prompts == [[QUESTION]]
    assert "## Memory recall" in (model.infos[0].instructions or "")


@pytest.mark.usefixtures("mira")
def test_a_continued_run_recalls_for_the_last_user_message(memory: Memory) -> None:
    model = Scripted()
    history: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("Good morning")]),
        ModelResponse(parts=[TextPart("Good morning")]),
        ModelRequest(parts=[UserPromptPart([QUESTION, ImageUrl("https://example.org/nut.png")])]),
    ]
    model.run(MemoriterMemory(memory), message_history=history)
    first, told, asked = model.prompts[0]
    assert "allergic to hazelnuts and to nothing else" in told
    assert (first, QUESTION in asked) == ("Good morning", True)
    assert len(history[2].parts) == 1


@pytest.mark.usefixtures("mira")
def test_recall_can_be_disabled(memory: Memory) -> None:
    model = Scripted()
    model.run(MemoriterMemory(memory, recall=False, language="zh"), QUESTION)
    assert model.prompts == [[QUESTION]]
    assert "先用问题的关键词搜索" in (model.infos[0].instructions or "")


@pytest.mark.usefixtures("mira")
def test_a_session_outside_the_scope_gets_nothing(open_memory: OpenMemory) -> None:
    memory = open_memory(memory__scope__default="deny")
    model = Scripted(("memory_search", {"query": "hazelnuts"}))
    model.run(MemoriterMemory(memory, session="agent:main:discord:group:1"), QUESTION)
    assert model.prompts == [[QUESTION]] * 2
    assert model.infos[0].instructions in (None, "")
    assert model.results[0]["results"] == []


def test_concurrent_runs_do_not_share_recalled_memories(
    memory: Memory, note: Callable[[str, str], Path]
) -> None:
    note("memory/a.md", "# Zebra\n\nThe zebra is called Kunibert.\n")
    note("memory/b.md", "# Penguin\n\nThe penguin is called Adelheid.\n")
    given = MemoriterMemory[None](memory)

    async def ask(question: str) -> str:
        model = Scripted()
        await model.agent(given).run(question)
        return model.prompts[0][0]

    async def main() -> list[str]:
        return await asyncio.gather(ask("zebra Kunibert"), ask("penguin Adelheid"))

    zebra, penguin = asyncio.run(main())
    assert "called Kunibert" in zebra
    assert "called Adelheid" in penguin
