"""Responses of the gateway itself: errors in one shape, the security headers of every response, JSON."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
HeaderPairs = Iterable[tuple[bytes, bytes]]

JSON = b"application/json"

SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
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
"""Headers of every response. The page loads nothing from other sites, and no other site can embed it."""

ERROR_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "error": {"type": "string", "description": "What happened and what to do, in English."},
        "code": {"type": "string", "description": "A stable name of the error, for programs."},
        "details": {"type": "object", "description": "Values that the message mentions."},
    },
    "required": ["error", "code"],
    "additionalProperties": False,
}


class Refused(Exception):
    """A request that the gateway does not process any further."""

    def __init__(
        self, status: int, code: str, message: str, headers: HeaderPairs = (), **details: object
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = tuple(headers)
        self.details = details

    @property
    def body(self) -> dict[str, object]:
        """Return the JSON body of the response."""
        return error_body(self.code, self.message, self.details)


def error_body(code: str, message: str, details: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return the JSON body of an error."""
    return {"error": message, "code": code, **({"details": dict(details)} if details else {})}


def internal_error() -> Refused:
    """Return the response to a request that failed because of a bug."""
    return Refused(500, "internal_error", "The gateway failed. Its log has the details.")


def not_found() -> Refused:
    """Return the response to a request for a path that does not exist."""
    return Refused(404, "not_found", "Not found.")


def encode_json(data: object) -> bytes:
    """Encode data as JSON. Lone surrogates, which UTF-8 cannot represent, become question marks."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
        "utf-8", "replace"
    )


async def send_response(
    send: Send, status: int, body: bytes, headers: HeaderPairs = (), *, media_type: bytes = JSON
) -> None:
    """Send a complete response."""
    size = str(len(body)).encode()
    start = [(b"content-type", media_type), (b"content-length", size), *headers]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})


async def send_error(send: Send, refused: Refused) -> None:
    """Send an error as a response."""
    await send_response(send, refused.status, encode_json(refused.body), refused.headers)
