"""A local server for OpenAI's API with a scripted model.

It implements chat completions and Responses, with and without streaming, as far as a client needs them for a
conversation with tools. It records all requests, so that tests see what reached the model.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from local_server import Handler, serving_with

Body = Mapping[str, Any]
MODEL = "scripted"

_ids = itertools.count(1)


@dataclass(frozen=True)
class Say:
    """A text of the model."""

    text: str


@dataclass(frozen=True)
class Call:
    """A tool call. In Responses a tool may have a namespace."""

    tool: str
    arguments: Mapping[str, object]
    namespace: str | None = None
    id: str = field(default_factory=lambda: f"call_{next(_ids):06}")


Script = Callable[[Body], Sequence[Say | Call]]


@dataclass
class OpenAiApi:
    """The state of the server, for tests."""

    #: Ends with /v1.
    url: str = ""
    model: Script = lambda body: [Say("Done.")]
    #: Bodies of requests to the model, oldest first.
    requests: list[Body] = field(default_factory=list)
    #: Other requests, as "GET /path".
    other_requests: list[str] = field(default_factory=list)


@contextmanager
def serving() -> Iterator[OpenAiApi]:
    """Run a server on a free local port."""
    api = OpenAiApi()
    with serving_with(_Handler, api) as address:
        api.url = f"{address}/v1"
        yield api


class _Handler(Handler):
    state: OpenAiApi

    def do_POST(self) -> None:
        data = self.body()
        forms = {"/v1/chat/completions": _chat, "/v1/responses": _responses}
        form = forms.get(self.path.partition("?")[0])
        if form is None:
            self._reject()
            return
        body = json.loads(data)
        self.state.requests.append(body)
        events, whole = form(list(self.state.model(body)))
        if body.get("stream"):
            lines = [f"event: {event['type']}\n" if "type" in event else "" for event in events]
            stream = "".join(
                f"{line}data: {json.dumps(event)}\n\n" for line, event in zip(lines, events, strict=True)
            )
            self.send(200, "text/event-stream", (stream + "data: [DONE]\n\n").encode())
        else:
            self.send(200, "application/json", json.dumps(whole).encode())

    def do_GET(self) -> None:
        if self.path.partition("?")[0] == "/v1/models":
            listed = {"object": "list", "data": [{"id": MODEL, "object": "model"}], "models": []}
            self.send(200, "application/json", json.dumps(listed).encode())
        else:
            self._reject()

    def _reject(self) -> None:
        self.state.other_requests.append(f"{self.command} {self.path}")
        self.send(404, "application/json", b'{"error": {"message": "not found"}}')

    do_HEAD = do_PUT = do_CONNECT = _reject


def _chat(parts: list[Say | Call]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    text = "".join(part.text for part in parts if isinstance(part, Say))
    calls = [
        {
            "index": index,
            "id": call.id,
            "type": "function",
            "function": {"name": call.tool, "arguments": json.dumps(call.arguments)},
        }
        for index, call in enumerate(part for part in parts if isinstance(part, Call))
    ]
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    common = {"id": f"chatcmpl-{next(_ids):06}", "created": 1, "model": MODEL}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    reason = "tool_calls" if calls else "stop"
    chunks = [
        {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {"choices": [], "usage": usage},
    ]
    events = [{**common, "object": "chat.completion.chunk", **chunk} for chunk in chunks]
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return events, {**common, "object": "chat.completion", "choices": [choice], "usage": usage}


def _responses(parts: list[Say | Call]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    items = [_item(part) for part in parts]
    usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
    whole: dict[str, Any] = {"id": f"resp_{next(_ids):06}", "object": "response", "model": MODEL}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}
    ]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    whole |= {"status": "completed", "output": items, "usage": usage}
    events.append({"type": "response.completed", "response": whole})
    return events, whole


def _item(part: Say | Call) -> dict[str, Any]:
    if isinstance(part, Say):
        content = [{"type": "output_text", "text": part.text, "annotations": []}]
        return {"type": "message", "id": f"msg_{next(_ids):06}", "role": "assistant", "content": content}
    called = {"type": "function_call", "id": f"fc_{next(_ids):06}", "call_id": part.id, "name": part.tool}
    named = {"namespace": part.namespace} if part.namespace else {}
    return {**called, **named, "arguments": json.dumps(part.arguments), "status": "completed"}
