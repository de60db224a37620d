"""Many clients at once: all requests succeed, and memory does not grow without limit."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
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
class Observed:
    """Observations of the clients."""

    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


@contextmanager
def serving(tmp_path: Path, **variables: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Run `memoriter serve` without a rate limit."""
    workspace, home = sample_workspace(tmp_path / "workspace"), tmp_path / "home"
    folders = ("--workspace", str(workspace), "--home", str(home))
    limits = {"MEMORITER_GATEWAY__LIMITS__RATE": "100000", "MEMORITER_GATEWAY__LIMITS__BURST": "100000"}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "memoriter", *folders, "serve", "--port", "0", "--json"],
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


def request(random_: random.Random, session: str, number: int) -> tuple[str, dict[str, object]]:
    """Return an operation with its arguments: mostly a search, sometimes a capture."""
    words = " ".join(random_.choices(WORDS, k=3))
    message = {"role": "user", "content": f"I prefer {words} on day {number} of {session}."}
    requests: list[tuple[str, dict[str, object]]] = [
        ("memory.search", {"query": words}),
        ("recall", {"query": words}),
        ("entries.list", {"query": words, "limit": 10}),
        ("capture", {"messages": [message], "session": session}),
    ]
    return random_.choices(requests, weights=[70, 15, 10, 5])[0]


def client(address: str, token: str, seed: int, numbers: Iterable[int], observed: Observed) -> None:
    """Send one request for each number."""
    random_ = random.Random(seed)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection = HTTPConnection(address.removeprefix("http://"), timeout=120)
    for number in numbers:
        operation, arguments = request(random_, f"s{seed}", number)
        started_at = time.perf_counter()
        connection.request("POST", f"/v1/agents/main/{operation}", json.dumps(arguments), headers)
        answer = connection.getresponse()
        body = answer.read()
        observed.seconds.append(time.perf_counter() - started_at)
        if answer.status != 200:
            observed.failures.append(f"{operation}: {answer.status} {body.decode()}")
    connection.close()


def until(seconds: float) -> Iterator[int]:
    """Count until the time is over."""
    end = time.monotonic() + seconds
    return itertools.takewhile(lambda _: time.monotonic() < end, itertools.count())


def private_mb(pid: int) -> float:
    """Return the memory of a process without mapped files."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def start_clients(
    details: dict[str, Any], clients: int, numbers: Callable[[], Iterable[int]]
) -> tuple[list[threading.Thread], list[Observed]]:
    observed = [Observed() for _ in range(clients)]
    threads = [
        threading.Thread(target=client, args=(details["address"], details["token"], seed, numbers(), each))
        for seed, each in enumerate(observed)
    ]
    for thread in threads:
        thread.start()
    return threads, observed


def test_many_concurrent_clients_all_get_responses(tmp_path: Path) -> None:
    with serving(tmp_path, MEMORITER_EMBEDDING__PROVIDER="none") as (_, details):
        threads, observed = start_clients(details, 8, lambda: range(20))
        for thread in threads:
            thread.join()
    assert [failure for each in observed for failure in each.failures] == []
    assert [len(each.seconds) for each in observed] == [20] * 8


@pytest.mark.soak
def test_32_clients_for_a_minute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(tmp_path) as (process, details):
        threads, observed = start_clients(details, 32, lambda: until(60.0))
        threads[0].join(10.0)
        early = private_mb(process.pid)
        for thread in threads:
            thread.join()
        late = private_mb(process.pid)
    seconds = [value for each in observed for value in each.seconds]
    failures = [failure for each in observed for failure in each.failures]
    cuts = quantiles(seconds, n=100)
    with capsys.disabled():
        sys.stdout.write(
            f"\n32 clients, 60 s: {len(seconds)} requests, {len(seconds) / 60:.0f} per second, "
            f"p50 {1000 * cuts[49]:.0f} ms, p95 {1000 * cuts[94]:.0f} ms, {len(failures)} failures; "
            f"memory {early:.0f} MB after 10 s, {late:.0f} MB at the end\n"
        )
    assert failures == []
    assert late - early < 96
