"""Measure how long a client of `memoriter mcp` waits, from the start of the process to its first result."""

from __future__ import annotations

import itertools
import json
import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import IO, Any

from lab.bench.cold import MEMORITER
from lab.bench.corpus import Writer

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
STEPS = ("start until `initialize` is answered", "then until the first search is", "each further search")


def first_results(root: Path, *, repeats: int) -> dict[str, tuple[float, float | None]]:
    """Return the wall milliseconds of each step, the median of several processes, and the CPU time of all steps."""
    workspace = root / "workspace"
    (workspace / "memory").mkdir(parents=True)
    writer = Writer(seed=7)
    for number in range(20):
        (workspace / "memory" / f"{number}.md").write_text(writer.note(5))
    env = {**os.environ, "HOME": str(root)}
    (root / "home").mkdir()
    command = [*MEMORITER, "--workspace", str(workspace), "--home", str(root / "home")]
    subprocess.run([*command, "index"], env=env, check=True, stdout=subprocess.DEVNULL)
    questions = [writer.question() for _ in range(6)]
    runs = [_once([*command, "mcp"], env, questions) for _ in range(repeats)]
    found: dict[str, tuple[float, float | None]] = {
        step: (median(run[at] for run in runs), None) for at, step in enumerate(STEPS)
    }
    return {
        **found,
        "from start to the first result": (median(run[3] for run in runs), median(run[4] for run in runs)),
    }


def _once(command: Sequence[str], env: Mapping[str, str], questions: Sequence[str]) -> tuple[float, ...]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    with subprocess.Popen(
        command,
        env=dict(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdin
        assert server.stdout
        _ask(server.stdin, server.stdout, 0, "initialize", HELLO)
        welcomed = time.perf_counter()
        _send(server.stdin, {"method": "notifications/initialized"})
        times = [welcomed]
        for number, question in enumerate(questions, 1):
            params = {"name": "memory_search", "arguments": {"query": question}}
            answer = _ask(server.stdin, server.stdout, number, "tools/call", params)
            assert answer["result"]["structuredContent"]["results"], "the search found nothing"
            times.append(time.perf_counter())
        server.stdin.close()
        server.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    further = [later - earlier for earlier, later in itertools.pairwise(times[1:])]
    seconds = (welcomed - began, times[1] - welcomed, median(further), times[1] - began, cpu)
    return tuple(1000 * one for one in seconds)


def _ask(to: IO[str], out: IO[str], number: int, method: str, params: Mapping[str, object]) -> Any:
    _send(to, {"id": number, "method": method, "params": params})
    return next(answer for answer in map(json.loads, out) if answer.get("id") == number)


def _send(to: IO[str], message: Mapping[str, object]) -> None:
    to.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    to.flush()
