"""The gateway's log: one JSON object per line.

A line names the caller, the route, the outcome and the duration. It never contains a query, a text, a token or a link.
For a failure it contains the type of the error and the code locations, but not the message, which may quote user text.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.invisible import escape_json

if TYPE_CHECKING:
    from memoriter.server.http.guard import RequestRecord

log = logs.get("http")

#: Other packages that log, with their lowest level. Below it, their messages may quote requests.
OTHER_LOGGERS = {
    "uvicorn": logging.WARNING,
    "mcp": logging.ERROR,
    "sse_starlette": logging.ERROR,
    "asyncio": logging.ERROR,
}


class JsonFormatter(logging.Formatter):
    """Formats a log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {
            "at": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            # Only the first line: other packages may quote requests in the lines below.
            "message": record.getMessage().partition("\n")[0],
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            line["trace"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return escape_json(json.dumps(line, ensure_ascii=False, default=str))


def setup(level: str) -> None:
    """Write JSON lines to standard error, for memoriter and for the packages that serve it."""
    logs.setup(level, formatter=JsonFormatter())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name, lowest in OTHER_LOGGERS.items():
        other = logging.getLogger(name)
        other.handlers[:] = [handler]
        other.setLevel(lowest)
        other.propagate = False


def log_request(record: RequestRecord) -> None:
    """Log a request."""
    if not log.isEnabledFor(logging.INFO):
        return
    fields = {
        "request": record.id,
        "method": record.method if record.method.isascii() and len(record.method) < 16 else "?",
        "route": record.route,
        "status": record.status,
        "ms": round(record.seconds * 1000, 2),
        "caller": record.caller.id if record.caller else None,
        "agent": record.agent,
        "operation": record.operation,
        "outcome": record.outcome,
    }
    present = {name: value for name, value in fields.items() if value is not None}
    log.info("request", extra={"fields": present})
