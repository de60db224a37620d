"""Many agents on one Postgres server, next to SQLite and plain pgvector on the same machine; one agent on SQLite.

    python -m lab.bench scale --url postgresql://postgres@localhost/bench --agents 1000 --chunks 1000000
    python -m lab.bench scale --sqlite 1000000 --folder /data/sqlite

The role must bypass row-level security, because rows are copied into the tables of all agents. A server that has the
agents already is measured as it is. Texts and vectors are synthetic. Times are CPU milliseconds: of this process or a
gateway, and of the server's processes, so the server must run on this machine (Linux only).
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from lab.bench import gateways, one_agent
from lab.bench.built import IDENTITY, GivenVectors
from lab.bench.corpus import Writer
from lab.bench.loading import LARGE_SHARES, TENANT, Agent, Loader, agents_of, matrices_of
from lab.bench.vectors import Matrix
from memoriter.extensions.postgres import vector_copy
from memoriter.extensions.postgres.database import PostgresDatabase
from memoriter.extensions.postgres.index import PostgresIndex
from memoriter.extensions.postgres.server import open_server
from memoriter.records import Chunk, Document, Query
from memoriter.search import Options, Searcher
from memoriter.store import Index, open_index

TOP = 10
#: Agents with few chunks that are measured.
SMALL_AGENTS = 50


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU milliseconds of one kind of work: in this process, in the server, and together."""

    work: str
    own_p50: float
    server_p50: float
    p50: float
    p95: float
    recall: float | None = None


# ---- measuring ----------------------------------------------------------------------------------------------------


def server_ms(process: int) -> float:
    """Return the CPU milliseconds of a process so far."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e6


def cost(work: str, calls: Sequence[Callable[[], object]], process: int | None) -> Cost:
    """Run each call once, after a warm-up with some of them."""
    for call in calls[:6]:  # the server plans a statement a few times before it keeps the plan
        call()
    rows = []
    for call in calls:
        own, server = time.process_time(), server_ms(process) if process else 0.0
        call()
        rows.append((1000 * (time.process_time() - own), (server_ms(process) if process else 0.0) - server))
    own_ms, server_part = np.array(rows).T
    both = own_ms + server_part
    own_p50, server_p50, p50 = (round(float(np.median(part)), 2) for part in (own_ms, server_part, both))
    return Cost(work, own_p50, server_p50, p50, round(float(np.percentile(both, 95)), 2))


class Measured:
    """The indexes of some agents over one connection."""

    def __init__(self, url: str, folder: Path, questions: Sequence[str]) -> None:
        self._server = open_server(url, connections=1)
        self._folder = folder
        self.questions = questions
        self.embedder = GivenVectors(questions)
        self._open: dict[str, PostgresIndex] = {}

    def index(self, agent: Agent) -> PostgresIndex:
        """Return the index of an agent."""
        if agent.name not in self._open:
            database = PostgresDatabase(self._server, agent=agent.name, tenant=TENANT, area="notes")
            self._open[agent.name] = PostgresIndex(database, "notes", self._folder / agent.name)
        return self._open[agent.name]

    @property
    def process(self) -> int:
        """The process of the server that serves this connection."""
        index = next(iter(self._open.values()))
        with index._database.read() as connection:
            return int(connection.execute("select pg_backend_pid()")[0][0])

    def searches(self, agents: Sequence[Agent]) -> list[Callable[[], object]]:
        """Return one search for each question, each of the next agent."""
        pairs = zip(self.questions, itertools.cycle(agents), strict=False)
        return [searching(self.index(agent), self.embedder, text) for text, agent in pairs]

    def nearest(self, agents: Sequence[Agent]) -> list[Callable[[], object]]:
        """Return one vector search for each question."""
        pairs = zip(self.questions, itertools.cycle(agents), strict=False)
        return [_nearest(self.index(agent), self.embedder.embed_query(text)) for text, agent in pairs]

    def copy_vectors(self, agents: Sequence[Agent]) -> None:
        """Copy the vectors into this process, as it does after some searches."""
        for agent in agents:
            self.index(agent).copy_vectors(IDENTITY)

    def recall(self, agents: Sequence[Agent]) -> float:
        """Return the share of the exact ten nearest that a search finds."""
        pairs = list(zip(self.questions, itertools.cycle(agents), strict=False))
        exact_of = matrices_of(agents)
        hits = 0
        for text, agent in pairs:
            query = self.embedder.embed_query(text)
            exact = np.argsort(-(exact_of[agent.name] @ query))[:TOP] + 1
            found = self.index(agent).nearest(query, IDENTITY, limit=200)[:TOP]
            hits += len({row for row, _ in found} & set(exact.tolist()))
        return round(hits / (TOP * len(pairs)), 4)


def searching(index: Index, embedder: GivenVectors, text: str) -> Callable[[], object]:
    """Return a whole search without models."""
    searcher = Searcher(index, embedder, Options(min_score=0.0))
    return lambda: searcher.search(Query(text))


def _nearest(index: Index, query: Matrix) -> Callable[[], object]:
    return lambda: index.nearest(query, IDENTITY, limit=200)


def remembering(index: Index, texts: Iterator[str]) -> Callable[[], object]:
    """Return the work to add a document of one chunk, with its vector."""

    vector = GivenVectors(()).embed([""])[0]

    def add() -> None:
        text = next(texts)
        path = f"entries/{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        chunk = Chunk(path, path, "memory", 1, 1, text)
        document = Document(path, "memory", text, chunk.hash, 1, len(text))
        with index.transaction():
            index.save(IDENTITY, {chunk.hash: vector})
            index.replace(document, [chunk], identity=IDENTITY)

    return add


# ---- the command --------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is requested, and print the tables."""
    options = _parser().parse_args(arguments)
    tables = []
    with tempfile.TemporaryDirectory(prefix="memoriter-scale-", dir=options.folder) as name:
        folder = Path(name)
        if options.url and options.curve:
            tables.append(_curve(options, folder))
        elif options.url and not options.only_gateways:
            tables.append(_many_agents(options, folder))
        if options.url and not options.curve:
            tables.append(
                gateways.measure(
                    options.url,
                    folder,
                    count=options.questions,
                    seconds=options.seconds,
                    cores=options.gateway_cores,
                )
            )
        if options.sqlite:
            figures = [
                one_agent.measure(_kept(options.folder or folder, size), size, options.questions)
                for size in options.sqlite
            ]
            tables.append(one_agent.table(figures))
    print("\n\n".join(tables))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab.bench scale", description=__doc__)
    parser.add_argument(
        "--url", help="URL of a database for a superuser: empty, or loaded by an earlier run."
    )
    parser.add_argument("--agents", type=int, default=1_000, help="Number of agents (default: 1000).")
    parser.add_argument("--chunks", type=int, default=200_000, help="Chunks of all agents (default: 200000).")
    parser.add_argument("--questions", type=int, default=100, help="Searches of each kind (default: 100).")
    parser.add_argument(
        "--only-gateways", action="store_true", help="Measure only the gateways on the server."
    )
    parser.add_argument(
        "--curve",
        type=int,
        nargs="+",
        default=(),
        help="Measure searches of agents with these numbers of chunks.",
    )
    parser.add_argument(
        "--without-graph", action="store_true", help="Build no graph for the agents of --curve."
    )
    parser.add_argument("--seconds", type=float, default=30.0, help="Time of each throughput (default: 30).")
    parser.add_argument(
        "--gateway-cores",
        type=float,
        default=0.25,
        help="Share of a core for each gateway in throughputs (default: 0.25). Needs root.",
    )
    parser.add_argument("--sqlite", type=int, nargs="+", default=(), help="Chunks of one agent on SQLite.")
    parser.add_argument(
        "--folder", type=Path, help="Keep the SQLite indexes here, and use those of earlier runs."
    )
    return parser


def _kept(folder: Path, size: int) -> Path:
    kept = folder / f"sqlite-{size}"
    kept.mkdir(exist_ok=True)
    return kept


def _many_agents(options: argparse.Namespace, folder: Path) -> str:
    open_server(options.url, connections=1)  # creates the schema
    agents, loader = agents_of(options.agents, options.chunks), Loader(options.url)
    loading = ""
    if not loader.is_loaded(agents):
        loaded, graph = loader.load(agents), loader.build_graph(agents)
        loading = f"Loading took {loaded:.0f} s, and building the graph of the large agents {graph:.0f} s."
    writer = Writer(seed=3)
    questions = [writer.question() for _ in range(options.questions)]
    groups = (agents[len(LARGE_SHARES) :][:SMALL_AGENTS], agents[:1])
    costs = [
        *_postgres_costs(groups, Measured(options.url, folder, questions), loader),
        *_sqlite_costs([group[0] for group in groups], folder, questions),
    ]
    return "\n\n".join((loading, _cost_table(costs), _size_table(loader.sizes(), options.chunks))).strip()


def _curve(options: argparse.Namespace, folder: Path) -> str:
    """Return what a search costs in agents of different sizes, in a database that is full of others."""
    open_server(options.url, connections=1)  # creates the schema
    graph = not options.without_graph
    agents = agents_of(options.agents, options.chunks, options.curve, graph=graph)
    loader = Loader(options.url)
    if not loader.is_loaded(agents):
        loader.load(agents)
        loader.build_graph(agents)
    writer = Writer(seed=3)
    questions = [writer.question() for _ in range(options.questions)]
    measured, costs = Measured(options.url, folder, questions), list[Cost]()
    for agent in agents[: len(options.curve)]:
        label, searches = f"{agent.chunks:,} chunks", measured.searches([agent])
        first = searches[: vector_copy.SEARCHES - 6]  # before the vectors are copied
        costs.append(cost(f"Postgres, first searches, {label}", first, measured.process))
        costs.append(cost(f"Postgres, search, {label}", searches, measured.process))
        with closing(open_index(folder / f"sqlite-of-{agent.name}")) as index:
            one_agent.fill(index, agent.chunks)
            index.refresh(IDENTITY)
            calls = [searching(index, measured.embedder, text) for text in questions]
            costs.append(cost(f"SQLite, search, {label}", calls, None))
    return _cost_table(costs)


def _postgres_costs(groups: Sequence[Sequence[Agent]], measured: Measured, loader: Loader) -> Iterator[Cost]:
    plain = loader.plain_pgvector([agent for group in groups for agent in group])
    for group in groups:
        label = f"{group[0].chunks:,} chunks"
        yield cost(f"Postgres, search, {label}", measured.searches(group), measured.process)
        near = cost(f"Postgres, vector leg, {label}", measured.nearest(group), measured.process)
        yield replace(near, recall=measured.recall(group[:5]))
        if group[0].in_graph:
            measured.copy_vectors(group)
            yield cost(f"Postgres, search, copied, {label}", measured.searches(group), measured.process)
            near = cost(f"Postgres, vector leg, copied, {label}", measured.nearest(group), measured.process)
            yield replace(near, recall=measured.recall(group[:5]))
        pairs = zip(measured.questions, itertools.cycle(group), strict=False)
        calls = [partial(plain, agent, measured.embedder.embed_query(text)) for text, agent in pairs]
        yield cost(f"plain pgvector, exact, {label}", calls, loader.server_process)
        texts = Writer(seed=time.time_ns() % 2**32).texts(10**6)
        adds = [remembering(measured.index(agent), texts) for agent in group]
        yield cost(
            f"Postgres, add a chunk, {label}",
            list(itertools.islice(itertools.cycle(adds), 60)),
            measured.process,
        )


def _sqlite_costs(agents: Sequence[Agent], folder: Path, questions: Sequence[str]) -> Iterator[Cost]:
    embedder = GivenVectors(questions)
    for agent in agents:
        with closing(open_index(folder / f"sqlite-of-{agent.name}")) as index:
            one_agent.fill(index, agent.chunks)
            index.refresh(IDENTITY)
            label = f"{agent.chunks:,} chunks"
            yield cost(
                f"SQLite, search, {label}", [searching(index, embedder, text) for text in questions], None
            )
            near = [_nearest(index, embedder.embed_query(text)) for text in questions]
            yield cost(f"SQLite, vector leg, {label}", near, None)
            adds = [remembering(index, Writer(seed=9).texts(10**6))] * 60
            yield cost(f"SQLite, add a chunk, {label}", adds, None)


def _cost_table(costs: Sequence[Cost]) -> str:
    head = "| work | p50 | p95 | of it client | of it server | recall@10 |\n|---|--:|--:|--:|--:|--:|"
    rows = (
        f"| {c.work} | {c.p50} | {c.p95} | {c.own_p50} | {c.server_p50} | {c.recall if c.recall is not None else ''} |"
        for c in costs
    )
    return "\n".join((head, *rows))


def _size_table(sizes: dict[str, int], chunks: int) -> str:
    rows = [f"| {name} | {size / 1e6:.0f} | {size / chunks:.0f} |" for name, size in sizes.items()]
    total = sum(sizes.values())
    rows.append(f"| together | {total / 1e6:.0f} | {total / chunks:.0f} |")
    return "\n".join(("| table with its indexes | MB | bytes per chunk |", "|---|--:|--:|", *rows))
