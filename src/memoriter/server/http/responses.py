"""Answers that the gateway gives itself: errors in one shape, the headers that every answer carries, JSON."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]

JSON = b"application/json"
BROKEN = "The gateway failed; its log says how."

SAFE: tuple[tuple[bytes, bytes], ...] = (
    (
        b"content-security-policy",
        (
            b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
            b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Headers of every answer: nothing of a page may come from elsewhere, and no other page may hold one of ours."""


class Refused(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, sentence: str, headers: Headers = ()) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = tuple(headers)


def encoded(data: object) -> bytes:
    """Data as JSON; half a character, which no UTF-8 can say, becomes a question mark."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
        "utf-8", "replace"
    )


async def answer(send: Send, status: int, body: bytes, headers: Headers = (), *, kind: bytes = JSON) -> None:
    """Send one whole answer."""
    size = str(len(body)).encode()
    start = [(b"content-type", kind), (b"content-length", size), *headers]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})


async def refuse(send: Send, refused: Refused) -> None:
    """Say no, in one sentence."""
    await answer(send, refused.status, encoded({"error": refused.sentence}), refused.headers)
