"""Pydantic AI: an agent with the memory tools, and with recalled text in its prompt. No key, no network.

The model is a function. Replace it by the name of a real model, such as "anthropic:…".
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

import memoriter
from memoriter.extensions.pydantic_ai import MemoriterMemory
from memoriter.testing import sample_workspace

QUESTION = "How is the database backed up?"


def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Search first, then answer with the best line."""
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    found = next((part.content for part in last.parts if isinstance(part, ToolReturnPart)), None)
    if found is None:
        prompts = [part.content for part in last.parts if isinstance(part, UserPromptPart)]
        recalled = [line for line in str(prompts[0]).splitlines() if "backup" in line.lower()]
        print("recalled:", recalled[0].strip() if recalled else "nothing")
        return ModelResponse(parts=[ToolCallPart("memory_search", {"query": QUESTION, "maxResults": 1})])
    best = found["results"][0]  # type: ignore[index,call-overload]
    return ModelResponse(parts=[TextPart(f"{best['snippet'].splitlines()[0]}  [{best['citation']}]")])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace = sample_workspace(Path(folder) / "notes")
        with memoriter.open(workspace, home=Path(folder) / "home") as memory:
            memory.sync()
            capability = MemoriterMemory[None](memory, session="agent:main:main")
            agent = Agent(FunctionModel(model), capabilities=[capability])
            result = asyncio.run(agent.run(QUESTION))
            print("answer:", result.output)


if __name__ == "__main__":
    main()
