"""Responses of the gateway itself: errors in one shape, the security headers of every response, JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping

from starlette.responses import Response

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
        self,
        status: int,
        code: str,
        message: str,
        headers: Mapping[str, str] | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.headers, self.details = headers, details

    def response(self) -> Response:
        """Return the response, which all errors have in one shape."""
        details = {"details": dict(self.details)} if self.details else {}
        return json_response({"error": self.message, "code": self.code, **details}, self.status, self.headers)


def not_found() -> Refused:
    """Return the response to a request for a path that does not exist."""
    return Refused(404, "not_found", "Not found.")


def encode_json(data: object) -> bytes:
    """Encode data as JSON. Lone surrogates, which UTF-8 cannot represent, become question marks."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def json_response(data: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return data as a JSON response."""
    return Response(encode_json(data), status, headers, media_type="application/json")
