"""A local server that speaks the protocols of four vendors, with faults on request.

The vendors' clients reach it as `provider.test`, so the code under test treats it as a remote host. Its vectors are
those of `HashEmbedder`, so tests can compare them.
"""

from __future__ import annotations

import base64
import gzip
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from memoriter.testing import HashEmbedder

HOST = "provider.test"
KEY = "sk-memoriter-test-0123456789abcdefghijklmnop"
DIMS = 64

#: The path of each vendor's API.
PATHS = {"openai": "/v1", "voyage": "/voyage/v1", "gemini": "", "ollama": ""}


def url(provider: str, scheme: str = "http") -> str:
    return f"{scheme}://{HOST}{PATHS[provider]}"


class Vendors:
    """The requests to the server, and how it answers."""

    def __init__(self) -> None:
        self.fault: str | None = None
        #: Path, headers, body.
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.texts: list[str] = []
        self.jobs: dict[str, dict[str, Any]] = {}
        #: Polls during which a job is still running.
        self.job_polls = 0
        #: Ends every answer that hangs.
        self.release = threading.Event()
        #: The other vendors answer with an error.
        self.only_ollama = False
        #: Calls that still succeed.
        self.quota: int | None = None
        self.port = 0
        self.closed_port = 0
        self.deaf_port = 0

    def calls(self) -> int:
        return sum("embed" in path.lower() for path, _, _ in self.requests)

    def resolve(self, host: str) -> int:
        """Return the port of the host, depending on the fault."""
        if self.fault == "dns":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return {"refused": self.closed_port, "connect hang": self.deaf_port}.get(self.fault or "", self.port)


def vector(text: str, dims: int = DIMS) -> list[float]:
    return [float(x) for x in HashEmbedder(dims).embed([text])[0]]


# ---- answers --------------------------------------------------------------------------------------------------


def openai_answer(body: dict[str, Any], state: Vendors) -> Any:
    dims = body.get("dimensions") or body.get("output_dimension") or DIMS
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    rows = spoiled([vector(text, dims) for text in texts], state.fault)
    numbers = list(range(len(rows)))
    if state.fault == "duplicate index":
        numbers = [0] * len(rows) if len(rows) > 1 else [1]
    data = [
        {"object": "embedding", "index": number, "embedding": packed(row, body)}
        for number, row in zip(numbers, rows, strict=True)
    ]
    if state.fault == "shuffled":
        data.reverse()
    model = "text-embedding-ada-002" if state.fault == "other model" else body["model"]
    return {"object": "list", "data": data, "model": model, "usage": {"prompt_tokens": 1, "total_tokens": 1}}


def packed(row: list[float], body: dict[str, Any]) -> Any:
    if body.get("encoding_format") == "base64":
        with np.errstate(over="ignore"):
            return base64.b64encode(np.asarray(row, dtype="<f4").tobytes()).decode()
    return row


def gemini_answer(body: dict[str, Any], state: Vendors) -> Any:
    requests = body["requests"]
    dims = requests[0].get("outputDimensionality") or DIMS
    rows = spoiled([vector(gemini_text(request), dims) for request in requests], state.fault)
    return {"embeddings": [{"values": row} for row in rows]}


def gemini_text(request: dict[str, Any]) -> str:
    return "".join(part["text"] for part in request["content"]["parts"])


def ollama_answer(body: dict[str, Any], state: Vendors) -> Any:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    bare = [text.removeprefix("search_query: ").removeprefix("search_document: ") for text in texts]
    rows = spoiled([vector(text) for text in bare], state.fault)
    model = "some-other-model" if state.fault == "other model" else body["model"]
    return {
        "model": model,
        "embeddings": rows,
        "total_duration": 1,
        "load_duration": 1,
        "prompt_eval_count": 1,
    }


def spoiled(rows: list[list[float]], fault: str | None) -> list[list[float]]:
    """Return the vectors with a fault."""
    lies: dict[str | None, list[list[float]]] = {
        "wrong dims": [row[:-1] for row in rows],
        "mixed dims": [*rows[:-1], rows[-1][:-1]],
        "nan": [[float("nan"), *row[1:]] for row in rows],
        "inf": [[float("inf"), *row[1:]] for row in rows],
        "zero": [[0.0] * len(row) for row in rows],
        "huge": [[x * 1e37 for x in row] for row in rows],
        "too few": rows[:-1],
        "too many": [*rows, rows[0]],
    }
    return lies.get(fault, rows)


BROKEN_BODIES = {
    "wrong json": (b'{"data": "nothing here", "embeddings": 5, "model": null}', "application/json"),
    "no json": (b'{"data": [', "application/json"),
    "html": (b"<html><body>Sign in to the guest network</body></html>", "text/html; charset=utf-8"),
    "empty": (b"", "application/json"),
}

STATUS = {"500": 500, "503": 503, "401": 401, "429": 429, "quota": 429}


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    state: Vendors

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._note(None)
        self._reply(self._job(self.path.rstrip("/").rpartition("/")[2]))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        is_json = self.headers.get("content-type", "").startswith("application/json")
        body = json.loads(raw) if raw and is_json else raw
        self._note(body)
        if "batches" in self.path or "files" in self.path or "asyncBatch" in self.path:
            self._reply(self._submit(body))
        elif self.state.only_ollama and self.path != "/api/embed":
            self._fail(500)
        elif self.state.quota is not None and self._spend():
            self.state.fault = "quota"
            self._fail(429)
            self.state.fault = None
        elif self.state.fault in FAULTS_ON_THE_WIRE:
            FAULTS_ON_THE_WIRE[self.state.fault](self)
        elif self.state.fault in STATUS:
            self._fail(STATUS[self.state.fault])
        elif self.state.fault in BROKEN_BODIES:
            data, kind = BROKEN_BODIES[self.state.fault]
            self._send(200, data, kind)
        else:
            self._reply(self._answer(body))

    def _spend(self) -> bool:
        assert self.state.quota is not None
        self.state.quota -= 1
        return self.state.quota < 0

    def _note(self, body: Any) -> None:
        self.state.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))

    def _answer(self, body: dict[str, Any]) -> Any:
        if self.path.endswith(":batchEmbedContents"):
            self.state.texts += [gemini_text(request) for request in body["requests"]]
            return gemini_answer(body, self.state)
        self.state.texts += body["input"] if isinstance(body["input"], list) else [body["input"]]
        return (
            ollama_answer(body, self.state) if self.path == "/api/embed" else openai_answer(body, self.state)
        )

    def _fail(self, status: int) -> None:
        said = f"not now; you sent {KEY}"
        code = "insufficient_quota" if self.state.fault == "quota" else "rate_limit_exceeded"
        if self.state.fault == "quota":
            said = "You exceeded your current quota, please check your plan and billing details."
        body: Any = {
            "error": {"message": said, "code": code, "type": code, "status": "FAILED"},
            "detail": said,
        }
        if self.path.endswith("EmbedContents"):
            limit = "PerDay" if self.state.fault == "quota" else "PerMinute"
            details = [{"quotaId": f"Requests{limit}"}, {"retryDelay": "7s"}]
            body = {"error": {"code": status, "message": said, "status": "FAILED", "details": details}}
        if self.path == "/api/embed":
            body = {"error": said}
        wait = {"Retry-After": "7"} if self.state.fault == "429" else {}
        self._send(status, json.dumps(body).encode(), "application/json", wait)

    def _reply(self, answer: Any) -> None:
        if isinstance(answer, bytes):
            self._send(200, answer, "application/octet-stream")
        else:
            self._send(200, json.dumps(answer).encode(), "application/json")

    def _send(self, status: int, data: bytes, kind: str, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    # ---- batch jobs ------------------------------------------------------------------------------------------

    def _submit(self, body: Any) -> Any:
        state = self.state
        if self.path.endswith("/files"):
            lines = [line for line in body.split(b"\n") if line.startswith(b'{"custom_id"')]
            name = f"file-{len(state.jobs)}"
            state.jobs[name] = {"lines": [json.loads(line.strip()) for line in lines]}
            return {
                "id": name,
                "object": "file",
                "bytes": 1,
                "created_at": 1,
                "filename": "x",
                "purpose": "batch",
            }
        if self.path.endswith(("/cancel", ":cancel")):
            state.jobs["cancelled"] = {}
            return self._status(self.path.split("/")[-2], "cancelling")
        name = f"batch-{len(state.jobs)}"
        if "asyncBatch" in self.path:
            state.jobs[name] = {"requests": body["batch"]["inputConfig"]["requests"]["requests"], "polls": 0}
            return {"name": f"batches/{name}", "metadata": {"state": "BATCH_STATE_PENDING"}}
        state.jobs[name] = {"lines": state.jobs[body["input_file_id"]]["lines"], "polls": 0, "body": body}
        return self._status(name, "validating")

    def _job(self, name: str) -> Any:
        state = self.state
        if name == "content":
            return self._results(state.jobs[self.path.split("/")[-2].replace("out-", "")])
        job = state.jobs[name]
        job["polls"] += 1
        done = job["polls"] > state.job_polls
        if "requests" in job:
            return self._gemini_job(name, job, done)
        return self._status(
            name, "failed" if state.fault == "job fails" else "completed" if done else "in_progress"
        )

    def _gemini_job(self, name: str, job: dict[str, Any], done: bool) -> Any:
        state = "BATCH_STATE_SUCCEEDED" if done else "BATCH_STATE_RUNNING"
        state = "BATCH_STATE_FAILED" if self.state.fault == "job fails" else state
        answer: dict[str, Any] = {"name": f"batches/{name}", "metadata": {"state": state}}
        if done and self.state.fault != "job fails":
            texts = [gemini_text(entry["request"]) for entry in job["requests"]]
            self.state.texts += texts
            inlined = [{"response": {"embedding": {"values": vector(text)}}} for text in texts]
            answer["metadata"]["output"] = {"inlinedResponses": {"inlinedResponses": inlined}}
        return answer

    def _status(self, name: str, status: str) -> Any:
        lines = self.state.jobs.get(name, {}).get("lines", [])
        return {
            "id": name, "object": "batch", "endpoint": "/v1/embeddings", "input_file_id": "file-0",
            "completion_window": "24h", "status": status, "created_at": 1,
            "output_file_id": f"out-{name}" if status == "completed" else None,
            "request_counts": {"total": len(lines), "completed": len(lines), "failed": 0},
        }  # fmt: skip

    def _results(self, job: dict[str, Any]) -> bytes:
        defaults = job["body"].get("request_params", {})
        out = []
        for line in reversed(job["lines"]):
            body = {"model": "m", **defaults, **line["body"]}
            self.state.texts += body["input"]
            answer = openai_answer(body, self.state)
            out.append(
                {
                    "custom_id": line["custom_id"],
                    "response": {"status_code": 200, "body": answer},
                    "error": None,
                }
            )
        return "\n".join(json.dumps(line) for line in out).encode()


# ---- faults of the connection ---------------------------------------------------------------------------------


def _hang(handler: Handler) -> None:
    handler.state.release.wait(20)
    handler.close_connection = True


def _slow_body(handler: Handler) -> None:
    _head(handler, 1000)
    handler.wfile.write(b'{"data"')
    handler.wfile.flush()
    _hang(handler)


def _drip(handler: Handler) -> None:
    """Send single bytes, so that no single read times out."""
    _head(handler, 100_000)
    handler.close_connection = True
    while not handler.state.release.wait(0.05):
        try:
            handler.wfile.write(b" ")
            handler.wfile.flush()
        except OSError:
            return


def _truncated(handler: Handler) -> None:
    _head(handler, 1000)
    handler.wfile.write(b'{"data": [')
    handler.close_connection = True


def _too_large(handler: Handler) -> None:
    _head(handler, 2 << 30)
    handler.wfile.write(b"{")
    handler.close_connection = True


def _gzip_bomb(handler: Handler) -> None:
    data = gzip.compress(b" " * (8 << 20))
    handler._send(200, data, "application/json", {"Content-Encoding": "gzip"})


def _redirect(handler: Handler) -> None:
    port = handler.server.server_address[1]
    handler._send(307, b"", "text/plain", {"Location": f"http://127.0.0.1:{port}/elsewhere"})


def _head(handler: Handler, length: int) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(length))
    handler.end_headers()


FAULTS_ON_THE_WIRE = {
    "slow headers": _hang,
    "slow body": _slow_body,
    "drip": _drip,
    "truncated": _truncated,
    "2 GiB": _too_large,
    "gzip bomb": _gzip_bomb,
    "redirect": _redirect,
}


@contextmanager
def running() -> Iterator[Vendors]:
    """Run the server within the context."""
    state = Vendors()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"state": state}))
    server.daemon_threads = True
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    with socket.socket() as closed, socket.socket() as deaf:
        closed.bind(("127.0.0.1", 0))  # bound but not listening, so connections are refused
        state.closed_port = closed.getsockname()[1]
        fillers = _deafen(deaf)
        state.deaf_port = deaf.getsockname()[1]
        try:
            yield state
        finally:
            state.release.set()
            server.shutdown()
            server.server_close()
            thread.join()
            for filler in fillers:
                filler.close()


def _deafen(listener: socket.socket) -> list[socket.socket]:
    """Fill the queue of a listener that never accepts, so that further connections hang."""
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    fillers = []
    for _ in range(3):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex(listener.getsockname())
        fillers.append(filler)
    return fillers
