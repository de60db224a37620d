"""HTTP to providers: clients that limit what a server can do to this machine, and the meaning of failures.

The vendors' clients use a transport from here. It follows no redirects, because a key belongs to its host. It accepts
no compressed data, because a few kilobytes can expand to gigabytes. Answers must be JSON, within a size and a time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from memoriter.errors import EmbedderBusy, EmbeddingError, QuotaSpent

#: Bytes of one answer. 2,000 vectors of 3,072 dimensions as text take about as much.
MAX_BYTES = 64 * 1024 * 1024
#: Bytes of a batch job's results.
MAX_FILE_BYTES = 512 * 1024 * 1024
HEADERS = {"Accept-Encoding": "identity"}

#: Parts of messages about a spent quota, where waiting a minute does not help. "Billing" is not one of them: some
#: providers mention it with every rate limit.
_QUOTA_SPENT = ("insufficient_quota", "exceeded your current quota", "credit balance", "out of credits")


def httpx_client(httpx: Any) -> Any:
    """Return a client of `httpx`, or of `httpx2`, a fork with the same interface."""
    return httpx.Client(**httpx_options(httpx))


def httpx_options(httpx: Any) -> dict[str, Any]:
    """Return the arguments of a client of `httpx` or `httpx2`."""

    class Bounded(httpx.SyncByteStream):  # type: ignore[misc, unused-ignore]
        def __init__(self, stream: Any, limit: int, within_s: float | None) -> None:
            self._stream = stream
            self._limits = (limit, within_s)

        def __iter__(self) -> Iterator[bytes]:
            yield from limit_body(self._stream, *self._limits)

        def close(self) -> None:
            self._stream.close()

    def check(response: Any) -> None:
        is_file = is_file_address(str(response.request.url))
        check_head(response.status_code, response.headers, is_file=is_file)
        within = response.request.extensions.get("timeout", {}).get("read")
        response.stream = Bounded(response.stream, MAX_FILE_BYTES if is_file else MAX_BYTES, within)

    return {"follow_redirects": False, "event_hooks": {"response": [check]}, "headers": dict(HEADERS)}


def check_head(status: int, headers: Mapping[str, str], *, is_file: bool = False) -> None:
    """Raise EmbeddingError if the head of an answer already shows that the body is unusable."""
    if 300 <= status < 400:
        raise EmbeddingError(
            f"the provider answered with a redirect (status {status}), which is not followed"
        )
    if headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        raise EmbeddingError("the provider answered with compressed data, which was not requested")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if 200 <= status < 300 and not is_file and kind and not kind.endswith("json"):
        raise EmbeddingError(f"the provider answered with {kind[:60]} instead of JSON")
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > (MAX_FILE_BYTES if is_file else MAX_BYTES):
        raise EmbeddingError(f"the provider's answer of {int(length):,} bytes is too large")


def limit_body(parts: Any, limit: int, within_s: float | None) -> Iterator[bytes]:
    """Yield the parts of a body, up to a size and within a time, even if the server sends single bytes."""
    ends = time.monotonic() + within_s if within_s else None
    total = 0
    for part in parts:
        total += len(part)
        if total > limit:
            raise EmbeddingError(f"the provider's answer is larger than {limit:,} bytes")
        if ends is not None and time.monotonic() > ends:
            raise EmbedderBusy(f"the provider's answer took longer than {within_s:g} s")
        yield part


def quiet_logger(name: str) -> None:
    """Hide a package's messages below warnings, unless the program has set a level: they quote servers and requests."""
    logger = logging.getLogger(name)
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)


def is_file_address(url: str) -> bool:
    path = url.partition("?")[0]
    return path.endswith(("/content", ":download"))


# ---- failures -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Failure:
    """The facts of a vendor's exception."""

    #: HTTP status. None: there was no answer, or it was unreadable.
    status: int | None = None
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    #: The client could not parse the answer.
    unreadable: bool = False


def to_error(
    provider: str, error: Exception, failure: Failure, *, key: str = "", variable: str = ""
) -> EmbeddingError:
    """Return the error to raise instead of the vendor's exception, which may contain the request and its key."""
    if own := _own_error(error):
        return own
    message = _one_line(failure.message, key)
    if failure.unreadable:
        return EmbeddingError(f"the answer of {provider} cannot be read{_suffix(message)}")
    if failure.status is None:
        return EmbedderBusy(f"{provider} cannot be reached: {message or type(error).__name__}")
    if failure.status in (401, 403):
        # Without the vendor's message: some quote the key.
        check = f"; check {variable}" if variable else ""
        return EmbeddingError(f"{provider} rejected the key (status {failure.status}){check}")
    return _error_of_status(provider, failure.status, message, _retry_after_s(failure.headers))


def _error_of_status(provider: str, status: int, message: str, wait_s: float | None) -> EmbeddingError:
    if status == 402 or (status == 429 and any(part in message.lower() for part in _QUOTA_SPENT)):
        return QuotaSpent(
            f"the quota at {provider} is used up: {message}. Finished vectors are kept; "
            "run `memoriter index` to continue when there is quota again"
        )
    if status == 429:
        wait = f"; it asks to wait {wait_s:g} s" if wait_s is not None else ""
        return EmbedderBusy(f"{provider} reports a rate limit{wait}", wait_s)
    if status in (408, 409, 425) or status >= 500:
        return EmbedderBusy(f"{provider} failed with status {status}{_suffix(message)}", wait_s)
    return EmbeddingError(f"{provider} rejected the request with status {status}{_suffix(message)}")


def _suffix(message: str) -> str:
    return f": {message}" if message else ""


def _own_error(error: BaseException | None) -> EmbeddingError | None:
    """Return the EmbeddingError that a vendor's client has wrapped, if there is one."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, EmbeddingError):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None


def _one_line(message: str, key: str) -> str:
    from memoriter.text.redaction import redact  # loads many patterns, only needed after a failure

    first = " ".join(message.split())[:300]
    if len(key) >= 4:
        first = first.replace(key, "***")
    return redact(first).rstrip(".")


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return how long the provider asks to wait: a number of seconds or milliseconds, or a date."""
    lower = {str(name).lower(): str(value) for name, value in headers.items()}
    try:
        if "retry-after-ms" in lower:
            return max(0.0, float(lower["retry-after-ms"]) / 1000)
        value = lower.get("retry-after")
        if value is None:
            return None
        if value.replace(".", "", 1).isdecimal():
            return float(value)
        from email.utils import parsedate_to_datetime

        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
