"""Namespaces of a Pinecone index. Vectors and row numbers leave this machine; texts do not.

Pinecone applies writes after it has acknowledged them. Each write has a number in the index's log, and each answer says
up to which number it is complete. Until that covers the last write, `ExternalIndex` compares the newer rows in memory.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from memoriter.errors import StoreUnavailable
from memoriter.extensions.external_tables import ExternalIndex
from memoriter.extensions.external_tables.tables import TableStore, VectorTable
from memoriter.extensions.pinecone.settings import PineconeSettings
from memoriter.store.connection import make_private_folder
from memoriter.store.vectors import EngineContext, VectorEngine

if TYPE_CHECKING:
    from memoriter.store.vectors import Rows, Vector
    from memoriter.store.vectors.nearest import VectorIndex

API_VERSION = "2026-07"
#: Bytes of one request. Pinecone accepts 2 MB.
MAX_REQUEST_BYTES = 1_500_000
#: Vectors and ids in one request.
MAX_VECTORS, MAX_IDS = 500, 1000
#: Bytes of one answer: 10,000 matches take about 1 MB.
MAX_ANSWER_BYTES = 16 * 1024 * 1024
WRITE_TIMEOUT_S = 30.0


class PineconeStore(TableStore):
    """The namespaces of one memory in a Pinecone index."""

    label = "Pinecone"
    key = "pinecone"
    keeps_deleted = False
    max_limit = 10_000

    def __init__(
        self, folder: Path, settings: PineconeSettings, agent: str, missing: str | None = None
    ) -> None:
        self._missing = missing
        self._folder = folder
        self._settings = settings
        self._agent = agent
        self._client = PineconeClient(settings)
        self._lock = threading.Lock()

    def missing(self) -> str | None:
        """Return what has to be installed or set."""
        if self._missing or _key(self._settings):
            return self._missing
        return "Pinecone has no API key. Set `pinecone.api_key` or PINECONE_API_KEY"

    def create(self, prefix: str, dimensions: int) -> PineconeTable:
        """Choose a new namespace. Pinecone creates it with the first vector."""
        self._client.check_index(dimensions)
        return PineconeTable(f"{self._prefix()}{prefix}-{secrets.token_hex(4)}", self._client)

    def open(self, name: str, state: Mapping[str, Any]) -> PineconeTable:
        """Use a namespace. A query tells whether its content is complete."""
        return PineconeTable(name, self._client, state)

    def drop_others(self, name: str) -> None:
        """Delete all other namespaces of this memory."""
        for other in self._client.count_by_namespace():
            if other != name and other.startswith(self._prefix()):
                self._client.delete_namespace(other)

    def close(self) -> None:
        self._client.close()

    def _prefix(self) -> str:
        """Return the start of the names of this memory's namespaces. Memories on other machines have other names."""
        path = self._folder / "owner"
        with self._lock:
            if not path.exists():
                make_private_folder(self._folder)
                path.write_text(secrets.token_hex(8), encoding="ascii")
            owner = path.read_text(encoding="ascii")
        return f"{self._agent}.{owner}."


class PineconeTable(VectorTable):
    """One namespace. The ids are row numbers."""

    def __init__(self, name: str, client: PineconeClient, state: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self._client = client
        #: The last write in the log of the index, and the last one that answers are known to cover.
        self._written = int(state["written"]) if state else 0
        self._covered = 0

    def state(self) -> dict[str, Any]:
        """Return the number of the last write."""
        return {"written": self._written}

    def add(self, ids: Rows, matrix: Vector) -> None:
        step = max(1, min(MAX_VECTORS, MAX_REQUEST_BYTES // (14 * matrix.shape[1] + 40)))
        for start in range(0, len(ids), step):
            part = slice(start, start + step)
            rows = zip(ids[part].tolist(), matrix[part].tolist(), strict=True)
            vectors = [{"id": str(row), "values": vector} for row, vector in rows]
            self._sent(self._client.write("/vectors/upsert", {"vectors": vectors, "namespace": self.name}))

    def delete(self, ids: Rows) -> None:
        names = [str(row) for row in ids.tolist()]
        for start in range(0, len(names), MAX_IDS):
            body = {"ids": names[start : start + MAX_IDS], "namespace": self.name}
            self._sent(self._client.write("/vectors/delete", body))

    def nearest(self, query: Vector, limit: int) -> tuple[Rows, Vector]:
        import numpy as np

        body = {"namespace": self.name, "topK": limit, "vector": query.tolist()}
        answer, headers = self._client.call("POST", "/query", body)
        self._covered = max(self._covered, _number(headers, "max-indexed-lsn", "lsn-reconciled"))
        matches = [match for match in answer.get("matches", ()) if str(match.get("id", "")).isdecimal()]
        ids = np.array([int(match["id"]) for match in matches], dtype=np.int64)
        return ids, np.array([match["score"] for match in matches], dtype=np.float32)

    def is_current(self) -> bool:
        """Return whether the last query covered the last write."""
        return self._covered >= self._written > 0

    def _sent(self, headers: Mapping[str, str]) -> None:
        # Without a number, no answer is known to cover this write, and its rows stay compared in memory.
        self._written = _number(headers, "request-lsn", "lsn-committed") or 2**62


class PineconeClient:
    """The HTTP requests to one index."""

    def __init__(self, settings: PineconeSettings) -> None:
        self._settings = settings
        self._key = _key(settings)
        self._host = _url(settings.host) if settings.host else ""
        self._http: Any = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connections. The next request opens new ones."""
        with self._lock:
            connection, self._http = self._http, None
        if connection is not None:
            connection.close()

    def check_index(self, dimensions: int) -> None:
        """Create the index if it does not exist. Raise an error if its vectors have another length."""
        if not self._settings.host:
            self._find_index(dimensions)
        stats, _ = self.call("POST", "/describe_index_stats", {})
        found = stats.get("dimension")
        if isinstance(found, int) and found != dimensions:
            raise StoreUnavailable(
                f"The Pinecone index {self._settings.index!r} stores vectors of {found} dimensions, but the embedder "
                f"makes {dimensions}. Name another index in `pinecone.index`"
            )

    def count_by_namespace(self) -> dict[str, int]:
        """Return the number of vectors in each namespace."""
        stats, _ = self.call("POST", "/describe_index_stats", {})
        return {name: int(each.get("vectorCount", 0)) for name, each in stats.get("namespaces", {}).items()}

    def delete_namespace(self, name: str) -> None:
        """Delete a namespace and its vectors."""
        self.call("DELETE", f"/namespaces/{quote(name, safe='')}", allow=(404,))

    def write(self, path: str, body: dict[str, Any]) -> Mapping[str, str]:
        """Send a write and return the headers of the answer."""
        return self.call("POST", path, body, timeout_s=WRITE_TIMEOUT_S)[1]

    def call(
        self, method: str, path: str, body: dict[str, Any] | None = None, **options: Any
    ) -> tuple[dict[str, Any], Mapping[str, str]]:
        """Send a request to the index, with the options of `_request`."""
        if not self._host:
            self._find_index(None)
        return self._request(method, self._host + path, body, **options)

    def _find_index(self, dimensions: int | None) -> None:
        """Ask the control plane for the address of the index. With dimensions, create a missing index."""
        settings = self._settings
        url = f"{_url(settings.api_url)}/indexes"
        found, _ = self._request("GET", f"{url}/{quote(settings.index, safe='')}", allow=(404,))
        if not found.get("host") and dimensions:
            field = {"type": "dense_vector", "dimension": dimensions, "metric": "cosine"}
            place = {"deployment_type": "managed", "cloud": settings.cloud, "region": settings.region}
            body = {"name": settings.index, "schema": {"fields": {"_values": field}}, "deployment": place}
            found, _ = self._request("POST", url, body, timeout_s=WRITE_TIMEOUT_S)
        if not found.get("host"):
            raise StoreUnavailable(
                f"Pinecone has no index {settings.index!r}. Run `memoriter index` to create it"
            )
        if found.get("status", {}).get("ready") is False:
            raise StoreUnavailable(f"The Pinecone index {settings.index!r} is not ready yet", 10.0)
        self._host = _url(str(found["host"]), near=settings.api_url)

    def _request(
        self,
        method: str,
        url: str,
        body: dict[str, Any] | None = None,
        *,
        allow: tuple[int, ...] = (),
        timeout_s: float | None = None,
    ) -> tuple[dict[str, Any], Mapping[str, str]]:
        import httpx2

        options: dict[str, Any] = {} if body is None else {"json": body}
        try:
            request = self._connection(httpx2).stream(
                method, url, timeout=timeout_s or self._settings.timeout_s, **options
            )
            with request as answer:
                content = _read(answer)
                status, headers = answer.status_code, dict(answer.headers)
        except httpx2.HTTPError as error:
            raise StoreUnavailable(f"Pinecone cannot be reached: {type(error).__name__}") from error
        if status in allow:
            return {}, headers
        if not 200 <= status < 300:
            raise _error(status, content.replace(self._key.encode(), b"***"), headers)
        return _json(content), headers

    def _connection(self, httpx2: Any) -> Any:
        with self._lock:
            if self._http is None:
                # No redirects, because the key belongs to its host. No compression, because a few kilobytes can
                # expand to gigabytes.
                self._http = httpx2.Client(
                    follow_redirects=False,
                    headers={
                        "Api-Key": self._key,
                        "X-Pinecone-Api-Version": API_VERSION,
                        "Accept-Encoding": "identity",
                    },
                )
            return self._http


def _read(answer: Any) -> bytes:
    """Return the body, up to a size and within a time, even if the server sends single bytes."""
    content, ends = b"", time.monotonic() + WRITE_TIMEOUT_S
    for part in answer.iter_raw():
        content += part
        if time.monotonic() > ends:
            raise StoreUnavailable(f"An answer of Pinecone took longer than {WRITE_TIMEOUT_S:g} s")
        if len(content) > MAX_ANSWER_BYTES:
            raise StoreUnavailable(f"An answer of Pinecone is larger than {MAX_ANSWER_BYTES:,} bytes")
    return content


def _json(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content or b"{}")
    except ValueError as error:
        raise StoreUnavailable("An answer of Pinecone is not JSON") from error
    if not isinstance(found, dict):
        raise StoreUnavailable("An answer of Pinecone is not a JSON object")
    return found


def _error(status: int, content: bytes, headers: Mapping[str, str]) -> StoreUnavailable:
    if status in (401, 403):
        # Without Pinecone's own message, which may quote the key.
        return StoreUnavailable(f"Pinecone rejected the key (status {status}). Check PINECONE_API_KEY", 300.0)
    wait = headers.get("retry-after", "")
    wait_s = min(600.0, float(wait)) if wait.replace(".", "", 1).isdecimal() else None
    if status == 429:
        asks = f"; it asks to wait {wait_s:g} s" if wait_s is not None else ""
        return StoreUnavailable(f"Pinecone reports a rate limit{asks}", wait_s)
    text = " ".join(content[:200].decode("utf-8", "replace").split())
    return StoreUnavailable(f"Pinecone failed with status {status}{': ' + text if text else ''}", wait_s)


def _number(headers: Mapping[str, str], *names: str) -> int:
    """Return the first of these headers that is a number, else 0."""
    found = (headers.get(f"x-pinecone-{name}", "") for name in names)
    return next((int(text) for text in found if text.isdecimal()), 0)


def _url(host: str, near: str = "") -> str:
    """Return the address of a host. Pinecone names hosts without a scheme; a server on this machine may use HTTP."""
    if "://" in host:
        return host.rstrip("/")
    scheme = urlsplit(near).scheme if near else "https"
    return f"{scheme or 'https'}://{host.rstrip('/')}"


def _key(settings: PineconeSettings) -> str:
    return settings.api_key.get_secret_value() if settings.api_key else ""


def _open(context: EngineContext) -> VectorIndex:
    settings = context.settings.section(PineconeSettings)
    store = PineconeStore(context.folder, settings, context.settings.agent, context.missing)
    return ExternalIndex(context, store)


engine = VectorEngine(open=_open, label=PineconeStore.label, folder="pinecone", is_remote=True)
