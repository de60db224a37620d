"""Kills gateways during captures: ``python killed_gateways.py HOME WORKSPACE KILLS SEED [early]``.

Prints the statements whose capture was acknowledged. One process imports everything and forks the gateways, so that a
kill does not cost a start of Python. With `early`, which is the control, they acknowledge before they write.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import httpx

from memoriter.config import load
from memoriter.extensions.serving.server import GatewayServer
from memoriter.server.http import observe
from memoriter.server.http.auth import Tokens
from memoriter.server.http.gateway import SettingsLoader
from memoriter.tools.table import OPERATIONS
from memoriter.tools.tool import Call, Shape, Tool
from memoriter.tools.turns import TurnsArguments

CLIENTS = 4


def arguments(home: str, workspace: str) -> dict[str, object]:
    """Return settings with which a gateway starts quickly."""
    limits = {"gateway.limits.rate": 100_000, "gateway.limits.burst": 100_000}
    off = {"embedding.provider": "none", "watch.enabled": False}
    return {"home": home, "workspace": workspace, "gateway.port": 0, **limits, **off}


def serve(given: Mapping[str, object], pipe: int, early: bool) -> None:
    """Run a gateway until it is killed. Write its address to the pipe."""
    if early:
        observe.OPERATIONS = {**OPERATIONS, "capture": _early(OPERATIONS["capture"])}
    server = GatewayServer(SettingsLoader(load(arguments=given), None, given))
    server.run(on_ready=lambda: os.write(pipe, f"{server.address}\n".encode()))


class EarlyResult(Shape):
    """The part of a `CaptureResult` that the client of this test reads."""

    remembered: list[dict[str, object]]


def _early(tool: Tool) -> Tool:
    """Return an operation that responds before it does its work."""

    def run(call: Call[TurnsArguments]) -> Shape:
        def later() -> None:
            time.sleep(0.005)
            tool.run(call)

        threading.Thread(target=later, daemon=True).start()
        return EarlyResult(
            remembered=[{"memory": {"text": message["content"]}} for message in call.arguments.messages]
        )

    return replace(tool, run=run)


def statement(chooser: random.Random) -> str:
    """Return a unique statement that is worth remembering."""
    words = ["".join(chooser.choices("bcdfghjklmnpqrstvwxz", k=9)) for _ in range(4)]
    return f"Remember that {' '.join(words)}."


def capture(address: str, token: str, seed: int, acknowledged: list[str]) -> None:
    """Capture statements until the gateway is killed."""
    chooser = random.Random(seed)
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=address, headers=headers, timeout=300) as client:
        while True:
            text = statement(chooser)
            body = {"messages": [{"role": "user", "content": text}], "session": f"s{seed}"}
            try:
                answer = client.post("/v1/agents/main/capture", json=body)
            except httpx.TransportError:
                return
            if answer.status_code != 200:
                sys.stderr.write(f"{answer.status_code} {answer.text}\n")
                return
            acknowledged += [text for _ in answer.json()["remembered"][:1]]


def main(home: str, workspace: str, kills: int, seed: int, early: bool) -> None:
    """Start a gateway, capture, kill it, and repeat."""
    chooser = random.Random(seed)
    given = arguments(home, workspace)
    token = Tokens(Path(home)).create("write")[1]
    acknowledged: list[str] = []
    for round_ in range(kills):
        read, pipe = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            serve(given, pipe, early)
            os._exit(0)
        os.close(pipe)
        address = os.read(read, 200).decode().strip()
        os.close(read)
        before = len(acknowledged)
        seeds = [seed * 1_000_000 + round_ * CLIENTS + which for which in range(CLIENTS)]
        threads = [
            threading.Thread(target=capture, args=(address, token, one, acknowledged)) for one in seeds
        ]
        for thread in threads:
            thread.start()
        wanted = before + chooser.randrange(5, 25)
        until = time.monotonic() + 300
        while len(acknowledged) < wanted and time.monotonic() < until:
            time.sleep(0.0005)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for thread in threads:
            thread.join()
    sys.stdout.write("".join(f"{text}\n" for text in acknowledged))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), "early" in sys.argv)
