"""The log of the gateway: one JSON object a line, for machines to read.

A line says who asked for what, how it ended and how long it took, by ids and names of our own: never a query, a
text, a token or a link. Of a failure it says the kind and the places in the code, not the sentence, which may quote.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from memoriter import logs

if TYPE_CHECKING:
    from memoriter.server.http.guard import Visit

log = logs.get("http")

#: Packages that log beside us, and from which level on: below it, that of the protocol quotes what it was sent.
OTHERS = {
    "uvicorn": logging.WARNING,
    "mcp": logging.ERROR,
    "sse_starlette": logging.ERROR,
    "asyncio": logging.ERROR,
}


class Lines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {
            "at": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage().partition("\n")[0],  # what others say further down may quote
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            line["trace"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return json.dumps(line, ensure_ascii=False, default=str)


def setup(level: str) -> None:
    """Write lines to standard error, ours and those of the packages that carry us."""
    logs.setup(level, formatter=Lines())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    for name, least in OTHERS.items():
        other = logging.getLogger(name)
        other.handlers[:] = [handler]
        other.setLevel(least)
        other.propagate = False


def note(visit: Visit) -> None:
    """One line for one request."""
    if not log.isEnabledFor(logging.INFO):
        return
    fields = {
        "request": visit.id,
        "method": visit.method if visit.method.isascii() and len(visit.method) < 16 else "?",
        "route": visit.route,
        "status": visit.status,
        "ms": round(visit.seconds * 1000, 2),
        "caller": visit.caller.id if visit.caller else None,
        "agent": visit.agent,
        "operation": visit.operation,
        "outcome": visit.outcome,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    log.info("request", extra={"fields": given})
