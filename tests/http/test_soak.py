"""Many clients for a while: nobody is refused, nothing fails, and memory does not grow without end."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from statistics import quantiles
from typing import Any

import pytest

from memoriter.testing import sample_workspace

WORDS = (
    "tea",
    "coffee",
    "server",
    "backup",
    "garden",
    "running",
    "Lisbon",
    "cat",
    "数据库",
    "备份",
    "家人",
    "投资",
)


@dataclass
class Seen:
    """What one client saw."""

    waited: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


@contextmanager
def serving(tmp_path: Path, **variables: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    workspace, home = sample_workspace(tmp_path / "workspace"), tmp_path / "home"
    place = ("--workspace", str(workspace), "--home", str(home))
    limits = {"MEMORITER_GATEWAY__LIMITS__RATE": "100000", "MEMORITER_GATEWAY__LIMITS__BURST": "100000"}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "memoriter", *place, "serve", "--port", "0", "--json"],
            env={**os.environ, **limits, **variables},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.terminate()
            process.communicate(timeout=60)


def client(address: str, token: str, seed: int, until: float, seen: Seen) -> None:
    """Ask, mostly to find, now and then to keep, until the time is over."""
    chance = random.Random(seed)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    caller = HTTPConnection(address.removeprefix("http://"), timeout=120)
    number = 0
    while time.monotonic() < until:
        number += 1
        words = " ".join(chance.choices(WORDS, k=3))
        message = {"role": "user", "content": f"I prefer {words} on day {seed * 1000 + number}."}
        operation, arguments = chance.choices(
            [
                ("memory.search", {"query": words}),
                ("recall", {"query": words}),
                ("entries.list", {"query": words, "limit": 10}),
                ("capture", {"messages": [message], "session": f"s{seed}"}),
            ],
            weights=[70, 15, 10, 5],
        )[0]
        began = time.perf_counter()
        caller.request("POST", f"/v1/agents/main/{operation}", json.dumps(arguments), headers)
        answer = caller.getresponse()
        body = answer.read()
        seen.waited.append(time.perf_counter() - began)
        if answer.status != 200:
            seen.failures.append(f"{operation}: {answer.status} {body.decode()}")
    caller.close()


def own_mb(pid: int) -> float:
    """Memory of a process without mapped files."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def soaked(tmp_path: Path, clients: int, seconds: float, **variables: str) -> tuple[Seen, float, float]:
    """What all clients saw, and the gateway's memory after a sixth of the time and at the end."""
    with serving(tmp_path, **variables) as (process, told):
        until = time.monotonic() + seconds
        seen = [Seen() for _ in range(clients)]
        threads = [
            threading.Thread(target=client, args=(told["address"], told["token"], seed, until, one))
            for seed, one in enumerate(seen)
        ]
        for thread in threads:
            thread.start()
        threads[0].join(seconds / 6)
        early = own_mb(process.pid)
        for thread in threads:
            thread.join()
        late = own_mb(process.pid)
    whole = Seen([ms for one in seen for ms in one.waited], [text for one in seen for text in one.failures])
    return whole, early, late


def test_some_clients_at_once_are_all_served(tmp_path: Path) -> None:
    seen, _, _ = soaked(tmp_path, 8, 1.5, MEMORITER_EMBEDDING__PROVIDER="none")
    assert seen.failures == []
    assert len(seen.waited) > 8


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_32_clients_for_a_minute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen, early, late = soaked(tmp_path, 32, 60.0)
    cut = quantiles(seen.waited, n=100)
    with capsys.disabled():
        sys.stdout.write(
            f"\n32 clients, 60 s: {len(seen.waited)} requests, {len(seen.waited) / 60:.0f} a second, "
            f"p50 {1000 * cut[49]:.0f} ms, p95 {1000 * cut[94]:.0f} ms, {len(seen.failures)} failures; "
            f"memory {early:.0f} MB after 10 s, {late:.0f} MB at the end\n"
        )
    assert seen.failures == []
    assert late - early < 96
