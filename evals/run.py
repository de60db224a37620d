"""Put a set through memoriter: write its items as notes, sync, ask every query in every mode.

Each group becomes a workspace of its own with one note per item, so a search cannot leave it. Workspaces and indexes
stay in the cache folder; a second run finds its files unchanged and embeds nothing. Scoring is not done here.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evals.metrics import expand
from evals.sets import EvalSet, Item, Query
from memoriter import Answer, Memory

if TYPE_CHECKING:
    from memoriter.embedding import Embedder

Overrides = Mapping[str, object]

MODES: Mapping[str, Overrides] = {
    "keyword": {"embedding.provider": "none"},
    "vector": {"search.vector_weight": 1.0, "search.text_weight": 0.0},
    "hybrid": {},
}

#: Hits requested for a ranking. This is enough for MRR.
DEPTH = 100
#: Queries of a group that are repeated with default settings to measure their time.
TIMED = 50

CHOOSES_MODEL = ("embedding.provider", "embedding.model", "embedding.model_path")

# A search must not look at the disk while it is timed.
QUIET: Overrides = {"search.sync_before": False}


@dataclass(frozen=True, slots=True)
class Setup:
    """The embedder and the settings to evaluate, and the folder for caches."""

    cache: Path
    overrides: Overrides
    #: Replaces the configured embedder.
    embedder: Embedder | None = None

    @property
    def key(self) -> str:
        """Names the folder whose indexes hold vectors of this embedder."""
        chosen = {key: str(self.overrides[key]) for key in CHOOSES_MODEL if key in self.overrides}
        chosen |= {"embedder": str(self.embedder.identity)} if self.embedder else {}
        return _digest(json.dumps(chosen, sort_keys=True))[:12] if chosen else "default"


@dataclass(frozen=True, slots=True)
class Build:
    """The cost of indexing a group."""

    items: int
    chunks: int
    index_bytes: int
    #: CPU time without a cache; None when vectors were in the cache and the first build was not measured.
    cpu_s: float | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of one query in one mode."""

    query: Query
    #: Item ids, best first, without a threshold.
    ranked: tuple[str, ...]
    #: The best hit's score.
    confidence: float
    #: Item ids from a search with default settings, if it was made.
    returned: tuple[str, ...] = ()
    #: CPU time of that search, including the embedding of the query.
    cpu_ms: float | None = None


@dataclass(frozen=True, slots=True)
class SetResult:
    """All outcomes of a set, by mode."""

    name: str
    outcomes: Mapping[str, Sequence[Outcome]]
    builds: Sequence[Build]
    model: str


def run_set(
    chosen: EvalSet, modes: Iterable[str], setup: Setup, *, tell: Callable[[str], None] = lambda _: None
) -> SetResult:
    """Index every group and ask every query in every mode."""
    outcomes: dict[str, list[Outcome]] = {mode: [] for mode in modes}
    builds, model = [], ""
    for group, items, queries in chosen.groups():
        tell(f"{chosen.name}/{group}: {len(items)} items, {len(queries)} queries")
        place = setup.cache / setup.key / chosen.name / _digest(group)[:12]
        by_path = write_notes(place / "workspace", items)
        build, model = _index(place, items, setup)
        builds.append(build)
        for mode, found in outcomes.items():
            found.extend(_ask(place, queries, by_path, mode, setup))
    return SetResult(chosen.name, outcomes, builds, model)


def write_notes(workspace: Path, items: Sequence[Item]) -> dict[str, str]:
    """One note per item; gives path → item id.

    Names come from a digest: were they in the corpus' order, an engine that breaks ties by name would profit from
    sets that list the answer first.
    """
    folder = workspace / "memory"
    folder.mkdir(parents=True, exist_ok=True)
    by_path, wanted = {}, set()
    for item in items:
        name = f"{_digest(item.id)[:16]}.md"
        wanted.add(name)
        by_path[f"memory/{name}"] = item.id
        text = f"---\ndate: {item.day}\n---\n{item.text}\n" if item.day else f"{item.text}\n"
        path, data = folder / name, text.encode("utf-8", "surrogatepass")
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)
    for path in folder.iterdir():
        if path.name not in wanted:
            path.unlink()
    return by_path


def _open(place: Path, setup: Setup, overrides: Overrides) -> Memory:
    # No settings of the user who runs this may change the figures.
    config = place / "config.yaml"
    config.touch()
    return Memory.open(
        place / "workspace",
        home=place / "home",
        config=config,
        overrides={**setup.overrides, **QUIET, **overrides},
        embedder=None if "embedding.provider" in overrides else setup.embedder,
    )


def _index(place: Path, items: Sequence[Item], setup: Setup) -> tuple[Build, str]:
    """Sync; what the build from nothing took is remembered beside it, because later ones find vectors in place."""
    notes, from_nothing = place / "build.json", not (place / "home").exists()
    start = time.process_time()
    with _open(place, setup, {}) as memory:
        report = memory.sync()
        status = memory.status()
    if report.degraded or report.pending:
        raise RuntimeError(f"the index of {place} is not complete: {report.degraded or report.pending}")
    if from_nothing:
        notes.write_text(json.dumps(time.process_time() - start))
    cpu_s = json.loads(notes.read_text()) if notes.exists() else None
    return Build(len(items), report.chunks, _bytes_below(place / "home"), cpu_s), status.model


def _ask(
    place: Path, queries: Sequence[Query], by_path: Mapping[str, str], mode: str, setup: Setup
) -> Iterator[Outcome]:
    with _open(place, setup, MODES[mode]) as memory:
        memory.search("warm-up: the model and the index are loaded once")
        for number, query in enumerate(queries):
            returned: tuple[str, ...] = ()
            cpu_ms = None
            if query.exact or number < TIMED:
                start = time.process_time()
                answer = memory.search(query.text)
                cpu_ms = 1000 * (time.process_time() - start)
                returned = _items(answer, by_path)
            deep = memory.search(query.text, max_results=DEPTH, min_score=0.0)
            confidence = deep.hits[0].score if deep.hits else 0.0
            yield Outcome(query, _items(deep, by_path), confidence, returned, cpu_ms)


def _items(answer: Answer, by_path: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(expand([by_path[hit.path]] for hit in answer.hits))


def _bytes_below(folder: Path) -> int:
    return sum(Path(root, name).stat().st_size for root, _, names in os.walk(folder) for name in names)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
