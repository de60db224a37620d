"""A local server for Telegram's Bot API: messages of several people in, answers of the bot out.

It implements long polling and what a bot calls around a turn. Every other method succeeds without an effect.
"""

from __future__ import annotations

import itertools
import json
import queue
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from local_server import Handler, serving_with

TOKEN = "123456:local-test-token"
BOT = {"id": 123456, "is_bot": True, "first_name": "Claw", "username": "local_claw_bot"}
#: Seconds that a request for updates waits for the next message.
POLL_S = 1.0

_ids = itertools.count(1)


@dataclass
class TelegramApi:
    """The state of the server, for tests."""

    url: str = ""
    updates: queue.Queue[dict[str, Any]] = field(default_factory=queue.Queue)
    #: Methods and arguments that the bot has called, oldest first, without its requests for updates.
    calls: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def receive(self, text: str, sender: Mapping[str, Any], chat: Mapping[str, Any]) -> None:
        """Let a person send a message to a chat."""
        message = {
            "message_id": next(_ids),
            "date": 1_795_000_000,
            "from": sender,
            "chat": chat,
            "text": text,
        }
        self.updates.put({"update_id": next(_ids), "message": message})


@contextmanager
def serving() -> Iterator[TelegramApi]:
    """Run a server on a free local port."""
    api = TelegramApi()
    with serving_with(_Handler, api) as address:
        api.url = address
        yield api


class _Handler(Handler):
    state: TelegramApi

    def do_POST(self) -> None:
        data = self.body()
        is_json = "json" in self.headers.get("content-type", "")
        arguments = json.loads(data or b"{}") if is_json else {}
        prefix, _, method = self.path.partition("?")[0].rpartition("/")
        if prefix != f"/bot{TOKEN}":
            self._send(404, {"ok": False, "error_code": 404, "description": "Not Found"})
            return
        self._send(200, {"ok": True, "result": self._result(method, arguments)})

    do_GET = do_POST

    def _result(self, method: str, arguments: Mapping[str, Any]) -> object:
        if method == "getUpdates":
            try:
                return [self.state.updates.get(timeout=POLL_S)]
            except queue.Empty:
                return []
        self.state.calls.append((method, arguments))
        if method == "getMe":
            return BOT
        if method == "getWebhookInfo":
            return {"url": "", "has_custom_certificate": False, "pending_update_count": 0}
        if method.startswith(("send", "edit")) and method != "sendChatAction":
            chat = {"id": arguments.get("chat_id"), "type": "private"}
            return {"message_id": next(_ids), "date": 1_795_000_000, "from": BOT, "chat": chat, "text": ""}
        return True

    def _send(self, status: int, body: object) -> None:
        self.send(status, "application/json", json.dumps(body).encode())
