"""A scripted model for the OpenAI Agents SDK that records its requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from agents import Model, ModelResponse, TResponseInputItem, Usage
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputItem,
    ResponseOutputMessage,
    ResponseOutputText,
)


def says(text: str) -> ResponseOutputItem:
    content = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(
        id="m", type="message", role="assistant", status="completed", content=[content]
    )


def calls(name: str, arguments: str, call_id: str) -> ResponseOutputItem:
    return ResponseFunctionToolCall(type="function_call", call_id=call_id, name=name, arguments=arguments)


class ScriptedModel(Model):
    def __init__(self, *turns: Sequence[ResponseOutputItem] | Exception) -> None:
        self.turns = list(turns)
        self.shown: list[list[TResponseInputItem]] = []

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],  # noqa: A002
        *args: Any,
        **kwargs: Any,
    ) -> ModelResponse:
        self.shown.append(list(input) if isinstance(input, list) else [{"role": "user", "content": input}])
        turn = self.turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        return ModelResponse(output=list(turn), usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
