"""A local server for Anthropic's Messages API with a scripted model.

It implements what a client needs for a conversation: answers with and without streaming, and token counts. It records
all requests, so that tests see what reached the model.
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
Block = dict[str, Any]
Model = Callable[[Body], Sequence[Block]]
"""Return the answer to a request as content blocks."""

_ids = itertools.count(1)


def text(answer: str) -> Block:
    """Return a text block."""
    return {"type": "text", "text": answer}


def call(tool: str, **arguments: object) -> Block:
    """Return a tool call."""
    return {"type": "tool_use", "id": f"toolu_{next(_ids):06}", "name": tool, "input": arguments}


@dataclass
class MessagesApi:
    """The state of the server, for tests."""

    url: str = ""
    model: Model = lambda body: [text("Done.")]
    #: Bodies of requests to the model, oldest first.
    requests: list[Body] = field(default_factory=list)
    #: Other requests, as "GET /path".
    other_requests: list[str] = field(default_factory=list)


@contextmanager
def serving() -> Iterator[MessagesApi]:
    """Run a server on a free local port."""
    api = MessagesApi()
    with serving_with(_Handler, api) as address:
        api.url = address
        yield api


class _Handler(Handler):
    state: MessagesApi

    def do_POST(self) -> None:
        data = self.body()
        path = self.path.partition("?")[0]
        if path == "/v1/messages":
            body = json.loads(data)
            self.state.requests.append(body)
            blocks = list(self.state.model(body))
            self._send_stream(body, blocks) if body.get("stream") else self._send_json(
                200, _message(body, blocks)
            )
        elif path == "/v1/messages/count_tokens":
            self._send_json(200, {"input_tokens": len(data) // 4})
        else:
            self._reject()

    def _reject(self) -> None:
        self.state.other_requests.append(f"{self.command} {self.path}")
        self._send_json(404, {"type": "error", "error": {"type": "not_found_error", "message": "not found"}})

    do_GET = do_HEAD = do_PUT = do_CONNECT = _reject

    def _send_json(self, status: int, value: object) -> None:
        self.send(status, "application/json", json.dumps(value).encode())

    def _send_stream(self, body: Body, blocks: Sequence[Block]) -> None:
        events = list(_events(_message(body, blocks)))
        data = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
        self.send(200, "text/event-stream", data)


def _message(body: Body, blocks: Sequence[Block]) -> dict[str, Any]:
    used = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": f"msg_{next(_ids):06}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": list(blocks),
        "stop_reason": "tool_use" if used else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": len(json.dumps(body)) // 4, "output_tokens": 20},
    }


def _events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the stream events of a message: first empty, then block by block."""
    blocks = message["content"]
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 20}}
    yield {"type": "message_stop"}
