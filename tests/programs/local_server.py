"""Run a local HTTP server for a test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Answer with a body of known length."""

    protocol_version = "HTTP/1.1"

    def body(self) -> bytes:
        """Read the body of the request."""
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def send(self, status: int, kind: str, data: bytes) -> None:
        """Send a body."""
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Do not log requests."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignore clients that disconnect."""


@contextmanager
def serving_with(handler: type[Handler], state: object) -> Iterator[str]:
    """Run a server on a free local port and return its address. Its handlers have the ``state``."""
    with _Server(("127.0.0.1", 0), type("Handler", (handler,), {"state": state})) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
