"""Compare the scores of notes and entries: `python -m lab.evals.mixed`.

Half of the memories of a group become entries with importance 1 to 5, the other half lines of monthly logs. One search
must then rank a note first when a note holds the answer, and an entry when an entry does. A second table stores all
memories as entries and shows how many right answers pass the threshold of recall, and how many entries enter with them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean

from lab.evals.layouts import months, write
from lab.evals.options import overrides
from lab.evals.sets import OWN, Item, Query, find_sets, load_set
from memoriter import Memory

#: Results that a search returns, and entries that a recall may hold.
DEPTH, MAX_RECALLED = 30, 10


def digest(item: Item) -> int:
    """Return a number that decides, the same in every run, where an item is stored and how important it is."""
    return hashlib.sha256(item.id.encode()).digest()[0]


@contextmanager
def opened(notes: Sequence[Item], entries: Iterable[Item], settings: dict[str, object]) -> Iterator[Memory]:
    """Open a memory with these notes and entries."""
    with tempfile.TemporaryDirectory() as folder:
        places = write(Path(folder) / "notes", months(notes))
        with Memory.open(Path(folder) / "notes", home=Path(folder) / "home", overrides=settings) as memory:
            memory.sync()
            records = [{"text": one.text, "importance": 1 + digest(one) // 2 % 5} for one in entries]
            memory.entries.import_(json.dumps(records))
            memory.places = places  # type: ignore[attr-defined]
            yield memory


def mixed_ranks(
    memory: Memory, queries: Sequence[Query], texts: dict[str, str]
) -> Iterator[tuple[str, float]]:
    """Yield where the answer is stored, and one divided by its rank."""
    places = memory.places  # type: ignore[attr-defined]
    for query in queries:
        lines = {places[one] for one in query.relevant if one in places}
        wanted = {texts[one] for one in query.relevant if one not in places}
        if bool(lines) == bool(wanted):
            continue  # the answer is in both, or nowhere
        hits = memory.search(query.text, max_results=DEPTH, min_score=0.0).hits
        right = (
            number
            for number, hit in enumerate(hits, 1)
            if (hit.source == "entries" and hit.snippet in wanted)
            or any(hit.path == path and hit.start_line <= line <= hit.end_line for path, line in lines)
        )
        rank = next(right, None)
        yield "note" if lines else "entry", 1 / rank if rank else 0.0


def recalled(memory: Memory, queries: Sequence[Query], texts: dict[str, str]) -> Iterator[dict[str, float]]:
    """Yield how a recall from entries alone fares."""
    for query in queries:
        hits = memory.entries.search(query.text, limit=DEPTH, threshold=0.0).hits
        kept = memory.entries.search(query.text, limit=MAX_RECALLED).hits
        wanted = {texts[one] for one in query.relevant}
        ranks = [number for number, hit in enumerate(hits, 1) if hit.entry.text in wanted]
        found = {hit.entry.text for hit in kept}
        yield {
            "abstain": float(not wanted),
            "MRR": 1 / ranks[0] if ranks else 0.0,
            "recalled": len(wanted & found) / len(wanted) if wanted else 1.0,
            "entries in the prompt": float(len(kept)),
        }


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m lab.evals.mixed", description=__doc__)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="Override a setting.")
    settings = {"search.sync_before": False, **overrides(parser.parse_args().set)}
    memories = load_set("memories", *find_sets(OWN)["memories"])
    mixed, alone = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for _, items, queries in memories.groups():
        texts = {item.id: item.text for item in items}
        notes = [item for item in items if digest(item) % 2]
        with opened(notes, [item for item in items if not digest(item) % 2], settings) as memory:
            for kind, value in mixed_ranks(memory, queries, texts):
                mixed[kind].append(value)
        with opened([], items, settings) as memory:
            for figures in recalled(memory, queries, texts):
                if not figures.pop("abstain"):
                    for name, value in figures.items():
                        alone[name].append(value)
    print("| the answer is | queries | MRR | first |\n| --- | --- | --- | --- |")
    for kind, values in sorted(mixed.items()):
        first = mean(value == 1 for value in values)
        print(
            f"| {'an entry' if kind == 'entry' else 'a note'} | {len(values)} | {mean(values):.3f} | {first:.3f} |"
        )
    print("\n| entries alone | mean |\n| --- | --- |")
    for name, values in alone.items():
        print(f"| {name} | {mean(values):.3f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
