"""Gateways on one Postgres server: the cost of a request, and how many requests one and two answer.

The agents are filled through the gateway. No model runs, since models cost the same on every store.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import psycopg

from lab.bench.corpus import Writer
from lab.bench.gateway import cpu_s

TENANT = "bench-gateways"
AGENTS = 8
NOTES = 20
PARAGRAPHS = 10
WARM_UP = 3 * AGENTS
#: Clients that search at the same time.
CLIENTS = 8
#: How often the throughput of one and of two gateways is measured, in turn.
ROUNDS = 3

#: Where Linux keeps control groups of CPU time. Version 1 has a folder for each kind.
_CONTROL = next(path for path in (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")) if path.exists())
_IS_OLD = _CONTROL.name == "cpu"
_PERIOD_US = 100_000

_ENVIRONMENT = {
    "MEMORITER_STORE__TENANT": TENANT,
    "MEMORITER_EMBEDDING__PROVIDER": "none",
    "MEMORITER_LOGGING__LEVEL": "warning",
    "MEMORITER_GATEWAY__LIMITS__RATE": "100000",
    "MEMORITER_GATEWAY__LIMITS__BURST": "100000",
    # The notes of an agent are on the server, so its folder is not used.
    "MEMORITER_GATEWAY__AGENTS": json.dumps({f"gateway-{number}": "unused" for number in range(AGENTS)}),
}


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway."""

    pid: int
    address: str

    def connect(self) -> HTTPConnection:
        """Return a connection of a new client."""
        return HTTPConnection(self.address.removeprefix("http://"), timeout=120)


@dataclass(frozen=True, slots=True)
class RequestCost:
    """One kind of request, sent one after the other: milliseconds of CPU time, and of waiting."""

    operation: str
    gateway_p50: float
    server_p50: float
    p50: float
    p95: float
    wall_p50: float


class Caller:
    """Calls operations of agents in turn."""

    def __init__(self, token: str) -> None:
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._writer = Writer(seed=3)
        self.questions = [self._writer.question() for _ in range(200)]

    def post(self, client: HTTPConnection, agent: int, operation: str, **arguments: object) -> None:
        """Call an operation and wait for the answer."""
        client.request(
            "POST", f"/v1/agents/gateway-{agent}/{operation}", json.dumps(arguments), self._headers
        )
        answer = client.getresponse()
        text = answer.read()
        assert answer.status == 200, text

    def fill(self, client: HTTPConnection) -> None:
        """Save notes of every agent."""
        for agent, _ in itertools.product(range(AGENTS), range(NOTES)):
            self.post(client, agent, "memory_save", content=self._writer.note(PARAGRAPHS))

    def search(self, client: HTTPConnection, number: int) -> None:
        """Search in the next agent."""
        self.post(
            client, number % AGENTS, "memory_search", query=self.questions[number % len(self.questions)]
        )

    def remember(self, client: HTTPConnection, number: int) -> None:
        """Store an entry of the next agent."""
        text = f"Person{time.time_ns()} prefers {self.questions[number % len(self.questions)]}"
        self.post(client, number % AGENTS, "memory_store", text=text)


@contextmanager
def serving(url: str, home: Path) -> Iterator[tuple[Gateway, str | None]]:
    """Run a gateway. Yield it, and its token if it created one."""
    command = [sys.executable, "-m", "memoriter", "--home", str(home), "serve", "--port", "0", "--json"]
    process = subprocess.Popen(
        command,
        env={**os.environ, **_ENVIRONMENT, "MEMORITER_STORE__URL": url},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        started = json.loads(process.stdout.readline())
        yield Gateway(process.pid, started["address"]), started.get("token")
    finally:
        process.terminate()
        process.communicate(timeout=60)


def server_cpu_s(url: str) -> Callable[[], float]:
    """Return a function that returns the CPU seconds of all processes of a server on this machine."""
    with psycopg.connect(url) as connection:
        row = connection.execute("select pg_backend_pid()").fetchone()
        assert row is not None
        status = Path(f"/proc/{row[0]}/status").read_text()
    parent = next(line.split()[1] for line in status.splitlines() if line.startswith("PPid"))
    children = Path(f"/proc/{parent}/task/{parent}/children")

    def total() -> float:
        found = 0
        for pid in children.read_text().split():
            try:
                found += int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
            except OSError:
                continue
        return found / 1e9

    return total


def cost(
    operation: str,
    gateway: Gateway,
    call: Callable[[HTTPConnection, int], None],
    server: Callable[[], float],
    count: int,
) -> RequestCost:
    """Send requests one after the other, after a warm-up."""
    client, rows = gateway.connect(), []
    for number in range(count + WARM_UP):
        before = cpu_s(gateway.pid), server(), time.perf_counter()
        call(client, number)
        after = cpu_s(gateway.pid), server(), time.perf_counter()
        rows.append([1000 * (end - start) for end, start in zip(after, before, strict=True)])
    client.close()
    own, of_server, wall = np.array(rows[WARM_UP:]).T
    both = own + of_server
    gateway_p50, server_p50, p50, wall_p50 = (
        round(float(np.median(part)), 1) for part in (own, of_server, both, wall)
    )
    p95 = round(float(np.percentile(both, 95)), 1)
    return RequestCost(operation, gateway_p50, server_p50, p50, p95, wall_p50)


@dataclass(frozen=True, slots=True)
class Rate:
    """Searches of many clients at once: answers per second, and the CPU milliseconds of each."""

    gateways: int
    per_s: float
    gateway_ms: float
    server_ms: float


def throughput(
    gateways: Sequence[Gateway], caller: Caller, server: Callable[[], float], seconds: float
) -> Rate:
    """Let clients search, spread over the gateways."""
    until = time.monotonic() + seconds

    def work(which: int) -> int:
        client = gateways[which % len(gateways)].connect()
        for number in itertools.count(which):
            if time.monotonic() > until:
                client.close()
                return number - which
            caller.search(client, number)
        return 0

    def spent() -> tuple[float, float]:
        return sum(cpu_s(gateway.pid) for gateway in gateways), server()

    before = spent()
    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = sum(pool.map(work, range(CLIENTS)))
    own, of_server = (
        1000 * (end - start) / max(1, answers) for end, start in zip(spent(), before, strict=True)
    )
    return Rate(len(gateways), answers / seconds, own, of_server)


@contextmanager
def limited(gateways: Sequence[Gateway], cores: float) -> Iterator[None]:
    """Limit each gateway to a share of a core, by a control group of its own. Needs root.

    On a machine with few cores, the server and the clients would otherwise take what a second gateway needs.
    """
    groups = [_CONTROL / f"memoriter-bench-{gateway.pid}" for gateway in gateways]
    quota = int(cores * _PERIOD_US)
    try:
        for group, gateway in zip(groups, gateways, strict=True):
            group.mkdir()
            if _IS_OLD:
                (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(quota))
            else:
                (group / "cpu.max").write_text(f"{quota} {_PERIOD_US}")
            (group / "cgroup.procs").write_text(str(gateway.pid))
        yield
    finally:
        for group, gateway in zip(groups, gateways, strict=True):
            if group.exists():
                (_CONTROL / "cgroup.procs").write_text(str(gateway.pid))
                group.rmdir()


def measure(url: str, folder: Path, *, count: int, seconds: float, cores: float) -> str:
    """Return the tables of one and of two gateways. Each may use ``cores`` of a core while clients are counted."""
    server = server_cpu_s(url)
    with ExitStack() as stack:
        first, token = stack.enter_context(serving(url, folder / "one"))
        second, _ = stack.enter_context(serving(url, folder / "two"))
        caller = Caller(token or _new_token(url, folder / "three"))
        client = first.connect()
        caller.fill(client)
        client.close()
        costs = [
            cost("search", first, caller.search, server, count),
            cost("remember", first, caller.remember, server, count),
        ]
        _warm(second, caller)
        with limited([first, second], cores):
            rounds = [
                [throughput(some, caller, server, seconds) for some in ([first], [first, second])]
                for _ in range(ROUNDS)
            ]
    return "\n".join((*_cost_lines(costs), "", *_rate_lines(rounds, cores)))


def _cost_lines(costs: Sequence[RequestCost]) -> Iterator[str]:
    yield "| request | p50 | p95 | of it gateway | of it server | a client waits |\n|---|--:|--:|--:|--:|--:|"
    for c in costs:
        yield f"| {c.operation} | {c.p50} | {c.p95} | {c.gateway_p50} | {c.server_p50} | {c.wall_p50} |"


def _rate_lines(rounds: Sequence[Sequence[Rate]], cores: float) -> Iterator[str]:
    yield f"{CLIENTS} clients search. Each gateway may use {cores:g} of a core.\n"
    yield "| gateways | searches/s | CPU ms of the gateway | of the server |\n|--:|--:|--:|--:|"
    for rate in itertools.chain.from_iterable(rounds):
        yield f"| {rate.gateways} | {rate.per_s:.1f} | {rate.gateway_ms:.1f} | {rate.server_ms:.1f} |"
    ratio = float(np.median([two.per_s / one.per_s for one, two in rounds]))
    yield f"\nTwo gateways answer {ratio:.2f} times as many searches as one (median of {len(rounds)})."


def _warm(gateway: Gateway, caller: Caller) -> None:
    client = gateway.connect()
    for number in range(WARM_UP):
        caller.search(client, number)
    client.close()


def _new_token(url: str, home: Path) -> str:
    """Return a new token. The gateways of an earlier run have created the first one."""
    command = [sys.executable, "-m", "memoriter", "--home", str(home), "token", "create", "--json"]
    found = subprocess.run(
        command,
        env={**os.environ, **_ENVIRONMENT, "MEMORITER_STORE__URL": url},
        check=True,
        capture_output=True,
        text=True,
    )
    token: str = json.loads(found.stdout)["token"]
    return token
