"""A local server for Anthropic's Messages API and OpenAI's Responses API with a scripted model."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def uses(tool_id: str, **command: Any) -> list[dict[str, Any]]:
    """Return a turn in which the model calls the memory tool."""
    return [{"type": "tool_use", "id": tool_id, "name": "memory", "input": command}]


def says(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


def response_of(content: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the texts of a turn as OpenAI's Responses API does."""
    parts = [{"type": "output_text", "text": block["text"], "annotations": []} for block in content]
    said = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": parts}
    return {"id": "r", "object": "response", "created_at": 0, "model": "m", "output": [said], "usage": None}


def streamed(message: dict[str, Any]) -> bytes:
    """Return a message of texts as the events of Anthropic's stream."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    ]
    for index, block in enumerate(message["content"]):
        events += [
            {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}},
            {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": "text_delta", "text": block["text"]},
            },
            {"type": "content_block_stop", "index": index},
        ]
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events += [
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


class Script:
    def __init__(self) -> None:
        self.turns: list[list[dict[str, Any]]] = []
        self.requests: list[dict[str, Any]] = []
        self.url = ""

    def results(self) -> list[tuple[str, bool]]:
        """Return the tool results in order, and whether each was an error."""
        found = [
            block
            for requests in self.requests
            if isinstance(requests["messages"][-1]["content"], list)
            for block in requests["messages"][-1]["content"]
            if block["type"] == "tool_result"
        ]
        return [(_text(block["content"]), bool(block.get("is_error"))) for block in found]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


@contextmanager
def running() -> Iterator[Script]:
    script = Script()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            script.requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            content = script.turns.pop(0)
            stop = "tool_use" if content[0]["type"] == "tool_use" else "end_turn"
            message = {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": content,
                "stop_reason": stop,
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
            if self.path.endswith("/responses"):
                message = response_of(content)
            is_stream = bool(script.requests[-1].get("stream"))
            body = streamed(message) if is_stream else json.dumps(message).encode()
            self.send_response(200)
            self.send_header("content-type", "text/event-stream" if is_stream else "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    script.url = f"http://127.0.0.1:{http.server_address[1]}"
    try:
        yield script
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
