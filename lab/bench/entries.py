"""`python -m lab.bench.entries [COUNT …]`: the cost of `memory_recall` and `memory_store` with 1,000 or more entries.

The embedder is a hash, so that only the work of memoriter is measured: CPU time of this process in milliseconds, and
wall time, which includes the disk.

`python -m lab.bench.entries --import COUNT` imports this many entries with the bundled model, and then measures the
first searches of a new process, while vectors are still missing.

`python -m lab.bench.entries --tidy COUNT` runs `memoriter tidy` over this many statements about people, with the
bundled models: duplicates, changes of mind, plans and facts that both stand.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from memoriter.entries import Draft, Entries
from memoriter.entries.collection import connect_entries, context_of
from memoriter.entries.exchange import EntryLine, import_lines
from memoriter.records import Entry
from memoriter.store import open_index
from memoriter.store.entry_store import open_file
from memoriter.testing import HashEmbedder

DIMENSIONS = 384
CALLS = 60
ALPHABET = "abdefgiklmnprstuv"


def statement(chooser: random.Random) -> str:
    """Return a short statement of invented words. The most frequent one is in 1.5 % of the statements."""
    ranks = (int(100 * (500 ** chooser.random()) - 99) for _ in range(9))
    return " ".join(f"{ALPHABET[rank % 17]}{_spelled(rank)}" for rank in ranks)


def _spelled(number: int) -> str:
    """Spell a number as a word, so that it is not treated as a number."""
    letters = ""
    while number:
        number, rest = divmod(number, 17)
        letters += ALPHABET[rest]
    return f"{letters}o"


def filled(folder: Path, count: int, engine: str) -> Entries:
    """Open entries and fill them with this many statements."""
    chooser = random.Random(count)
    index = open_index(folder / "entries", engine=engine)
    entries = connect_entries(lambda: open_file(folder / "memory.db"), index, HashEmbedder(DIMENSIONS))
    statements = (
        Entry(str(uuid.UUID(int=chooser.getrandbits(128))), statement(chooser), "fact") for _ in range(count)
    )
    context = context_of(entries)
    import_lines(context.store, (EntryLine(entry) for entry in statements), at=1.0, actor="bench")
    context.follower.follow()
    assert context.follower.embedder is not None
    context.follower.index.refresh(context.follower.embedder.identity)
    return entries


def timed(call: Callable[[int], object]) -> tuple[list[float], list[float]]:
    """Return CPU and wall milliseconds of each call, without the first few."""
    cpu, wall = list[float](), list[float]()
    for number in range(CALLS + 5):
        begun, begun_wall = time.process_time(), time.perf_counter()
        call(number)
        cpu.append((time.process_time() - begun) * 1000)
        wall.append((time.perf_counter() - begun_wall) * 1000)
    return cpu[5:], wall[5:]


def row(name: str, count: int, cpu: Sequence[float], wall: Sequence[float]) -> str:
    """Return one line of the table."""

    def at(values: Sequence[float], share: float) -> str:
        return f"{sorted(values)[int(share * (len(values) - 1))]:.1f}"

    return f"| {name} | {count:,} | {at(cpu, 0.5)} | {at(cpu, 0.95)} | {at(wall, 0.5)} | {at(wall, 0.95)} |"


def measured(entries: Entries, count: int) -> Iterator[str]:
    """Yield the lines for one set of entries."""
    chooser = random.Random(time.time_ns())
    texts = [statement(chooser) for _ in range(2 * (CALLS + 5))]
    yield row("memory_recall", count, *timed(lambda number: entries.search(texts[number], limit=5)))
    yield row(
        "memory_store", count, *timed(lambda number: entries.add_draft(Draft(texts[-1 - number], "fact")))
    )


def import_and_search(folder: Path, count: int) -> Iterator[str]:
    """Import entries and yield how long that and the next searches take, each search in a new memory."""
    from memoriter import Memory

    chooser = random.Random(count)
    texts = [statement(chooser) for _ in range(count)]
    data = json.dumps([{"memory": text} for text in texts])
    begun, begun_wall = time.process_time(), time.perf_counter()
    with Memory.open(folder / "workspace", home=folder / "home") as memory:
        memory.entries.import_(data)
        took = f"{time.process_time() - begun:.1f} s CPU, {time.perf_counter() - begun_wall:.1f} s wall"
        yield f"import of {count:,} entries: {took}"
    for wanted in texts[-1], texts[count // 2]:
        with Memory.open(folder / "workspace", home=folder / "home") as memory:
            begun, begun_wall = time.process_time(), time.perf_counter()
            found = memory.entries.search(wanted, limit=5)
            cpu, wall = time.process_time() - begun, time.perf_counter() - begun_wall
            first = bool(found.hits) and found.hits[0].entry.text == wanted
            yield f"search: {cpu:.2f} s CPU, {wall:.2f} s wall, found {first}. {found.degraded or ''}"


PEOPLE = ("Ada", "Bo", "Chen", "Dora", "Emil", "Fay", "Gil", "Hana", "Ivo", "Jun", "Kai", "Lea", "Mo", "Nia")
PLACES = (
    "Oslo",
    "Turin",
    "Kyoto",
    "Lima",
    "Porto",
    "Basel",
    "Cork",
    "Delft",
    "Graz",
    "Hanoi",
    "Izmir",
    "Jena",
)
THINGS = (
    "tea",
    "chess",
    "jazz",
    "sailing",
    "maps",
    "opera",
    "bread",
    "Rust",
    "cycling",
    "film",
    "ferns",
    "clocks",
)
FORMS = (
    "{person} {number} lives in {place}",
    "{person} {number} moved to {place}",
    "{person} {number} likes {thing} very much",
    "{person} {number} no longer cares about {thing}",
    "{person} {number} is going to {place} in July 2025",
    "The team of {person} {number} uses {thing} for the office in {place}",
    "The team of {person} {number} switched to {thing}",
    "In {place} {person} {number} bought a book about {thing}",
    "{person} {number} 住在 {place}，喜欢{thing}",
)


def statements_about_people(count: int) -> list[dict[str, object]]:
    """Return statements of which many are near each other, each a day after the one before."""
    chooser = random.Random(count)
    return [
        {
            "memory": chooser.choice(FORMS).format(
                person=chooser.choice(PEOPLE),
                number=_spelled(chooser.randrange(1, count // 4)),
                place=chooser.choice(PLACES),
                thing=chooser.choice(THINGS),
            ),
            "created_at": 1_600_000_000 + 3600 * number,
        }
        for number in range(count)
    ]


def tidied(folder: Path, count: int) -> Iterator[str]:
    """Import statements, compute their vectors, and yield what the first runs of `tidy` change and cost."""
    from memoriter import Memory
    from memoriter.extensions.tidy.running import tidy

    with Memory.open(folder / "workspace", home=folder / "home") as memory:
        memory.entries.import_(json.dumps(statements_about_people(count)))
        while memory.entries.missing_vectors():
            context_of(memory.entries).follower.follow()
        for number in range(1, 4):
            begun, begun_wall = time.process_time(), time.perf_counter()
            report = tidy(memory)
            cpu, wall = time.process_time() - begun, time.perf_counter() - begun_wall
            kinds = Counter(step.kind for step in report.steps)
            done = ", ".join(f"{kinds[kind]} {kind}" for kind in sorted(kinds)) or "nothing"
            yield (
                f"run {number}, {report.entries:,} entries: {cpu:.1f} s CPU, {wall:.1f} s wall. {done}; "
                f"{report.changed} entries changed, {report.left} steps and {report.waiting} entries left"
            )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m lab.bench.entries", description=__doc__)
    parser.add_argument("counts", type=int, nargs="*", default=[1_000, 100_000])
    parser.add_argument("--engine", default="scan")
    parser.add_argument("--import", type=int, dest="imported", metavar="COUNT")
    parser.add_argument("--tidy", type=int, dest="tidied", metavar="COUNT")
    options = parser.parse_args(arguments)
    if options.imported or options.tidied:
        with tempfile.TemporaryDirectory() as folder:
            measure, count = (
                (tidied, options.tidied) if options.tidied else (import_and_search, options.imported)
            )
            for line in measure(Path(folder), count):
                print(line, flush=True)
        return 0
    print(
        "| call | entries | CPU p50 | CPU p95 | wall p50 | wall p95 |\n| --- | --- | --- | --- | --- | --- |"
    )
    for count in options.counts:
        with tempfile.TemporaryDirectory() as folder:
            begun = time.process_time()
            entries = filled(Path(folder), count, options.engine)
            print(f"{count}: filled in {time.process_time() - begun:.0f} s of CPU", file=sys.stderr)
            for line in measured(entries, count):
                print(line, flush=True)
            entries.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
