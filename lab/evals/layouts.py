"""Measure how the layout of notes affects search: `python -m lab.evals.layouts [--set chunking.target=512]`.

Our own set is written in three ways: a note for each memory, a log for each month with a section a day, and one long
list in `MEMORY.md`. A hit is right when it covers the memory's line. Beside its rank counts what a prompt pays: is the
right line among the first 300 tokens of the answer? What the threshold costs: is it still there with the default? And
how many files share the first six hits?
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from lab.evals.options import overrides
from lab.evals.report import table
from lab.evals.run import QUIET
from lab.evals.sets import OWN, Item, Query, find_sets, load_set
from lab.page import put
from memoriter import Hit, Memory
from memoriter.text import estimate_tokens

#: Path and line.
Place = tuple[str, int]
PROMPT_TOKENS = 300
#: One file must not fill the answer with its lines.
FILES = "files in the first six"


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
        FILES: float(len({hit.path for hit in hits[:6]})),
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


def measured(settings: Mapping[str, object]) -> dict[str, dict[str, float]]:
    """Return the mean of every measure, by layout."""
    memories = load_set("memories", *find_sets(OWN)["memories"])
    means = {}
    for name, layout in LAYOUTS.items():
        found: dict[str, list[float]] = defaultdict(list)
        for _, items, queries in memories.groups():
            with tempfile.TemporaryDirectory() as folder:
                places = write(Path(folder) / "notes", layout(items))
                with Memory.open(
                    Path(folder) / "notes", home=Path(folder) / "home", overrides={**QUIET, **settings}
                ) as memory:
                    memory.sync()
                    for query in queries:
                        for measure, value in outcomes(memory, query, places).items():
                            found[measure].append(value)
        means[name] = {measure: fmean(values) for measure, values in found.items()}
        print(f"{name}: {means[name]}", file=sys.stderr, flush=True)
    return means


def markdown(small: Mapping[str, Mapping[str, float]], large: Mapping[str, Mapping[str, float]]) -> str:
    """One row per layout; figures for large chunks in parentheses."""
    names = list(next(iter(small.values())))
    rows = []
    for layout, values in small.items():
        other = large.get(layout, {})
        cells = [
            f"{_shown(name, values[name])}{f' ({_shown(name, other[name])})' if name in other else ''}"
            for name in names
        ]
        rows.append([layout, *cells])
    return table(["layout", *names], rows)


def _shown(name: str, value: float) -> str:
    return f"{value:.1f}" if name == FILES else f"{100 * value:.1f}"


def main() -> None:
    """Print one row per layout, or put the table into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="Override a setting.")
    parser.add_argument("--compare", action="store_true", help="Also measure chunks of up to 512 tokens.")
    parser.add_argument("--out", type=Path, help="Put the table into this page, between its marks.")
    options = parser.parse_args()
    settings = overrides(options.set)
    small = measured(settings)
    shown = markdown(small, measured({**settings, "chunking.target": 512}) if options.compare else {})
    if options.out:
        put(options.out, "layouts", shown)
    else:
        print(shown)


if __name__ == "__main__":
    main()
