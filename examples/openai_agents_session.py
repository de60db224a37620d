"""OpenAI Agents SDK: a conversation that goes on tomorrow, and is found by a search. No key, no network.

The model here says what a script tells it; leave out ``model=`` and the SDK asks OpenAI's.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from memoriter import Memory
from memoriter.integrations.openai_agents import MemoriterSession


class Scripted(Model):
    """Says what a script tells it, and how many items of the conversation it was shown."""

    def __init__(self, *lines: str) -> None:
        self.lines = list(lines)

    async def get_response(self, *_: Any, **asked: Any) -> ModelResponse:
        text = f"{self.lines.pop(0)} (I was shown {len(asked['input'])} of our items.)"
        content = ResponseOutputText(type="output_text", text=text, annotations=[])
        message = ResponseOutputMessage(
            id="m", type="message", role="assistant", status="completed", content=[content]
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


async def day(memory: Memory, said: str, reply: str) -> None:
    session = MemoriterSession("mira", memory)
    done = await Runner.run(Agent(name="assistant", model=Scripted(reply)), said, session=session)
    print("me:   ", said)
    print("agent:", done.final_output)


def main() -> None:
    set_tracing_disabled(True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with Memory.open(folder, home=home) as memory:
            asyncio.run(day(memory, "The ferry to Barreiro leaves at nine.", "I will remember the ferry."))
        with Memory.open(folder, home=home) as memory:  # the next day, in a new process
            asyncio.run(day(memory, "When does it leave?", "At nine."))
            hit = memory.search("boat to Barreiro", source="sessions").hits[0]
            print("found:", hit.citation)


if __name__ == "__main__":
    main()
