"""OpenAI's API on the loopback, with a model that says what a test wrote for it.

Both of its forms are spoken, chat completions and Responses, as streams of events or at once: as much as a client needs
for a conversation with tools. Everything that is asked is kept, so that tests see what really reached the model.
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
MODEL = "scripted"

_ids = itertools.count(1)


@dataclass(frozen=True)
class Say:
    """Words of the model."""

    words: str


@dataclass(frozen=True)
class Call:
    """A call of a tool; in Responses a tool may stand in a namespace."""

    tool: str
    arguments: Mapping[str, object]
    namespace: str | None = None
    id: str = field(default_factory=lambda: f"call_{next(_ids):06}")


Script = Callable[[Body], Sequence[Say | Call]]


@dataclass
class OpenAiApi:
    """The server as tests see it."""

    url: str = ""  #: ends with /v1
    model: Script = lambda body: [Say("Done.")]
    asked: list[Body] = field(default_factory=list)  #: bodies of requests for an answer, oldest first
    elsewhere: list[str] = field(default_factory=list)  #: other requests, as "GET /path"


@contextmanager
def serving() -> Iterator[OpenAiApi]:
    """A server on a free port of the loopback, while the block runs."""
    api = OpenAiApi()

    class Handler(_Handler):
        state = api

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        api.url = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: OpenAiApi

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        forms = {"/v1/chat/completions": _chat, "/v1/responses": _responses}
        form = forms.get(self.path.partition("?")[0])
        if form is None:
            self._nothing()
            return
        body = json.loads(data)
        self.state.asked.append(body)
        events, whole = form(list(self.state.model(body)))
        if body.get("stream"):
            lines = [f"event: {one['type']}\n" if "type" in one else "" for one in events]
            stream = "".join(
                f"{line}data: {json.dumps(one)}\n\n" for line, one in zip(lines, events, strict=True)
            )
            self._send(200, "text/event-stream", (stream + "data: [DONE]\n\n").encode())
        else:
            self._send(200, "application/json", json.dumps(whole).encode())

    def do_GET(self) -> None:
        if self.path.partition("?")[0] == "/v1/models":
            listed = {"object": "list", "data": [{"id": MODEL, "object": "model"}], "models": []}
            self._send(200, "application/json", json.dumps(listed).encode())
        else:
            self._nothing()

    def _nothing(self) -> None:
        self.state.elsewhere.append(f"{self.command} {self.path}")
        self._send(404, "application/json", b'{"error": {"message": "nothing here"}}')

    do_HEAD = do_PUT = do_CONNECT = _nothing

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        """Nobody reads it."""


def _chat(said: list[Say | Call]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    words = "".join(one.words for one in said if isinstance(one, Say))
    calls = [
        {
            "index": index,
            "id": one.id,
            "type": "function",
            "function": {"name": one.tool, "arguments": json.dumps(one.arguments)},
        }
        for index, one in enumerate(one for one in said if isinstance(one, Call))
    ]
    message: dict[str, Any] = {"role": "assistant", "content": words or None}
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


def _responses(said: list[Say | Call]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    items = [_item(one) for one in said]
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


def _item(one: Say | Call) -> dict[str, Any]:
    if isinstance(one, Say):
        content = [{"type": "output_text", "text": one.words, "annotations": []}]
        return {"type": "message", "id": f"msg_{next(_ids):06}", "role": "assistant", "content": content}
    called = {"type": "function_call", "id": f"fc_{next(_ids):06}", "call_id": one.id, "name": one.tool}
    named = {"namespace": one.namespace} if one.namespace else {}
    return {**called, **named, "arguments": json.dumps(one.arguments), "status": "completed"}
