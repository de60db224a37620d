"""A local server with OpenAI's chat completions that rejects requests which violate the protocol.

Its model calls `memory_recall` for every question and answers with the first result.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Message = dict[str, Any]


class Model:
    """The requests that the server got, and its answers."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.mistakes: list[str] = []

    def reply(self, body: dict[str, Any]) -> Message:
        self.asked.append(body)
        self.mistakes += mistakes_in(body)
        last = body["messages"][-1]
        if last["role"] == "tool":
            memories = json.loads(last["content"])["memories"]
            known = memories[0]["text"] if memories else "nothing"
            return {"role": "assistant", "content": f"From memory: {known}", "refusal": None}
        question = last["content"].rpartition("</relevant-memories>")[2].strip()
        if question.endswith("?"):
            function = {"name": "memory_recall", "arguments": json.dumps({"query": question})}
            call = {"id": f"call_{len(self.asked)}", "type": "function", "function": function}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        return {"role": "assistant", "content": "Noted."}


def mistakes_in(body: dict[str, Any]) -> Iterator[str]:
    """Raise for what a strict server would refuse."""
    waiting: list[str] = []
    for message in body["messages"]:
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"a tool answers {message['tool_call_id']}, which was not called"
            else:
                waiting.remove(message["tool_call_id"])
        elif waiting:
            yield f"{role} speaks while {waiting} wait for their tools"
        if role not in ("system", "user", "assistant", "tool"):
            yield f"the role {role}"
        waiting += [call["id"] for call in message.get("tool_calls", ())]
    if [message["role"] for message in body["messages"]].count("system") != 1:
        yield "there is not exactly one system message"
    if not body.get("model"):
        yield "no model is named"
    for tool in body.get("tools", ()):
        if tool["type"] != "function" or tool["function"]["parameters"]["type"] != "object":
            yield f"{tool} is not a tool"


@contextmanager
def serving() -> Iterator[Model]:
    model = Model()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            model.keys.append(self.headers.get("authorization"))
            if self.path != "/v1/chat/completions":
                model.mistakes.append(f"there is nothing at {self.path}")
            choice = {"index": 0, "finish_reason": "stop", "message": model.reply(body)}
            data = json.dumps({"id": "c1", "object": "chat.completion", "choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    model.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
    try:
        yield model
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
