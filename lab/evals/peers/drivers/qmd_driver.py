"""qmd: its full-text search over HTTP, because its three models come from a site that may not be reachable.

Environment: `NODE` and `QMD` name the two programs.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from importlib import import_module
from typing import Any

from lab.evals.peers.drivers.lines import arguments, serve

START_S = 30
MAX_TERMS = 16
QUIET = subprocess.DEVNULL


def main() -> None:
    """Write the configuration, index, start the server and answer."""
    given = arguments()
    config, cache = given.state / "config", given.state / "cache"
    config.mkdir()
    # JSON is YAML. qmd reads it as it is and adds nothing.
    collection = {"path": str(given.workspace.resolve()), "pattern": "**/*.md"}
    (config / "index.yml").write_text(json.dumps({"collections": {"notes": collection}}))
    env = {
        **{name: value for name, value in os.environ.items() if name != "CI"},
        "QMD_CONFIG_DIR": str(config),
        "XDG_CACHE_HOME": str(cache),
        "NO_COLOR": "1",
    }
    command = [os.environ["NODE"], os.environ["QMD"]]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server: subprocess.Popen[bytes] | None = None

    def index() -> None:
        nonlocal server
        # stdin carries the requests, so the children must not read it.
        subprocess.run([*command, "update"], env=env, check=True, stdin=QUIET, stdout=QUIET)
        serving = [*command, "mcp", "--http", "--port", str(port)]
        server = subprocess.Popen(serving, env=env, stdin=QUIET, stdout=QUIET)
        _wait(f"http://127.0.0.1:{port}/health")

    def search(query: str, limit: int) -> list[str]:
        request = {
            "searches": [{"type": "lex", "query": words} for words in (query, *_terms(query))],
            "limit": limit,
            "minScore": 0,
            "collections": ["notes"],
            "rerank": False,
        }
        found = _post(f"http://127.0.0.1:{port}/query", request)
        return [str(hit["file"]).removeprefix("qmd://notes/") for hit in found["results"]]

    serve(index, search)
    if server:
        server.terminate()
        server.wait()


def _terms(query: str) -> list[str]:
    """The words of a question. qmd requires every word of a query, so a whole question finds nothing."""
    text: Any = import_module("memoriter.text")
    return [term for term in text.query_terms(query) if not term.startswith("@")][:MAX_TERMS]


def _post(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def _wait(url: str) -> None:
    for _ in range(10 * START_S):
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(url, timeout=5).close()
            return
        time.sleep(0.1)
    raise TimeoutError(f"qmd did not answer within {START_S} s")


main()
