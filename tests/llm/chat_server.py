"""A local server that speaks both protocols, with faults on request."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers, body."""


def openai_body(text: object, tokens: tuple[int, int] = (11, 7)) -> bytes:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return json.dumps(
        {
            "id": "c1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }
    ).encode()


def anthropic_body(text: str, tokens: tuple[int, int] = (11, 7)) -> bytes:
    return json.dumps(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": text}] if text else [],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": tokens[0], "output_tokens": tokens[1]},
        }
    ).encode()


def ok(body: bytes) -> Answer:
    return 200, {"content-type": "application/json"}, body


class Server:
    """Returns the given answers and records the requests."""

    def __init__(self) -> None:
        self.answers: list[Answer | Callable[[], Answer]] = []
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.url = ""

    def take(self) -> Answer:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer() if callable(answer) else answer


@contextmanager
def running() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["content-length"]))
            state.asked.append(json.loads(data))
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
            state.paths.append(self.path)
            status, headers, body = state.take()
            try:
                self.send_response(status)
                for name, value in {"content-length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    state.url = f"http://127.0.0.1:{http.server_address[1]}"
    try:
        yield state
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
