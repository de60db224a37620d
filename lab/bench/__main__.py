"""`python -m lab.bench`: measure everything and print the tables.

`python -m lab.bench scale`: many agents on Postgres. `python -m lab.bench first`: from installing to the first answer.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: engines are compared on one core

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab.bench import cold, gateway, mcp, searching, syncing
from lab.bench.built import build, build_vectors
from lab.bench.report import Figures, markdown
from lab.page import put

SIZES = (1_000, 10_000, 100_000, 1_000_000)
#: Chunks. A larger index has only vectors.
MAX_SIZE_WITH_TEXTS = 200_000
#: Chunks at which memory is measured.
RESIDENT_SIZE = 100_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the requested measurements, smallest first."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["scale"]:
        from lab.bench import scale

        return scale.main(given[1:])
    if given[:1] == ["first"]:
        from lab.bench import first_answer

        return first_answer.main(given[1:])
    options = parser().parse_args(given)
    sizes = options.sizes or (SIZES[:1] if options.quick else SIZES)
    figures = Figures(files=1_000 if options.quick else 10_000)
    with tempfile.TemporaryDirectory(prefix="memoriter-bench-") as name:
        root = Path(name)
        if options.commands:
            figures.cold = cold.commands(root / "cold", repeats=9)
        elif not options.search:
            _all_but_search(figures, root, options)
        for size in () if options.commands else sizes:
            _search(figures, root, size, quick=options.quick)
    tables = markdown(figures)
    if options.out:
        put(options.out, "bench", tables)
    else:
        print(tables)
    return 0


def _all_but_search(figures: Figures, root: Path, options: argparse.Namespace) -> None:
    """Measure starts, the gateway and indexing."""
    _log("command line")
    figures.cold = cold.commands(root / "cold", repeats=3 if options.quick else 9)
    _log("mcp")
    figures.mcp = mcp.first_results(root / "mcp", repeats=3 if options.quick else 9)
    _log("gateway")
    questions, rounds = (20, 2) if options.quick else (200, 9)
    figures.gateway = gateway.warm_search(root / "gateway", questions=questions, rounds=rounds)
    _log(f"sync of {figures.files:,} unchanged files")
    figures.unchanged = syncing.unchanged(root / "unchanged", figures.files)
    _log("indexing")
    few, with_model = (25, 2) if options.quick else (500, 25)
    figures.indexed = syncing.indexing(root / "indexing", few, model=options.model, with_model=with_model)


def parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    options = argparse.ArgumentParser(prog="python -m lab.bench", description=__doc__)
    options.add_argument("--quick", action="store_true", help="Use small sizes for a quick check.")
    options.add_argument("--search", action="store_true", help="Measure only searches.")
    options.add_argument("--commands", action="store_true", help="Measure only the command line and hooks.")
    options.add_argument("--sizes", type=_sizes, default=(), help="Comma-separated numbers of chunks.")
    options.add_argument("--model", type=Path, help="Folder of the local model (default: the bundled one).")
    options.add_argument("--out", type=Path, help="Write the tables into this page, between its markers.")
    return options


def _search(figures: Figures, root: Path, size: int, *, quick: bool) -> None:
    _log(f"search at {size:,} chunks")
    words = size <= MAX_SIZE_WITH_TEXTS
    built = (build if words else build_vectors)(root / str(size), size, questions=20 if quick else 100)
    if words:
        figures.whole.append(searching.whole_searches(built))
    figures.timed += searching.searches(
        built, peer_questions=10 if quick or not words else 40, keywords=words
    )
    if size == RESIDENT_SIZE or quick:
        figures.resident[size] = searching.resident(built)


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
