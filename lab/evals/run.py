"""Put sets through memoriter: write their items as notes, sync, ask every query in every variant.

Each group becomes a workspace of its own with one note per item, so a search cannot leave it. An index is built from
nothing in every run; only notes and vectors stay in the cache folder. Scoring is not done here.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.evals.metrics import expand
from lab.evals.sets import EvalSet, Item, Query
from lab.evals.variants import Overrides, Variant
from lab.evals.vectors import KeptVectors
from memoriter import Answer, Memory
from memoriter.search.rerank import Reranker
from memoriter.search.shape import features_of

if TYPE_CHECKING:
    from memoriter.embedding import Embedder

Tell = Callable[[str], None]

#: Hits requested for a ranking. This is enough for MRR.
DEPTH = 100
#: Hits of a query whose confidence is compared with the labels: as many as a search returns by default.
JUDGED = 6
#: Queries of a group that are repeated with default settings to measure their time.
TIMED = 20
#: What a query costs, in characters of text to embed. It only decides which groups start first.
QUERY_COST = 600
#: Pairs of query and text that the reranker remembers between variants.
REMEMBERED_PAIRS = 100_000
#: The first search of a memory loads the models and the index.
WARM_UP = "warm-up: the models and the index are loaded once"

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
    #: Processes that work at the same time, one thread each.
    jobs: int = 1

    @property
    def key(self) -> str:
        """Names the folder whose workspaces belong to this embedder."""
        chosen = {key: str(self.overrides[key]) for key in CHOOSES_MODEL if key in self.overrides}
        chosen |= {"embedder": str(self.embedder.identity)} if self.embedder else {}
        return _digest(json.dumps(chosen, sort_keys=True))[:12] if chosen else "default"


@dataclass(frozen=True, slots=True)
class Build:
    """The cost of indexing a group."""

    items: int
    chunks: int
    index_bytes: int
    #: CPU time without a cache, embedding included.
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of one query in one variant."""

    query: Query
    #: Item ids, best first, without a threshold.
    ranked: tuple[str, ...]
    #: The highest confidence of the first hits.
    confidence: float
    #: Item ids from a search with default settings, if it was made.
    returned: tuple[str, ...] = ()
    #: CPU time of that search, including the embedding of the query.
    cpu_ms: float | None = None
    #: The confidence of each of the first hits, and whether it is relevant.
    judged: tuple[tuple[float, bool], ...] = ()
    #: What the confidence of each of these hits was computed from.
    features: tuple[Mapping[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The outcomes of one group, by variant."""

    outcomes: Mapping[str, Sequence[Outcome]]
    build: Build
    model: str
    cpu_s: float


@dataclass(frozen=True, slots=True)
class SetResult:
    """All outcomes of a set, by variant."""

    name: str
    outcomes: Mapping[str, Sequence[Outcome]]
    builds: Sequence[Build]
    model: str


@dataclass(frozen=True, slots=True)
class Job:
    """The work of one process at a time: one group of a set."""

    name: str
    group: str
    items: Sequence[Item]
    queries: Sequence[Query]
    variants: Sequence[Variant]
    setup: Setup

    @property
    def cost(self) -> int:
        asked = sum(len(sampled(self.queries, variant.sample)) for variant in self.variants)
        return sum(len(item.text) for item in self.items) + QUERY_COST * asked


def run_sets(
    sets: Sequence[EvalSet], variants: Sequence[Variant], setup: Setup, *, tell: Tell = lambda _: None
) -> Iterator[SetResult]:
    """Yield the result of each set, in the given order, as soon as its groups are complete."""
    jobs = [
        Job(chosen.name, group, items, queries, variants, setup)
        for chosen in sets
        for group, items, queries in chosen.groups()
    ]
    waiting = {chosen.name: [job for job in jobs if job.name == chosen.name] for chosen in sets}
    finished: dict[tuple[str, str], GroupResult] = {}
    order = list(waiting)
    for job, result in _run(jobs, setup):
        finished[job.name, job.group] = result
        asked = f"{len(job.items)} items, {len(job.queries)} queries"
        tell(f"{job.name}/{job.group}: {asked}, {result.cpu_s:.0f} s of CPU")
        while order and all((order[0], job.group) in finished for job in waiting[order[0]]):
            name = order.pop(0)
            yield _joined(name, [finished[name, job.group] for job in waiting[name]], variants)


def _run(jobs: Sequence[Job], setup: Setup) -> Iterator[tuple[Job, GroupResult]]:
    """Run the jobs, the longest first, so that the processes finish at about the same time."""
    longest_first = sorted(jobs, key=lambda job: -job.cost)
    if setup.jobs == 1 or setup.embedder is not None:
        yield from ((job, run_group(job)) for job in jobs)
        return
    with ProcessPoolExecutor(setup.jobs, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(run_group, job): job for job in longest_first}
        for future in as_completed(running):
            yield running[future], future.result()


def _joined(name: str, groups: Sequence[GroupResult], variants: Sequence[Variant]) -> SetResult:
    outcomes = {
        variant.name: [outcome for group in groups for outcome in group.outcomes[variant.name]]
        for variant in variants
    }
    return SetResult(name, outcomes, [group.build for group in groups], groups[0].model if groups else "")


def run_group(job: Job) -> GroupResult:
    """Index one group and ask its queries in every variant."""
    start = time.process_time()
    place = job.setup.cache / job.setup.key / job.name / _digest(job.group)[:12]
    by_path = write_notes(place / "workspace", job.items)
    with tempfile.TemporaryDirectory(prefix="home-", dir=place) as home:
        opener = Opener(place / "workspace", Path(home), job.setup)
        build, model = _index(opener, job.items)
        outcomes = {
            variant.name: list(_ask(opener, sampled(job.queries, variant.sample), by_path, variant))
            for variant in job.variants
        }
    return GroupResult(outcomes, build, model, time.process_time() - start)


def sampled(queries: Sequence[Query], most: int | None) -> Sequence[Query]:
    """Return at most this many queries, the same in every run and not the first ones of a list."""
    if most is None or len(queries) <= most:
        return queries
    chosen = {query.id for query in sorted(queries, key=lambda query: _digest(query.id))[:most]}
    return [query for query in queries if query.id in chosen]


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


class Opener:
    """Opens the memory of one group in different variants, with one embedder for all of them."""

    def __init__(self, workspace: Path, home: Path, setup: Setup) -> None:
        self.workspace = workspace
        self.home = home
        self._setup = setup
        # No settings of the user who runs this may change the figures.
        self._config = home / "config.yaml"
        self._config.touch()
        embedder = setup.embedder or self._configured()
        self.vectors = KeptVectors(embedder, setup.cache / "vectors") if embedder else None

    def open(self, variant: Variant) -> Memory:
        """Open the memory. It must be closed."""
        overrides = {**self._setup.overrides, **QUIET, **variant.settings}
        without_vectors = overrides.get("embedding.provider") == "none"
        memory = Memory.open(
            self.workspace,
            home=self.home,
            config=self._config,
            overrides=overrides,
            embedder=None if without_vectors else self.vectors,
        )
        searcher: Any = memory._parts.engine.searcher  # type: ignore[attr-defined]
        searcher.options = replace(searcher.options, **variant.options)
        if searcher.reranker is not None:
            searcher.reranker = _reader(remembers=True)
        return memory

    @contextmanager
    def timed(self, memory: Memory, text: str) -> Iterator[None]:
        """Forget what earlier variants computed for this query, as if it were asked for the first time."""
        searcher: Any = memory._parts.engine.searcher  # type: ignore[attr-defined]
        usual = searcher.reranker
        if self.vectors:
            self.vectors.forget_query(text)
        if usual is not None:
            searcher.reranker = _reader(remembers=False)
        yield
        searcher.reranker = usual

    def _configured(self) -> Embedder | None:
        from memoriter.build import embedder_spec
        from memoriter.config import load
        from memoriter.embedding import resolve

        settings = load(
            config=self._config,
            arguments={"workspace": self.workspace, "home": self.home, **self._setup.overrides},
        )
        threads = 1 if self._setup.jobs > 1 else 0
        return resolve(replace(embedder_spec(settings), threads=threads)).embedder


@cache
def _reader(*, remembers: bool) -> Reranker:
    """A reranker without a time limit, so that no figure depends on the load of the machine.

    The one that remembers is for variants, which mostly read the same pairs; the other is for measuring time.
    """
    return Reranker(budget_s=math.inf, cached_pairs=REMEMBERED_PAIRS if remembers else 0)


def _index(opener: Opener, items: Sequence[Item]) -> tuple[Build, str]:
    """Sync into an empty home, and add what the vectors of the cache took when they were computed."""
    vectors = opener.vectors
    with opener.open(Variant("index")) as memory:
        start, recorded = time.process_time(), vectors.recorded_s if vectors else 0.0
        report = memory.sync()
        cpu_s = time.process_time() - start + (vectors.recorded_s - recorded if vectors else 0.0)
        status = memory.status()
    if report.degraded or report.pending:
        raise RuntimeError(
            f"the index of {opener.workspace} is incomplete: {report.degraded or report.pending}"
        )
    return Build(len(items), report.chunks, _bytes_below(opener.home), cpu_s), status.model


def _ask(
    opener: Opener, queries: Sequence[Query], by_path: Mapping[str, str], variant: Variant
) -> Iterator[Outcome]:
    with opener.open(variant) as memory:
        memory.search(WARM_UP)
        for _ in range(2):
            with opener.timed(memory, WARM_UP):
                memory.search(WARM_UP)
        for number, query in enumerate(queries):
            returned: tuple[str, ...] = ()
            cpu_ms = None
            if query.exact or number < TIMED:
                with opener.timed(memory, query.text):
                    start = time.process_time()
                    answer = memory.search(query.text)
                    cpu_ms = 1000 * (time.process_time() - start)
                returned = _items(answer, by_path) if answer.relevant else ()
            deep = memory.search(query.text, max_results=DEPTH, min_score=0.0)
            judged = _judged(deep, query, by_path)
            confidence = max((sure for sure, _ in judged), default=0.0)
            ranked = _items(deep, by_path)
            yield Outcome(query, ranked, confidence, returned, cpu_ms, judged, _features(deep))


def _judged(answer: Answer, query: Query, by_path: Mapping[str, str]) -> tuple[tuple[float, bool], ...]:
    relevant = set(query.relevant)
    return tuple((hit.confidence or 0.0, by_path[hit.path] in relevant) for hit in answer.hits[:JUDGED])


def _features(answer: Answer) -> tuple[Mapping[str, float], ...]:
    best = max((hit.score for hit in answer.hits), default=0.0)
    return tuple(features_of(hit.explain, best - hit.score) for hit in answer.hits[:JUDGED])


def _items(answer: Answer, by_path: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(expand([by_path[hit.path]] for hit in answer.hits))


def _bytes_below(folder: Path) -> int:
    return sum(Path(root, name).stat().st_size for root, _, names in os.walk(folder) for name in names)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
