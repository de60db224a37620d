"""Start a gateway for a test: a workspace, a home, a process, and a client with the owner's token."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

#: A busy machine may take this long to start the gateway.
STARTS_S = 300


@dataclass(frozen=True)
class Served:
    """A running gateway."""

    workspace: Path
    home: Path
    address: str
    #: Opens the page once.
    link: str
    client: httpx.Client
    arguments: tuple[str, ...]

    def ask(self, operation: str, agent: str = "main", **arguments: object) -> dict[str, Any]:
        """Call an operation as the owner."""
        answer = self.client.post(f"/v1/agents/{agent}/{operation}", json=arguments)
        assert answer.status_code == 200, (operation, answer.status_code, answer.text)
        result: dict[str, Any] = answer.json()
        return result

    def write(self, path: str, text: str) -> Path:
        """Write a note into the workspace."""
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8", errors="surrogatepass")
        return file

    def session(self, name: str, *turns: tuple[str, str], at: str = "2026-02-10T09:00:00Z") -> Path:
        """Write a transcript, one line per turn."""
        lines = [
            {"type": "message", "timestamp": at, "message": {"role": role, "content": text}}
            for role, text in turns
        ]
        file = self.home / "agents/main/sessions" / f"{name}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
        return file

    def new_link(self) -> str:
        """Return the link that `memoriter open` prints."""
        done = subprocess.run(
            [*self.arguments, "open", "--json"],
            check=True,
            capture_output=True,
            text=True,
            env=_environment(),
        )
        return str(json.loads(done.stdout)["link"])


@contextmanager
def served(folder: Path, settings: Mapping[str, object] | None = None, port: int = 0) -> Iterator[Served]:
    """Serve the workspace of a folder until the block ends, on a free port or on the given one."""
    workspace, home = folder / "workspace", folder / "home"
    workspace.mkdir(parents=True, exist_ok=True)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if settings:
        (home / "config.yaml").write_text(json.dumps(settings), "utf-8")  # JSON is YAML
        (home / "config.yaml").chmod(0o600)
    arguments = (sys.executable, "-m", "memoriter", "--workspace", str(workspace), "--home", str(home))
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(
            [*arguments, "serve", "--port", str(port), "--json"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=_environment(),
        )
    try:
        told = json.loads(_first_line(process, folder / "serve.log"))
        headers = {
            "Authorization": f"Bearer {told.get('token', '')}"
        }  # only the first start prints the token
        # The gateway closes idle connections, so a client that keeps them may send a request into a closed one.
        fresh = httpx.Limits(max_keepalive_connections=0)
        with httpx.Client(
            base_url=told["address"], headers=headers, timeout=120, trust_env=False, limits=fresh
        ) as client:
            yield Served(workspace, home, told["address"], told["link"], client, arguments)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _first_line(process: subprocess.Popen[str], log: Path) -> str:
    """Return what the gateway prints when it is ready."""
    said: queue.Queue[str] = queue.Queue()
    assert process.stdout is not None
    threading.Thread(target=lambda out: said.put(out.readline()), args=(process.stdout,), daemon=True).start()
    try:
        line = said.get(timeout=STARTS_S)
    except queue.Empty:
        line = ""
    assert line.strip(), f"the gateway did not start: {log.read_text('utf-8', 'replace')[-2000:]}"
    return line


def _environment() -> dict[str, str]:
    """Return the environment without settings of the person who runs the tests."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MEMORITER_")}
