"""HTTP that a lying server cannot use against us.

Every vendor's client gets a transport from here: redirects are not followed (a key belongs to its host),
answers are taken uncompressed (a few kilobytes can unpack to gigabytes), as JSON, up to a size and within a time.
What an answer says is not looked at.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from memoriter.errors import EmbedderBusy, EmbeddingError

MOST_BYTES = 64 * 1024 * 1024  #: of one answer; 2,000 vectors of 3,072 dimensions as text take about as much
MOST_FILE_BYTES = 512 * 1024 * 1024  #: of a batch job's results
HEADERS = {"Accept-Encoding": "identity"}


def httpx_client(httpx: Any) -> Any:
    """A client of `httpx`, or of `httpx2`, its fork with the same interface."""
    return httpx.Client(**httpx_options(httpx))


def httpx_options(httpx: Any) -> dict[str, Any]:
    """What a client of `httpx` or `httpx2` is made with."""

    class Bounded(httpx.SyncByteStream):  # type: ignore[misc, unused-ignore]
        def __init__(self, stream: Any, limit: int, within_s: float | None) -> None:
            self._stream = stream
            self._limits = (limit, within_s)

        def __iter__(self) -> Iterator[bytes]:
            yield from bounded(self._stream, *self._limits)

        def close(self) -> None:
            self._stream.close()

    def guard(response: Any) -> None:
        is_file = _is_file(str(response.request.url))
        refuse(response.status_code, response.headers, is_file=is_file)
        within = response.request.extensions.get("timeout", {}).get("read")
        response.stream = Bounded(response.stream, MOST_FILE_BYTES if is_file else MOST_BYTES, within)

    return {"follow_redirects": False, "event_hooks": {"response": [guard]}, "headers": dict(HEADERS)}


def requests_session() -> Any:
    """A session of `requests` with the same manners."""
    import requests

    class Session(requests.Session):
        def request(self, method: Any, url: Any, *args: Any, **options: Any) -> Any:
            given = options.get("timeout")
            options |= {"stream": True, "allow_redirects": False}
            options["headers"] = {**(options.get("headers") or {}), **HEADERS}
            response = super().request(method, url, *args, **options)
            try:
                body = read(response, given if isinstance(given, int | float) else None)
            except BaseException:
                response.close()
                raise
            # What `requests` itself does when it reads an answer, but for the limits.
            response._content, response._content_consumed = body, True
            return response

    def read(response: Any, within_s: float | None) -> bytes:
        is_file = _is_file(response.url)
        refuse(response.status_code, response.headers, is_file=is_file)
        limit = MOST_FILE_BYTES if is_file else MOST_BYTES
        return b"".join(bounded(response.iter_content(65536), limit, within_s))

    return Session()


def refuse(status: int, headers: Mapping[str, str], *, is_file: bool = False) -> None:
    """Raise when the head of an answer already shows that its body is not for us."""
    if 300 <= status < 400:
        raise EmbeddingError(
            f"the provider answered with a redirect (status {status}), which is not followed"
        )
    if headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        raise EmbeddingError("the provider answered with compressed data that was not asked for")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if 200 <= status < 300 and not is_file and kind and not kind.endswith("json"):
        raise EmbeddingError(f"the provider answered with {kind[:60]}, not with JSON")
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > (MOST_FILE_BYTES if is_file else MOST_BYTES):
        raise EmbeddingError(f"the provider's answer of {int(length):,} bytes is too large")


def bounded(parts: Any, limit: int, within_s: float | None) -> Iterator[bytes]:
    """The parts of a body, up to a size and within a time, however slowly they drip."""
    ends = time.monotonic() + within_s if within_s else None
    total = 0
    for part in parts:
        total += len(part)
        if total > limit:
            raise EmbeddingError(f"the provider's answer is larger than {limit:,} bytes")
        if ends is not None and time.monotonic() > ends:
            raise EmbedderBusy(f"the provider's answer took longer than {within_s:g} s")
        yield part


def is_here(url: str | None) -> bool:
    """Whether an address is on this very machine."""
    host = (urlsplit(url).hostname or "") if url else ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_file(url: str) -> bool:
    path = url.partition("?")[0]
    return path.endswith(("/content", ":download"))
