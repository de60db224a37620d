"""What the programs have in common: the sets to run, overridden settings and the folder for caches."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.evals.run import sampled
from lab.evals.sets import OWN, EvalSet, find_sets, load_set

#: A second unit of a set that is measured anyway. It is saturated, so it runs only when it is named.
SESSIONS = "_session"


def choose(data: Path | None, names: Sequence[str], limit: int | None) -> list[EvalSet]:
    """The sets of the data folder and our own, in that order."""
    known = {**(find_sets(data) if data else {}), **find_sets(OWN)}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"unknown set: {', '.join(unknown)}; there are {', '.join(known)}")
    by_default = [name for name in known if not name.endswith(SESSIONS)]
    loaded = [load_set(name, *known[name]) for name in (names or by_default)]
    return [_cut(one, limit) for one in loaded] if limit else loaded


def overrides(pairs: Sequence[str]) -> Mapping[str, object]:
    """Settings given as `key=value`; a value is JSON where it can be read so, else text."""
    return {key: _value(text) for key, _, text in (pair.partition("=") for pair in pairs)}


def default_cache() -> Path:
    """A folder of the user's that may be deleted at any time."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memoriter-evals"


def _cut(one: EvalSet, limit: int) -> EvalSet:
    kept = [query for _, _, queries in one.groups() for query in sampled(queries, limit)]
    return EvalSet(one.name, one.items, tuple(kept))


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
