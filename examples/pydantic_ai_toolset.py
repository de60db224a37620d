"""pydantic-ai: an agent with our tools, told what is remembered about the question. No key, no network.

The model here is a function; put the name of a real one, such as "anthropic:…", in its place.
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

from memoriter import Memory
from memoriter.integrations.pydantic_ai import MemoriterMemory
from memoriter.testing import sample_workspace

QUESTION = "How is the database backed up?"


def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Searches first, then answers with the best line it was given."""
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    found = next((part.content for part in last.parts if isinstance(part, ToolReturnPart)), None)
    if found is None:
        said = [part.content for part in last.parts if isinstance(part, UserPromptPart)]
        told = [line for line in str(said[0]).splitlines() if "backup" in line.lower()]
        print("told before it asks:", told[0].strip() if told else "nothing")
        return ModelResponse(parts=[ToolCallPart("memory_search", {"query": QUESTION, "maxResults": 1})])
    best = found["results"][0]  # type: ignore[index,call-overload]
    return ModelResponse(parts=[TextPart(f"{best['snippet'].splitlines()[0]}  [{best['citation']}]")])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace = sample_workspace(Path(folder) / "notes")
        with Memory.open(workspace, home=Path(folder) / "home") as memory:
            remembering = MemoriterMemory[None](memory, session_key="agent:main:main")
            agent = Agent(FunctionModel(model), capabilities=[remembering])
            done = asyncio.run(agent.run(QUESTION))
            print("answer:", done.output)


if __name__ == "__main__":
    main()
