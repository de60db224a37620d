"""The CPU cost of a warm search over the gateway, compared with the same search in the library.

    python -m bench.gateway

Both are measured by the CPU clock of the process that does the work: the gateway, and a process that calls the library.
Their rounds alternate, so that a busy machine affects both equally.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

from bench.corpus import Writer
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
    workspace, home = root / "workspace", root / "home"
    (workspace / "memory").mkdir(parents=True)
    writer = Writer(seed=7)
    for number in range(200):
        (workspace / "memory" / f"{number}.md").write_text(writer.note(5))
    asked = [writer.question() for _ in range(questions)]
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

        runs = [(in_library(), *gateway(asked)) for _ in range(rounds + 1)][1:]  # the first round warms up
    library, over, wall = ([1000 * run[which] / questions for run in runs] for which in range(3))
    return Comparison(median(library), median(over), median(wall))


@contextmanager
def serving(workspace: Path, home: Path) -> Iterator[Callable[[Sequence[str]], tuple[float, float]]]:
    """Run a gateway. Yield a function that asks it questions and returns the seconds of CPU and of waiting."""
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
        caller = HTTPConnection(started["address"].removeprefix("http://"), timeout=60)
        headers = {"Authorization": f"Bearer {started['token']}", "Content-Type": "application/json"}

        def ask(questions: Sequence[str]) -> tuple[float, float]:
            cpu, wall = _cpu_s(process.pid), time.perf_counter()
            for question in questions:
                caller.request(
                    "POST", "/v1/agents/main/memory.search", json.dumps({"query": question}), headers
                )
                answer = caller.getresponse()
                answer.read()
                assert answer.status == 200
            return _cpu_s(process.pid) - cpu, time.perf_counter() - wall

        yield ask
        caller.close()
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _cpu_s(pid: int) -> float:
    """Return the id of the CPU clock of another process with all its threads, as on Linux."""
    return time.clock_gettime((~pid << 3) | 2)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="memoriter-bench-") as name:
        found = warm_search(Path(name), questions=200, rounds=9)
    print(
        f"library {found.library:.2f} ms CPU, gateway {found.gateway:.2f} ms CPU: adds {found.added:.2f} ms "
        f"(budget {BUDGET_MS:g}); a caller waits {found.wall:.2f} ms"
    )
