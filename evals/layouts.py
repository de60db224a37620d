"""Measure how the layout of notes affects search: `python -m evals.layouts [--set chunking.target=512]`.

Our own set is written in three ways: a note for each memory, a log for each month with a section a day, and one long
list in `MEMORY.md`. A hit is right when it covers the memory's line. Beside its rank counts what a prompt pays: is the
right line among the first 300 tokens of the answer? And what the threshold costs: is it still there with the default?
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from evals.__main__ import overrides
from evals.sets import OWN, Item, Query, find_sets, load_set
from memoriter import Hit, Memory
from memoriter.text import estimate_tokens

#: Path and line.
Place = tuple[str, int]
PROMPT_TOKENS = 300


def single(items: Sequence[Item]) -> dict[str, list[str | Item]]:
    """Return one note per memory."""
    return {f"memory/{item.day}-{number}.md": [item] for number, item in enumerate(items)}


def months(items: Sequence[Item]) -> dict[str, list[str | Item]]:
    """Return one log per month, with a section per day."""
    pages: dict[str, list[str | Item]] = {}
    day = None
    for item in sorted(items, key=lambda one: (one.day or "", one.id)):
        month = (item.day or "undated")[:7]
        page = pages.setdefault(f"memory/{month}.md", [f"# {month}"])
        if item.day != day:
            day = item.day
            page += ["", f"## {day}"]
        page.append(item)
    return pages


def core(items: Sequence[Item]) -> dict[str, list[str | Item]]:
    """Return one long list."""
    return {"MEMORY.md": ["# Memory", "", *items]}


LAYOUTS: dict[str, Callable[[Sequence[Item]], dict[str, list[str | Item]]]] = {
    "a note each": single,
    "monthly logs": months,
    "one list": core,
}


def write(root: Path, pages: dict[str, list[str | Item]]) -> dict[str, Place]:
    """Write the pages and return where each memory is."""
    places: dict[str, Place] = {}
    (root / "memory").mkdir(parents=True)
    for path, page in pages.items():
        lines = [line if isinstance(line, str) else f"- {line.text}" for line in page]
        places |= {line.id: (path, number) for number, line in enumerate(page, 1) if isinstance(line, Item)}
        (root / path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return places


def outcomes(memory: Memory, query: Query, places: dict[str, Place]) -> dict[str, float]:
    """Return the measures of one question."""
    hits = memory.search(query.text, max_results=30, min_score=0.0).hits
    wanted = {places[one] for one in query.relevant}
    rank = next((number for number, hit in enumerate(hits, 1) if _covers(hit, wanted)), None)
    floor = memory.settings.search.min_score
    return {
        "MRR": 1 / rank if rank else 0.0,
        f"within {PROMPT_TOKENS} tokens": float(_is_cheap(hits, wanted)),
        "kept by the threshold": float(any(_covers(hit, wanted) and hit.score >= floor for hit in hits)),
    }


def _covers(hit: Hit, wanted: set[Place]) -> bool:
    return any(hit.path == path and hit.start_line <= line <= hit.end_line for path, line in wanted)


def _is_cheap(hits: Sequence[Hit], wanted: set[Place]) -> bool:
    spent = 0
    for hit in hits:
        spent += estimate_tokens(hit.snippet)
        if spent > PROMPT_TOKENS:
            return False
        if _covers(hit, wanted):
            return True
    return False


def main() -> None:
    """Print one row per layout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="Override a setting.")
    settings = {"search.sync_before": False, **overrides(parser.parse_args().set)}
    memories = load_set("memories", *find_sets(OWN)["memories"])
    for name, layout in LAYOUTS.items():
        found: dict[str, list[float]] = defaultdict(list)
        for _, items, queries in memories.groups():
            with tempfile.TemporaryDirectory() as folder:
                places = write(Path(folder) / "notes", layout(items))
                with Memory.open(
                    Path(folder) / "notes", home=Path(folder) / "home", overrides=settings
                ) as memory:
                    memory.sync()
                    for query in queries:
                        for measure, value in outcomes(memory, query, places).items():
                            found[measure].append(value)
        row = ", ".join(
            f"{measure} {100 * sum(values) / len(values):.1f}" for measure, values in found.items()
        )
        print(f"{name}: {row}", flush=True)


if __name__ == "__main__":
    main()
