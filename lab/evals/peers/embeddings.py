"""The bundled model behind the embeddings API of OpenAI, on loopback, so that every peer uses the same vectors.

`python -m lab.evals.peers.embeddings CACHE` prints its port and serves until it is stopped. `GET /cost` returns what
the vectors cost so far, those of the cache included.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.evals.peers.process import parse_stat
from lab.evals.vectors import KeptVectors
from memoriter.embedding import EmbedderSpec, resolve

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix

MODEL = "memoriter-embed"


def response(texts: Sequence[str], vectors: Matrix, encoding: str) -> dict[str, Any]:
    """Return the answer of the embeddings API."""
    data = [
        {
            "object": "embedding",
            "index": number,
            "embedding": base64.b64encode(row.tobytes()).decode() if encoding == "base64" else row.tolist(),
        }
        for number, row in enumerate(vectors)
    ]
    tokens = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": MODEL, "usage": usage}


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"
    vectors: KeptVectors

    def do_POST(self) -> None:
        """Embed the texts of the request."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
        vectors = self.vectors.embed(texts)
        self._send(response(texts, vectors, str(body.get("encoding_format", "float"))))

    def do_GET(self) -> None:
        """Report the cost so far."""
        cpu_s = time.process_time() + self.vectors.recorded_s
        self._send(
            {
                "cpu_s": cpu_s,
                "rss_mb": parse_stat(Path("/proc/self/stat").read_text("utf-8", "replace")).rss_mb,
            }
        )

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _send(self, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    """Serve until stopped."""
    embedder = resolve(EmbedderSpec("local")).embedder
    if embedder is None:
        raise SystemExit("the bundled model is not installed")
    Handler.vectors = KeptVectors(embedder, Path(sys.argv[1]) / "vectors")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(json.dumps({"port": server.server_port, "dimensions": embedder.identity.dimensions}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
