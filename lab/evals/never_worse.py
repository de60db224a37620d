"""Is the default ever worse than less: `python -m lab.evals.never_worse --data DIR [--sets NAMES] [--limit N]`.

For each set, and for each language of its questions, one line: nDCG@10 of the default, of the search without the
reranker, of the better of the two legs alone, and of the share of the reranker's weight that is best for all other
sets. The last column says how far the default is behind the search without the reranker and the better leg.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from lab.evals.figures import scores
from lab.evals.folds import MEASURE
from lab.evals.options import choose, default_cache, overrides
from lab.evals.run import SetResult, Setup, run_sets
from lab.evals.sets import language_of
from lab.evals.variants import DEFAULT, MODES, Variant, without

#: Shares of the reranker's weight beside the whole, among which every set gets the one that is best for the others.
SHARES = (0.4, 0.7, 1.5)
#: A difference that counts, in points.
MARGIN = 0.3
#: Set and language; "all" stands for every language.
Part = tuple[str, str]
#: By part: the figures of the questions.
Table = Mapping[Part, Sequence[float]]


def variants() -> dict[str, Variant]:
    """Return the ways to search by their column."""
    shared = (Variant(f"share {share:g}", options={"rerank_share": share}) for share in SHARES)
    return {one.name: one for one in (MODES[DEFAULT], without("rerank", None), *MODES.values(), *shared)}


def table_of(results: Sequence[SetResult], variant: str) -> Table:
    """Return the figures of one variant in points."""
    found = defaultdict[Part, list[float]](list)
    for result in results:
        outcomes = result.outcomes[variant]
        language = {outcome.query.id: language_of(outcome.query.text) for outcome in outcomes}
        for query, row in scores(outcomes).items():
            for part in ("all", language[query]):
                found[result.name, part].append(100 * row[MEASURE])
    return found


def lines(results: Sequence[SetResult]) -> Iterator[str]:
    """Yield the table."""
    tables = {name: table_of(results, name) for name in variants()}
    shares = {DEFAULT: 1.0} | {f"share {share:g}": share for share in SHARES}
    yield "| set | language | questions | default | no reranker | better leg | best share for the others | behind |"
    yield "| --- " * 8 + "|"
    for part in tables[DEFAULT]:
        figure = {name: fmean(table[part]) for name, table in tables.items()}
        other = max(shares, key=lambda name: _mean_of_others(tables[name], part[0]))
        leg = max(figure["keyword"], figure["vector"])
        behind = max(figure["without rerank"], leg) - figure[DEFAULT]
        mark = f"**{behind:.1f}**" if behind > MARGIN else f"{max(0.0, behind):.1f}"
        columns = [f"{figure[DEFAULT]:.1f}", f"{figure['without rerank']:.1f}", f"{leg:.1f}"]
        columns += [f"{figure[other]:.1f} ({shares[other]:g})", mark]
        yield f"| {part[0]} | {part[1]} | {len(tables[DEFAULT][part])} | {' | '.join(columns)} |"


def _mean_of_others(table: Table, name: str) -> float:
    """Return the mean over all other sets."""
    others = [fmean(values) for (other, part), values in table.items() if part == "all" and other != name]
    return fmean(others) if others else 0.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m lab.evals.never_worse", description=__doc__)
    parser.add_argument("--data", type=Path, help="Folder with sets: <set>/corpus.jsonl and queries.jsonl.")
    parser.add_argument("--sets", type=lambda text: text.split(","), default=[], help="Only these.")
    parser.add_argument("--limit", type=int, help="Ask at most N queries of each group.")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="Override a setting.")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="Processes.")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="Folder for notes and vectors.")
    options = parser.parse_args()
    chosen = choose(options.data, options.sets, options.limit)
    setup = Setup(options.cache, overrides(options.set), jobs=options.jobs)
    ways = list(variants().values())
    results = list(run_sets(chosen, ways, setup, tell=lambda line: print(line, file=sys.stderr, flush=True)))
    print(*lines(results), sep="\n")


if __name__ == "__main__":
    main()
