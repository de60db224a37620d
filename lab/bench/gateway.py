"""The cost of the gateway: a warm search compared with the library, and the waiting times of many clients.

    python -m lab.bench.gateway [--clients 32 --seconds 30]

A search is measured by the CPU clock of the process that does the work: the gateway, and a process that calls the
library. Their rounds alternate, so that a busy machine affects both equally. With `--clients`, that many clients send
one request after the other, four searches and then an entry, and wait for each answer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

from lab.bench.corpus import Writer
from memoriter import Memory

BUDGET_MS = 3.0
#: The vector of the query costs the same on both sides.
SETTINGS = {"embedding.provider": "none"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """CPU milliseconds of one search in the library and over the gateway: medians of the rounds."""

    library: float
    gateway: float
    #: Milliseconds that a client of the gateway waits.
    wall: float

    @property
    def added(self) -> float:
        """The milliseconds that the gateway adds."""
        return self.gateway - self.library


def warm_search(root: Path, *, questions: int, rounds: int) -> Comparison:
    """Ask the same questions both ways, and compare."""
    workspace, home, asked = _filled(root, questions)
    with (
        Memory.open(workspace, home=home, overrides=SETTINGS) as memory,
        serving(workspace, home) as gateway,
    ):
        memory.sync()

        def in_library() -> float:
            before = time.process_time()
            for question in asked:
                memory.search(question)
            return time.process_time() - before

        runs = [(in_library(), *gateway.ask(asked)) for _ in range(rounds + 1)][
            1:
        ]  # the first round warms up
    library, over, wall = ([1000 * run[which] / questions for run in runs] for which in range(3))
    return Comparison(median(library), median(over), median(wall))


def _filled(root: Path, questions: int) -> tuple[Path, Path, list[str]]:
    """Write 200 notes. Return the workspace, the home and questions."""
    (root / "workspace" / "memory").mkdir(parents=True)
    writer = Writer(seed=7)
    for number in range(200):
        (root / "workspace" / "memory" / f"{number}.md").write_text(writer.note(5))
    return root / "workspace", root / "home", [writer.question() for _ in range(questions)]


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway and its token."""

    pid: int
    address: str
    token: str

    def connect(self) -> HTTPConnection:
        """Return a connection of a new client."""
        return HTTPConnection(self.address.removeprefix("http://"), timeout=60)

    def post(self, client: HTTPConnection, operation: str, **arguments: object) -> None:
        """Call an operation and wait for the answer."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        client.request("POST", f"/v1/agents/main/{operation}", json.dumps(arguments), headers)
        answer = client.getresponse()
        text = answer.read()
        assert answer.status == 200, text

    def ask(self, questions: Sequence[str]) -> tuple[float, float]:
        """Ask questions one after the other. Return the seconds of CPU and of waiting."""
        client = self.connect()
        cpu, wall = cpu_s(self.pid), time.perf_counter()
        for question in questions:
            self.post(client, "memory.search", query=question)
        waited = time.perf_counter() - wall
        client.close()
        return cpu_s(self.pid) - cpu, waited


@contextmanager
def serving(workspace: Path, home: Path) -> Iterator[Gateway]:
    """Run a gateway."""
    limits = {"MEMORITER_GATEWAY__LIMITS__RATE": "100000", "MEMORITER_GATEWAY__LIMITS__BURST": "100000"}
    env = {
        **os.environ,
        **limits,
        "MEMORITER_EMBEDDING__PROVIDER": "none",
        "MEMORITER_LOGGING__LEVEL": "warning",
    }
    command = [sys.executable, "-m", "memoriter", "--workspace", str(workspace), "--home", str(home)]
    process = subprocess.Popen(
        [*command, "serve", "--port", "0", "--json"], env=env, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        started = json.loads(process.stdout.readline())
        yield Gateway(process.pid, started["address"], started["token"])
    finally:
        process.terminate()
        process.communicate(timeout=60)


def crowd(root: Path, clients: int, seconds: float) -> list[float]:
    """Return the seconds that each request of many clients waited."""
    workspace, home, asked = _filled(root, questions=200)
    with serving(workspace, home) as gateway, ThreadPoolExecutor(clients) as pool:
        gateway.ask(asked[:5])
        until = time.monotonic() + seconds

        def wait_for_answers(number: int) -> list[float]:
            client, waits = gateway.connect(), list[float]()
            while time.monotonic() < until:
                began, count = time.monotonic(), len(waits)
                if count % 5 == 4:
                    gateway.post(client, "entries.add", text=f"Client{number} noted item{count}")
                else:
                    gateway.post(client, "memory.search", query=asked[(number + count) % len(asked)])
                waits.append(time.monotonic() - began)
            client.close()
            return waits

        return [wait for waits in pool.map(wait_for_answers, range(clients)) for wait in waits]


def cpu_s(pid: int) -> float:
    """Return the id of the CPU clock of another process with all its threads, as on Linux."""
    return time.clock_gettime((~pid << 3) | 2)


def main() -> None:
    """Print one of the two figures."""
    options = argparse.ArgumentParser(prog="python -m lab.bench.gateway")
    options.add_argument("--clients", type=int, default=0, help="Measure the waiting times of many clients.")
    options.add_argument("--seconds", type=float, default=30.0, help="How long they work (default: 30).")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="memoriter-bench-") as name:
        if chosen.clients:
            waits = sorted(crowd(Path(name), chosen.clients, chosen.seconds))
            middle, late = median(waits), waits[int(0.99 * (len(waits) - 1))]
            rate = len(waits) / chosen.seconds
            print(f"{chosen.clients} clients: {rate:.0f} requests/s, p50 {middle:.2f} s, p99 {late:.2f} s")
            return
        found = warm_search(Path(name), questions=200, rounds=9)
    print(
        f"library {found.library:.2f} ms CPU, gateway {found.gateway:.2f} ms CPU: adds {found.added:.2f} ms "
        f"(budget {BUDGET_MS:g}); a caller waits {found.wall:.2f} ms"
    )


if __name__ == "__main__":
    main()
