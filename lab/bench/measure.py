"""CPU time, wall time and memory of a piece of work or a child process.

CPU time is the main measure: a busy machine changes it far less than wall time.
"""

from __future__ import annotations

import resource
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Generic, TypeVar

import numpy as np

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Timing(Generic[Result]):
    """The result of a piece of work, and its time."""

    result: Result
    cpu_s: float
    wall_s: float


@dataclass(frozen=True, slots=True)
class Spread:
    """Times of many similar pieces of work, in milliseconds."""

    p50: float
    p95: float
    wall_p50: float


def timed(work: Callable[[], Result]) -> Timing[Result]:
    """Run the work once."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return Timing(result, time.process_time() - cpu, time.perf_counter() - wall)


def median_of(work: Callable[[], Result], repeats: int) -> Timing[Result]:
    """Run the work several times. Return the median by CPU time."""
    runs = sorted((timed(work) for _ in range(repeats)), key=lambda timing: timing.cpu_s)
    return runs[len(runs) // 2]


def spread(works: Sequence[Callable[[], object]]) -> Spread:
    """Run each once, after a warm-up with the first."""
    works[0]()
    runs = [timed(work) for work in works]
    cpu = [1000 * run.cpu_s for run in runs]
    return Spread(median(cpu), float(np.percentile(cpu, 95)), median(1000 * run.wall_s for run in runs))


def child(command: Sequence[str], *, env: Mapping[str, str], repeats: int) -> float:
    """Return the CPU milliseconds of a program from start to end, the median of several runs."""
    return median(_child_ms(command, env) for _ in range(repeats))


def _child_ms(command: Sequence[str], env: Mapping[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=dict(env), check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def resident_mb() -> dict[str, float]:
    """Return the megabytes of this process: all, and without pages of mapped files, which the system can reclaim."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = {
        name: int(rest.split()[0])
        for name, _, rest in (line.partition(":") for line in lines)
        if rest.endswith(" kB")
    }
    return {"all": kilobytes["VmRSS"] / 1024, "own": kilobytes["RssAnon"] / 1024}
