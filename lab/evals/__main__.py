"""`python -m lab.evals --data DIR`: score the sets in a folder, and the repository's own.

One run measures the modes, what each part contributes (`--ablate`), and weights that are chosen without the
conversation they are measured on (`--folds`). `--json` keeps the figures, from which `python -m lab.evals.retrieval`
writes the page.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lab.evals.figures import Figures, figures
from lab.evals.folds import calibrations, cross_validated, judged_by_others
from lab.evals.options import choose, default_cache, overrides
from lab.evals.report import markdown
from lab.evals.run import SetResult, Setup, run_sets
from lab.evals.variants import DEFAULT, MODES, PARTS, Variant, grid, without
from lab.page import put

#: Queries of each group for ablations and cross-validation.
SAMPLE = 40
#: Questions of another group that are asked of each group.
FOREIGN = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sets that were asked for and write their figures."""
    options = parser().parse_args(arguments)
    chosen = choose(options.data, options.sets, options.limit)
    if not chosen:
        print("no set found: give --data a folder that holds <set>/corpus.jsonl", file=sys.stderr)
        return 2
    start, setup = time.monotonic(), Setup(options.cache, overrides(options.set), jobs=options.jobs)
    tuned = grid(options.sample) if options.folds else []
    variants = [*(MODES[mode] for mode in options.modes)]
    variants += [without(part, options.sample) for part in options.ablate]
    results = list(
        run_sets([one.with_foreign(FOREIGN) for one in chosen], [*variants, *tuned], setup, tell=_say)
    )
    found = everything(results, tuned)
    found["run"] = {
        "jobs": options.jobs,
        "sample": options.sample,
        "limit": options.limit,
        "wall_s": round(time.monotonic() - start),
        "cpu_s": round(_cpu_s()),
        "settings": dict(setup.overrides),
    }
    _say(f"{found['run']['wall_s']} s, {found['run']['cpu_s']} s of CPU")
    if options.json:
        options.json.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", "utf-8")
    tables = markdown(found["sets"])
    if options.out:
        put(options.out, "evals", tables)
    else:
        print(tables)
    return 0


def everything(results: Sequence[SetResult], tuned: Sequence[Variant]) -> Figures:
    """All figures of a run as plain data."""
    results = judged_by_others(results)
    found: Figures = {"sets": [figures(result) for result in results]}
    found["calibration"] = calibrations(results)
    if tuned and any(result.outcomes.get(DEFAULT) for result in results):
        found["folds"] = cross_validated(results, [variant.name for variant in tuned])
    return found


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m lab.evals", description=__doc__.split("\n", 1)[0])
    made.add_argument("--data", type=Path, help="Folder with sets: <set>/corpus.jsonl and queries.jsonl.")
    made.add_argument("--sets", type=_names, default=[], help="Only these, separated by commas.")
    made.add_argument(
        "--modes", type=_known(MODES), default=list(MODES), help=f"Comma-separated: {', '.join(MODES)}."
    )
    made.add_argument(
        "--ablate",
        type=_known(PARTS),
        default=[],
        metavar="PARTS",
        help=f"Measure what these parts contribute: {', '.join(PARTS)}.",
    )
    made.add_argument("--folds", action="store_true", help="Cross-validate the weights by group.")
    made.add_argument(
        "--sample",
        type=int,
        default=SAMPLE,
        help=f"Queries of each group for --ablate and --folds (default: {SAMPLE}).",
    )
    made.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="Override a setting of memoriter."
    )
    made.add_argument("--limit", type=int, help="Ask at most N queries of each group, the same in every run.")
    made.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="Processes (default: one per core)."
    )
    made.add_argument("--out", type=Path, help="Write the Markdown tables into this page.")
    made.add_argument("--json", type=Path, help="Write all figures into this file.")
    made.add_argument("--cache", type=Path, default=default_cache(), help="Folder for notes and vectors.")
    return made


def _cpu_s() -> float:
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _known(table: Mapping[str, object]) -> Callable[[str], list[str]]:
    """Read names from a table, separated by commas. "all" stands for every one."""

    def read(text: str) -> list[str]:
        names = list(table) if text == "all" else _names(text)
        if unknown := [name for name in names if name not in table]:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(table)}")
        return names

    return read


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
