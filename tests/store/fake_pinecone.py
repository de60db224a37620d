"""A local server that speaks Pinecone's protocol: one account with indexes, namespaces and faults on request.

Like Pinecone, it acknowledges a write before queries see it. `lag` is the number of writes that are not applied yet.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import numpy as np

from memoriter.config import Settings, load

KEY = "pcsk_test_0123456789abcdefghijklmnop"


def pinecone_settings(agent: str = "main", **chosen: object) -> Settings:
    """Return settings with these values of `pinecone`."""
    values = {f"pinecone.{name}": value for name, value in ({"api_key": KEY} | chosen).items()}
    return load(environ={}, arguments={"agent": agent, **values})


Write = tuple[str, str, Any]


class FakePinecone:
    """The account, and how the server answers."""

    def __init__(self) -> None:
        self.url = ""
        self.host = ""
        #: Dimensions of each index.
        self.indexes: dict[str, int] = {}
        self.namespaces: dict[str, dict[str, list[float]]] = {}
        self.writes: list[Write] = []
        self.applied = 0
        self.lag = 0
        self.fault: str | None = None
        self.retry_after = "7"
        #: Method and path of each request.
        self.requests: list[tuple[str, str]] = []
        self.bodies: list[Any] = []
        self.lock = threading.Lock()
        self.release = threading.Event()

    def write(self, write: Write) -> dict[str, str]:
        with self.lock:
            self.writes.append(write)
            self.apply()
            return {"x-pinecone-request-lsn": str(len(self.writes))}

    def apply(self) -> None:
        """Apply all writes but the last few."""
        while self.applied < len(self.writes) - self.lag:
            kind, namespace, what = self.writes[self.applied]
            if kind == "upsert":
                held = self.namespaces.setdefault(namespace, {})
                held.update({vector["id"]: vector["values"] for vector in what})
            elif kind == "delete":
                for name in what:
                    self.namespaces.get(namespace, {}).pop(name, None)
            else:
                self.namespaces.pop(namespace, None)
            self.applied += 1

    def query(self, body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        with self.lock:
            held = self.namespaces.get(body["namespace"], {})
            names, matrix = list(held), np.array(list(held.values()), dtype=np.float32)
            headers = {"x-pinecone-max-indexed-lsn": str(self.applied)}
        if not names:
            return {"matches": [], "namespace": body["namespace"]}, headers
        query = np.array(body["vector"], dtype=np.float32)
        cosines = matrix @ query / np.linalg.norm(matrix, axis=1) / np.linalg.norm(query)
        order = np.argsort(-cosines, kind="stable")[: body["topK"]]
        matches = [{"id": names[at], "score": float(cosines[at]), "values": []} for at in order]
        return {"matches": matches, "namespace": body["namespace"], "usage": {"readUnits": 1}}, headers

    def stats(self) -> dict[str, Any]:
        with self.lock:
            counts = {name: {"vectorCount": len(held)} for name, held in self.namespaces.items() if held}
            total = sum(each["vectorCount"] for each in counts.values())
            dimension = next(iter(self.indexes.values()))
        return {"namespaces": counts, "dimension": dimension, "indexFullness": 0, "totalVectorCount": total}

    def describe(self, name: str) -> dict[str, Any]:
        ready = self.fault != "not ready"
        return {"name": name, "host": self.host, "status": {"ready": ready, "state": "Ready"}}

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        field = body["schema"]["fields"]["_values"]
        assert (field["type"], field["metric"]) == ("dense_vector", "cosine")
        assert body["deployment"]["deployment_type"] == "managed"
        self.indexes[body["name"]] = field["dimension"]
        return self.describe(body["name"])


def handler_of(account: FakePinecone) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def do_DELETE(self) -> None:
            self._serve()

        def _serve(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            account.requests.append((self.command, self.path))
            account.bodies.append(body)
            if account.fault == "hang":
                account.release.wait(30)
            status, answer, headers = self._fault() or self._answer(body)
            raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in ({"content-type": "application/json"} | headers).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(raw)))
            with suppress(ConnectionError):  # the client stopped waiting
                self.end_headers()
                self.wfile.write(raw)

        def _fault(self) -> tuple[int, Any, dict[str, str]] | None:
            if self.headers.get("api-key") != KEY or account.fault == "401":
                return 401, {"error": f"Invalid API key {self.headers.get('api-key')}"}, {}
            assert self.headers.get("x-pinecone-api-version") == "2026-07"
            match account.fault:
                case "429":
                    return (
                        429,
                        {"error": {"code": "RESOURCE_EXHAUSTED"}},
                        {"retry-after": account.retry_after},
                    )
                case "500":
                    return 500, {"error": {"code": "UNKNOWN", "message": "internal"}}, {}
                case "html":
                    return 200, b"<html>a proxy</html>", {}
                case "redirect":
                    return 302, {}, {"location": "http://127.0.0.1:9/"}
            return None

        def _answer(self, body: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:  # noqa: PLR0911 - one per request
            match (self.command, self.path.strip("/").split("/")):
                case ("GET", ["indexes", name]):
                    known = name in account.indexes
                    return (200, account.describe(name), {}) if known else (404, {"error": {}}, {})
                case ("POST", ["indexes"]):
                    return 201, account.create(body), {}
                case ("POST", ["vectors", "upsert"]):
                    wrong = [v for v in body["vectors"] if len(v["values"]) != account.stats()["dimension"]]
                    if wrong or len(body["vectors"]) > 1000:
                        return 400, {"code": 3, "message": "bad vectors"}, {}
                    headers = account.write(("upsert", body["namespace"], body["vectors"]))
                    return 200, {"upsertedCount": len(body["vectors"])}, headers
                case ("POST", ["vectors", "delete"]):
                    return 200, {}, account.write(("delete", body["namespace"], body["ids"]))
                case ("POST", ["query"]):
                    answer, headers = account.query(body)
                    return 200, answer, headers
                case ("POST", ["describe_index_stats"]):
                    return 200, account.stats(), {}
                case ("DELETE", ["namespaces", name]):
                    return 200, {}, account.write(("drop", unquote(name), None))
            return 404, {"code": 5, "message": f"no {self.path}"}, {}

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@contextmanager
def pinecone_server() -> Iterator[FakePinecone]:
    account = FakePinecone()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(account))
    account.host = f"127.0.0.1:{server.server_address[1]}"
    account.url = f"http://{account.host}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield account
    finally:
        account.release.set()
        server.shutdown()
        server.server_close()
        thread.join()
