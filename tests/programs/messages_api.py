"""Anthropic's Messages API on the loopback, with a model that says what a test wrote for it.

It knows as much of the API as a client needs for a conversation: answers at once or as a stream of events, and the
counting of tokens. Everything that is asked is kept, so that tests see what really reached the model.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = Mapping[str, Any]
Block = dict[str, Any]
Model = Callable[[Body], Sequence[Block]]
"""What the model says to a request, as content blocks."""

_ids = itertools.count(1)


def text(words: str) -> Block:
    """Words of the model."""
    return {"type": "text", "text": words}


def call(tool: str, **arguments: object) -> Block:
    """A call of a tool."""
    return {"type": "tool_use", "id": f"toolu_{next(_ids):06}", "name": tool, "input": arguments}


@dataclass
class MessagesApi:
    """The server as tests see it."""

    url: str = ""
    model: Model = lambda body: [text("Done.")]
    asked: list[Body] = field(default_factory=list)  #: bodies of requests for an answer, oldest first
    elsewhere: list[str] = field(default_factory=list)  #: other requests, as "GET /path"


@contextmanager
def serving() -> Iterator[MessagesApi]:
    """A server on a free port of the loopback, while the block runs."""
    api = MessagesApi()

    class Handler(_Handler):
        state = api

    with _Server(("127.0.0.1", 0), Handler) as server:
        api.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that goes away in the middle is no trouble of ours."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: MessagesApi

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        if path == "/v1/messages":
            body = json.loads(data)
            self.state.asked.append(body)
            blocks = list(self.state.model(body))
            self._streamed(body, blocks) if body.get("stream") else self._json(200, _message(body, blocks))
        elif path == "/v1/messages/count_tokens":
            self._json(200, {"input_tokens": len(data) // 4})
        else:
            self._nothing()

    def _nothing(self) -> None:
        self.state.elsewhere.append(f"{self.command} {self.path}")
        self._json(404, {"type": "error", "error": {"type": "not_found_error", "message": "nothing here"}})

    do_GET = do_HEAD = do_PUT = do_CONNECT = _nothing

    def _json(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _streamed(self, body: Body, blocks: Sequence[Block]) -> None:
        events = list(_events(_message(body, blocks)))
        data = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


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
    """A message as its stream tells it: empty first, then block by block."""
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
