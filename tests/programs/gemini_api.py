"""A local server for the Gemini API with a scripted model.

It implements `generateContent` and `streamGenerateContent`, as far as a client needs them for calls of tools.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from openai_api import Call, Say

Body = Mapping[str, Any]
Script = Callable[[Body], Sequence[Say | Call]]


@dataclass
class GeminiApi:
    """The state of the server, for tests."""

    url: str = ""
    model: Script = lambda body: [Say("Noted.")]
    #: Bodies of requests to the model, oldest first.
    requests: list[Body] = field(default_factory=list)


@contextmanager
def serving() -> Iterator[GeminiApi]:
    """Run a server on a free local port."""
    api = GeminiApi()

    class Handler(_Handler):
        state = api

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        api.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()


def tools(body: Body) -> list[str]:
    """Return the names of the functions that a request offers."""
    return [one["name"] for tool in body.get("tools", ()) for one in tool.get("functionDeclarations", ())]


def results(body: Body) -> list[Mapping[str, Any]]:
    """Return the tool results of a request: each with a `name` and a `response`."""
    parts = [part for content in body["contents"] for part in content["parts"]]
    return [part["functionResponse"] for part in parts if "functionResponse" in part]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: GeminiApi

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        method = self.path.partition("?")[0].rpartition(":")[2]
        if method not in ("generateContent", "streamGenerateContent"):
            self._send(404, "application/json", b'{"error": {"code": 404, "message": "not found"}}')
            return
        body = json.loads(data)
        self.state.requests.append(body)
        parts = [
            {"text": part.text}
            if isinstance(part, Say)
            else {"functionCall": {"id": part.id, "name": part.tool, "args": part.arguments}}
            for part in self.state.model(body)
        ]
        answer = json.dumps(
            {
                "candidates": [
                    {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
                ],
                "usageMetadata": {
                    "promptTokenCount": 100,
                    "candidatesTokenCount": 20,
                    "totalTokenCount": 120,
                },
                "modelVersion": "scripted",
            }
        )
        if method == "generateContent":
            self._send(200, "application/json", answer.encode())
        else:
            self._send(200, "text/event-stream", f"data: {answer}\r\n\r\n".encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        """Do not log requests."""
