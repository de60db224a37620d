"""OpenAI Agents SDK: a conversation that continues the next day and can be searched. No key, no network.

The model follows a script. Without ``model=`` the SDK uses OpenAI.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

import memoriter
from memoriter import Memory
from memoriter.extensions.openai_agents import MemoriterSession


class Scripted(Model):
    """Follows a script, and says how many items of the conversation it got."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)

    async def get_response(self, *_: Any, **request: Any) -> ModelResponse:
        text = f"{self.lines.pop(0)} (messages in the request: {len(request['input'])})"
        content = ResponseOutputText(type="output_text", text=text, annotations=[])
        message = ResponseOutputMessage(
            id="m", type="message", role="assistant", status="completed", content=[content]
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


async def day(memory: Memory, text: str, reply: str) -> None:
    session = MemoriterSession("mira", memory)
    result = await Runner.run(Agent(name="assistant", model=Scripted(reply)), text, session=session)
    print("me:   ", text)
    print("agent:", result.final_output)


def main() -> None:
    set_tracing_disabled(True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with memoriter.open(folder, home=home) as memory:
            asyncio.run(day(memory, "The ferry to Barreiro leaves at nine.", "I will remember the ferry."))
        with memoriter.open(folder, home=home) as memory:  # the next day, in a new process
            asyncio.run(day(memory, "When does it leave?", "At nine."))
            hit = memory.search("boat to Barreiro", source="sessions").hits[0]
            print("found:", hit.citation)


if __name__ == "__main__":
    main()
