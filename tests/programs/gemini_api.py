"""A local server for the Gemini API with a scripted model.

It implements `generateContent` and `streamGenerateContent`, as far as a client needs them for calls of tools.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from local_server import Handler, serving_with
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
    with serving_with(_Handler, api) as address:
        api.url = address
        yield api


def tools(body: Body) -> list[str]:
    """Return the names of the functions that a request offers."""
    return [one["name"] for tool in body.get("tools", ()) for one in tool.get("functionDeclarations", ())]


def results(body: Body) -> list[Mapping[str, Any]]:
    """Return the tool results of a request: each with a `name` and a `response`."""
    parts = [part for content in body["contents"] for part in content["parts"]]
    return [part["functionResponse"] for part in parts if "functionResponse" in part]


class _Handler(Handler):
    state: GeminiApi

    def do_POST(self) -> None:
        data = self.body()
        method = self.path.partition("?")[0].rpartition(":")[2]
        if method not in ("generateContent", "streamGenerateContent"):
            self.send(404, "application/json", b'{"error": {"code": 404, "message": "not found"}}')
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
            self.send(200, "application/json", answer.encode())
        else:
            self.send(200, "text/event-stream", f"data: {answer}\r\n\r\n".encode())
