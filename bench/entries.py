"""`python -m bench.entries [COUNT …]`: what `memory_recall` and `memory_store` cost beside 1,000 and 100,000 entries.

The embedder is a hash, so that only our own work is measured. CPU time of this process in milliseconds, and wall time,
which includes the disk's.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from memoriter.entries import Draft, Entries
from memoriter.entries.collection import open_entries
from memoriter.entries.exchange import Line, import_lines
from memoriter.records import Entry
from memoriter.testing import HashEmbedder

DIMENSIONS = 384
CALLS = 60
ALPHABET = "abdefgiklmnprstuv"


def statement(chooser: random.Random) -> str:
    """A short statement of made-up words, as frequent as words that carry meaning are: the first in 1.5 % of them."""
    ranks = (int(100 * (500 ** chooser.random()) - 99) for _ in range(9))
    return " ".join(f"{ALPHABET[rank % 17]}{_spelled(rank)}" for rank in ranks)


def _spelled(number: int) -> str:
    """A number as a word, so that it is not taken for one."""
    letters = ""
    while number:
        number, rest = divmod(number, 17)
        letters += ALPHABET[rest]
    return f"{letters}o"


def filled(folder: Path, count: int, engine: str) -> Entries:
    """A keeper of so many entries."""
    chooser = random.Random(count)
    keeper = open_entries(folder, HashEmbedder(DIMENSIONS), engine=engine)
    entries = (
        Entry(str(uuid.UUID(int=chooser.getrandbits(128))), statement(chooser), "fact") for _ in range(count)
    )
    import_lines(keeper._store, (Line(entry) for entry in entries), at=1.0, actor="bench")
    keeper._follower.follow()
    assert keeper._follower.embedder is not None
    keeper._index.refresh(keeper._follower.embedder.identity)
    return keeper


def timed(call: Callable[[int], object]) -> tuple[list[float], list[float]]:
    """CPU and wall milliseconds of each call, the first few left out."""
    cpu, wall = list[float](), list[float]()
    for number in range(CALLS + 5):
        begun, begun_wall = time.process_time(), time.perf_counter()
        call(number)
        cpu.append((time.process_time() - begun) * 1000)
        wall.append((time.perf_counter() - begun_wall) * 1000)
    return cpu[5:], wall[5:]


def row(name: str, count: int, cpu: Sequence[float], wall: Sequence[float]) -> str:
    """One line of the table."""

    def at(values: Sequence[float], share: float) -> str:
        return f"{sorted(values)[int(share * (len(values) - 1))]:.1f}"

    return f"| {name} | {count:,} | {at(cpu, 0.5)} | {at(cpu, 0.95)} | {at(wall, 0.5)} | {at(wall, 0.95)} |"


def measured(keeper: Entries, count: int) -> Iterator[str]:
    """The lines of one keeper."""
    chooser = random.Random(time.time_ns())
    texts = [statement(chooser) for _ in range(2 * (CALLS + 5))]
    yield row("memory_recall", count, *timed(lambda number: keeper.search(texts[number], limit=5)))
    yield row(
        "memory_store", count, *timed(lambda number: keeper.add_draft(Draft(texts[-1 - number], "fact")))
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.entries", description=__doc__)
    parser.add_argument("counts", type=int, nargs="*", default=[1_000, 100_000])
    parser.add_argument("--engine", default="scan")
    options = parser.parse_args(arguments)
    print(
        "| call | entries | CPU p50 | CPU p95 | wall p50 | wall p95 |\n| --- | --- | --- | --- | --- | --- |"
    )
    for count in options.counts:
        with tempfile.TemporaryDirectory() as folder:
            begun = time.process_time()
            keeper = filled(Path(folder), count, options.engine)
            print(f"{count}: filled in {time.process_time() - begun:.0f} s of CPU", file=sys.stderr)
            for line in measured(keeper, count):
                print(line, flush=True)
            keeper.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
