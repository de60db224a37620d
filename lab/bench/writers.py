"""`python -m lab.bench.writers [COUNT …]`: adds per second with 1, 8 and 12 processes that write to one memory.

The embedder is a hash, so that only the work of memoriter is measured. Compare the rates of one and of several
processes: both depend on the disk and on the load of the machine, which is printed too.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path

from memoriter import Memory
from memoriter.testing import HashEmbedder

DIMENSIONS = 384


def opened(folder: Path) -> Memory:
    """Open the memory that all processes write to."""
    settings = {"search.rerank": False, "embedding.background": False}
    return Memory.open(folder, home=folder / "home", embedder=HashEmbedder(DIMENSIONS), overrides=settings)


def write(folder: Path, number: int, ready: Barrier, seconds: float) -> None:
    """Add entries until the time is up, and record their number, the longest wait and the CPU time."""
    with opened(folder) as memory:
        memory.remember(f"Worker{number} is ready", "fact")  # loads what an add needs
        ready.wait()
        start = time.monotonic()
        count, longest, cpu = 0, 0.0, time.process_time()
        while time.monotonic() < start + seconds:
            began = time.monotonic()
            memory.remember(f"Worker{number} noted item{count} under code w{number}x{count}", "fact")
            longest = max(longest, time.monotonic() - began)
            count += 1
        result = [count, longest, time.process_time() - cpu]
        (folder / f"{number}.json").write_text(json.dumps(result))


def measure(processes: int, seconds: float) -> str:
    """Return one line of figures."""
    with tempfile.TemporaryDirectory(prefix="memoriter-bench-") as name:
        folder = Path(name)
        with opened(folder) as memory:
            memory.remember("The first entry", "fact")
        context = multiprocessing.get_context("spawn")
        ready = context.Barrier(processes)
        workers = [context.Process(target=write, args=(folder, n, ready, seconds)) for n in range(processes)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        results = [json.loads((folder / f"{number}.json").read_text()) for number in range(processes)]
    adds, cpu = sum(one[0] for one in results), sum(one[2] for one in results)
    return (
        f"{processes} processes: {adds / seconds:.1f} adds/s, longest wait {max(one[1] for one in results):.2f} s, "
        f"{1000 * cpu / max(1, adds):.1f} ms CPU per add, load {os.getloadavg()[0]:.1f}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", nargs="*", type=int, default=[1, 8, 12], help="Numbers of processes.")
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="Seconds of one measurement (default: 10)."
    )
    options = parser.parse_args(arguments)
    for count in options.counts:
        print(measure(count, options.seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
