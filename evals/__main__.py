"""`python -m evals --data DIR`: score the sets in a folder, and the repository's own, in every mode."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from evals.page import put
from evals.report import Figures, figures, markdown
from evals.run import MODES, Setup, run_set
from evals.sets import OWN, EvalSet, find_sets, load_set


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sets that were asked for and write their figures."""
    options = parser().parse_args(arguments)
    setup = Setup(options.cache, overrides(options.set))
    chosen = choose(options.data, options.sets, options.limit)
    if not chosen:
        print("no set found: give --data a folder that holds <set>/corpus.jsonl", file=sys.stderr)
        return 2
    found: list[Figures] = []
    for one in chosen:
        found.append(figures(run_set(one, options.modes, setup, tell=_say)))
        if options.json:
            options.json.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n")
    tables = markdown(found)
    if options.out:
        put(options.out, "evals", tables)
    else:
        print(tables)
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m evals", description=__doc__)
    made.add_argument("--data", type=Path, help="folder with sets: <set>/corpus.jsonl and queries.jsonl")
    made.add_argument("--sets", type=_names, default=[], help="only these, separated by commas")
    made.add_argument("--modes", type=_modes, default=list(MODES), help=f"of {', '.join(MODES)}")
    made.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of memoriter"
    )
    made.add_argument("--limit", type=int, help="only the first N queries of each group")
    made.add_argument("--out", type=Path, help="write the Markdown tables here")
    made.add_argument("--json", type=Path, help="write all figures here")
    made.add_argument("--cache", type=Path, default=default_cache(), help="where workspaces and vectors stay")
    return made


def choose(data: Path | None, names: Sequence[str], limit: int | None) -> list[EvalSet]:
    """The sets of the data folder and our own, in that order."""
    known = {**(find_sets(data) if data else {}), **find_sets(OWN)}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"unknown set: {', '.join(unknown)}; there are {', '.join(known)}")
    loaded = [load_set(name, *known[name]) for name in (names or known)]
    return [_cut(one, limit) for one in loaded] if limit else loaded


def overrides(pairs: Sequence[str]) -> Mapping[str, object]:
    """Settings given as `key=value`; a value is JSON where it can be read so, else text."""
    return {key: _value(text) for key, _, text in (pair.partition("=") for pair in pairs)}


def default_cache() -> Path:
    """A folder of the user's that may be deleted at any time."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memoriter-evals"


def _cut(one: EvalSet, limit: int) -> EvalSet:
    kept = [query for _, _, queries in one.groups() for query in queries[:limit]]
    return EvalSet(one.name, one.items, tuple(kept))


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _modes(text: str) -> list[str]:
    names = _names(text)
    unknown = [name for name in names if name not in MODES]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown mode {', '.join(unknown)}; there are {', '.join(MODES)}")
    return names


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
