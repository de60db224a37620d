"""Many agents on one Postgres server, next to SQLite and plain pgvector on the same machine.

    python -m bench scale --url postgresql://postgres@localhost/bench --agents 1000 --chunks 200000

The role must bypass row-level security, because rows are copied into the tables of all agents. Texts and vectors are
synthetic. Times are CPU milliseconds: of this process, and of the server's process that answered it (Linux only).
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import struct
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from bench.built import CHUNKS_PER_DOCUMENT, DIMS, IDENTITY, GivenVectors
from bench.corpus import Writer
from bench.vectors import Matrix, synthetic
from evals.page import put
from memoriter.records import Chunk, Document, Query
from memoriter.search import Options, Searcher
from memoriter.store import Index, open_index
from memoriter.store.postgres import PostgresDatabase, open_server
from memoriter.store.postgres.index import PostgresIndex
from memoriter.store.postgres.keywords import BLOCK, tokens_of
from memoriter.store.postgres.schema import INDEX_TABLES, PARTITIONS
from memoriter.store.postgres.vectors import GRAPH_ROWS, graph_statements

TENANT = "bench"
#: The shares of all chunks that the largest agents have. The others have equal shares.
LARGE_SHARES = (0.2, 0.125)
#: Different texts. Each is used by several agents.
TEXTS = 20_000
TOP = 10


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent, and where its vectors start in the sequence of all."""

    name: str
    chunks: int
    first: int

    @property
    def in_graph(self) -> bool:
        """Whether the agent is large enough for the graph."""
        return self.chunks >= GRAPH_ROWS


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU milliseconds of one kind of work: in this process, in the server, and together."""

    work: str
    own_p50: float
    server_p50: float
    p50: float
    p95: float
    recall: float | None = None


def agents_of(count: int, chunks: int) -> list[Agent]:
    """Return agents of different sizes, the largest first."""
    large = [int(chunks * share) for share in LARGE_SHARES[: max(0, count - 1)]]
    small = max(1, (chunks - sum(large)) // (count - len(large)))
    sizes = [*large, *[small] * (count - len(large))]
    starts = itertools.accumulate([0, *sizes])
    return [
        Agent(f"agent-{n:05d}", size, start)
        for n, (size, start) in enumerate(zip(sizes, starts, strict=False))
    ]


# ---- loading ------------------------------------------------------------------------------------------------------


class Loader:
    """Copies rows into the tables, as syncs would leave them."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute("set search_path = memoriter, public")
        self._connection.execute("set synchronous_commit = off")
        writer = Writer(seed=1)
        self._texts = list(writer.texts(TEXTS))
        self._title = tokens_of(Chunk("", "memory/0.md", "memory", 1, 1, ""))[0]
        self._counts = [Counter(tokens_of(Chunk("", "", "memory", 1, 1, text))[1]) for text in self._texts]
        self._chance = np.random.default_rng(5)

    def load(self, agents: Sequence[Agent]) -> None:
        """Load every agent, one transaction for some of them."""
        vectors = _vectors(sum(agent.chunks for agent in agents))
        for group in _batched(agents, 50):
            with self._connection.transaction():
                for agent in group:
                    picks = self._chance.integers(0, len(self._texts), size=agent.chunks)
                    self._copy_chunks(agent, picks)
                    self._copy_terms(agent, picks)
                self._copy_vectors(group, vectors)

    def _copy_chunks(self, agent: Agent, picks: np.ndarray) -> None:
        lengths = [self._counts[pick].total() + len(self._title) for pick in picks]
        self._connection.execute(
            "insert into index_state(tenant, agent, index_name, next_row, chunks, tokens, in_graph)"
            " values(%s, %s, 'notes', %s, %s, %s, %s)",
            (TENANT, agent.name, agent.chunks + 1, agent.chunks, sum(lengths), agent.in_graph),
        )
        files = "copy index_files(tenant, agent, index_name, path, source, mtime_ns, size, sha256, indexed_at, state)"
        with self._connection.cursor().copy(f"{files} from stdin") as copy:
            for start in range(0, agent.chunks, CHUNKS_PER_DOCUMENT):
                path = _path(start)
                copy.write_row((TENANT, agent.name, "notes", path, "memory", 1, 1, "0" * 64, 0.0, ""))
        chunks = (
            "copy index_chunks(tenant, agent, index_name, rowid, start_line, end_line, length, hash, model, source,"
            " trust, id, path, headings, text) from stdin"
        )
        with self._connection.cursor().copy(chunks) as copy:
            for at, (pick, length) in enumerate(zip(picks, lengths, strict=True)):
                line = 2 * (at % CHUNKS_PER_DOCUMENT) + 1
                key = _key(agent.first + at)
                place = (at + 1, line, line, length, key, str(IDENTITY), "memory", "owner", key.hex()[:12])
                copy.write_row((TENANT, agent.name, "notes", *place, _path(at), "[]", self._texts[pick]))

    def _copy_terms(self, agent: Agent, picks: np.ndarray) -> None:
        lists: defaultdict[tuple[str, int], list[bytes]] = defaultdict(list)
        pack = struct.Struct("<BBBH").pack
        for row, pick in enumerate(picks, start=1):
            counts, block, at = self._counts[pick], row // BLOCK, row % BLOCK
            length = counts.total() + len(self._title)
            for term, count in counts.items():
                lists[term, block].append(pack(at, 0, min(count, 255), length))
            for term in self._title:
                lists[term, block].append(pack(at, 1, 0, length))
        statement = "copy index_terms(tenant, agent, index_name, term, block, list) from stdin"
        with self._connection.cursor().copy(statement) as copy:
            for (term, block), entries in lists.items():
                copy.write_row((TENANT, agent.name, "notes", term, block, b"".join(entries)))

    def _copy_vectors(self, group: Sequence[Agent], vectors: Iterator[Matrix]) -> None:
        statement = (
            "copy index_vectors(tenant, agent, index_name, dims, in_graph, hash, used_at, model, vector)"
            " from stdin with (format binary)"
        )
        with self._connection.cursor().copy(statement) as copy:
            copy.write(b"PGCOPY\n\xff\r\n\x00" + bytes(8))
            for agent in group:
                for number in range(agent.chunks):
                    copy.write(_vector_row(agent, _key(agent.first + number), next(vectors)))
            copy.write(b"\xff\xff")

    def build_graph(self) -> float:
        """Build the graph and refresh the statistics. Return the seconds for the graph."""
        started = time.perf_counter()
        for statement in graph_statements(DIMS):
            self._connection.execute(statement.encode())
        took = time.perf_counter() - started
        for name in INDEX_TABLES:
            self._connection.execute(f"vacuum analyze {name}".encode())
        return took

    def sizes(self) -> dict[str, int]:
        """Return the bytes of each table with its indexes, and of the graph."""
        found = {}
        for name in INDEX_TABLES:
            parts = [f"memoriter.{name}_{number}" for number in range(PARTITIONS)]
            found[name] = sum(self._number("select pg_total_relation_size(%s)", part) for part in parts)
        graph = self._number(
            "select coalesce(sum(pg_relation_size(oid)), 0)::bigint from pg_class where relname like %s",
            "index\\_vectors\\_graph\\_%",
        )
        return {**found, "index_vectors": found["index_vectors"] - graph, "graph": graph}

    def _number(self, statement: str, value: str) -> int:
        row = self._connection.execute(statement.encode(), (value,)).fetchone()
        assert row is not None
        return int(row[0])

    def plain_pgvector(self) -> Callable[[Agent, Matrix], object]:
        """Return a search as in the documentation of pgvector: one table, a filter by agent, and a limit."""
        execute = self._connection.execute
        execute("create table if not exists plain(id bigserial, agent text, embedding vector)")
        if not self._number("select count(*) from (select from plain where agent <> %s limit 1) p", ""):
            execute("insert into plain(agent, embedding) select agent, vector from index_vectors")
            execute("create index on plain(agent)")
            execute("vacuum analyze plain")
        statement = "select id from plain where agent = %s order by embedding <=> %s::vector limit %s"

        def search(agent: Agent, query: Matrix) -> object:
            text = f"[{','.join(map(repr, query.tolist()))}]"
            return execute(statement, (agent.name, text, 200)).fetchall()

        return search

    @property
    def server_process(self) -> int:
        """The process of the server that serves this connection."""
        return self._connection.info.backend_pid


def _vectors(count: int) -> Iterator[Matrix]:
    return (row for block in synthetic(count, DIMS, seed=1) for row in block)


def _key(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


def _path(row: int) -> str:
    return f"memory/{row // CHUNKS_PER_DOCUMENT}.md"


def _vector_row(agent: Agent, key: bytes, vector: Matrix) -> bytes:
    body = struct.pack(">hh", DIMS, 0) + vector.astype(">f4").tobytes()
    fields = (
        TENANT.encode(),
        agent.name.encode(),
        b"notes",
        struct.pack(">i", DIMS),
        struct.pack("?", agent.in_graph),
        key,
        struct.pack(">d", 0.0),
        str(IDENTITY).encode(),
        body,
    )
    return struct.pack(">h", len(fields)) + b"".join(struct.pack(">i", len(f)) + f for f in fields)


def _batched(items: Sequence[Agent], size: int) -> Iterator[Sequence[Agent]]:
    return (items[start : start + size] for start in range(0, len(items), size))


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
            return connection.raw.info.backend_pid

    def searches(self, agents: Sequence[Agent]) -> list[Callable[[], object]]:
        """Return one search for each question, each of the next agent."""
        pairs = zip(self.questions, itertools.cycle(agents), strict=False)
        return [searching(self.index(agent), self.embedder, text) for text, agent in pairs]

    def nearest(self, agents: Sequence[Agent]) -> list[Callable[[], object]]:
        """Return one vector search for each question."""
        pairs = zip(self.questions, itertools.cycle(agents), strict=False)
        return [_nearest(self.index(agent), self.embedder.embed_query(text)) for text, agent in pairs]

    def recall(self, agents: Sequence[Agent], total: int) -> float:
        """Return the share of the exact ten nearest that a search finds."""
        pairs = list(zip(self.questions, itertools.cycle(agents), strict=False))
        wanted = {agent.name: _matrix(agent, total) for agent in {agent for _, agent in pairs}}
        hits = 0
        for text, agent in pairs:
            query = self.embedder.embed_query(text)
            exact = np.argsort(-(wanted[agent.name] @ query))[:TOP] + 1
            found = self.index(agent).nearest(query, IDENTITY, limit=200)[:TOP]
            hits += len({row for row, _ in found} & set(exact.tolist()))
        return round(hits / (TOP * len(pairs)), 4)


def searching(index: Index, embedder: GivenVectors, text: str) -> Callable[[], object]:
    """Return a whole search without models."""
    searcher = Searcher(index, embedder, Options(min_score=0.0))
    return lambda: searcher.search(Query(text))


def _nearest(index: Index, query: Matrix) -> Callable[[], object]:
    return lambda: index.nearest(query, IDENTITY, limit=200)


def _matrix(agent: Agent, total: int) -> Matrix:
    rows = itertools.islice(_vectors(total), agent.first, agent.first + agent.chunks)
    return np.stack(list(rows))


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


def fill_sqlite(folder: Path, agent: Agent) -> Index:
    """Fill an SQLite index with as many chunks as the agent has."""
    index = open_index(folder)
    texts, vectors = Writer(seed=1).texts(agent.chunks), _vectors(agent.chunks)
    for start in range(0, agent.chunks, 5_000):
        with index.transaction():
            for at in range(start, min(start + 5_000, agent.chunks), CHUNKS_PER_DOCUMENT):
                count = min(CHUNKS_PER_DOCUMENT, agent.chunks - at)
                chunks = [
                    Chunk(f"{at + n}", _path(at), "memory", 2 * n + 1, 2 * n + 1, next(texts))
                    for n in range(count)
                ]
                index.save(IDENTITY, {chunk.hash: next(vectors) for chunk in chunks})
                index.replace(Document(_path(at), "memory", "", "0" * 64, 1, 1), chunks, identity=IDENTITY)
    index.refresh(IDENTITY)
    return index


# ---- the command --------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Load the agents unless they are there, measure, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench scale", description=__doc__)
    parser.add_argument("--url", required=True, help="URL of an empty database of a superuser.")
    parser.add_argument("--agents", type=int, default=1_000, help="Number of agents (default: 1000).")
    parser.add_argument("--chunks", type=int, default=200_000, help="Chunks of all agents (default: 200000).")
    parser.add_argument("--questions", type=int, default=100, help="Searches of each kind (default: 100).")
    parser.add_argument("--out", type=Path, help="Write the tables into this page, between its markers.")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="memoriter-scale-") as name:
        tables = run(options, Path(name))
    if options.out:
        put(options.out, "scale", tables)
    else:
        print(tables)
    return 0


def run(options: argparse.Namespace, folder: Path) -> str:
    """Measure everything and return the tables."""
    open_server(options.url, connections=1)  # creates the schema
    agents, loader = agents_of(options.agents, options.chunks), Loader(options.url)
    lines = []
    if not loader._number("select count(*) from memoriter.index_state where tenant = %s", TENANT):
        started = time.perf_counter()
        loader.load(agents)
        loaded = time.perf_counter() - started
        lines.append(
            f"Loading took {loaded:.0f} s, and building the graph of the large agents {loader.build_graph():.0f} s."
        )
    writer = Writer(seed=3)
    questions = [writer.question() for _ in range(options.questions)]
    costs = [
        *_postgres_costs(options, agents, folder, questions, loader),
        *_sqlite_costs(agents, folder, questions),
    ]
    return "\n\n".join(
        ("\n".join(lines), _cost_table(costs), _size_table(loader.sizes(), options.chunks))
    ).strip()


def _postgres_costs(
    options: argparse.Namespace,
    agents: Sequence[Agent],
    folder: Path,
    questions: Sequence[str],
    loader: Loader,
) -> Iterator[Cost]:
    measured = Measured(options.url, folder, questions)
    chance = np.random.default_rng(7)
    small = [agents[at] for at in chance.integers(len(LARGE_SHARES), len(agents), size=50)]
    plain = loader.plain_pgvector()
    for name, group in (("small", small), ("large", agents[:1])):
        label = f"{group[0].chunks:,} chunks"
        recall = measured.recall(group[:5], sum(agent.chunks for agent in agents))
        yield cost(f"Postgres, search, {label}", measured.searches(group), measured.process)
        near = cost(f"Postgres, vector leg, {label}", measured.nearest(group), measured.process)
        yield Cost(near.work, near.own_p50, near.server_p50, near.p50, near.p95, recall)
        pairs = zip(questions, itertools.cycle(group), strict=False)
        calls = [
            (lambda agent=agent, text=text: plain(agent, measured.embedder.embed_query(text)))
            for text, agent in pairs
        ]
        yield cost(f"plain pgvector, exact, {label}", calls, loader.server_process)
        texts = Writer(seed=len(name) + options.chunks).texts(10**6)
        adds = [remembering(measured.index(agent), texts) for agent in (*group, *group)][:60]
        yield cost(f"Postgres, add a chunk, {label}", adds if len(adds) > 10 else adds * 20, measured.process)


def _sqlite_costs(agents: Sequence[Agent], folder: Path, questions: Sequence[str]) -> Iterator[Cost]:
    embedder = GivenVectors(questions)
    for agent in (agents[-1], agents[0]):
        with ExitStack() as stack:
            index: Any = stack.enter_context(closing(fill_sqlite(folder / f"sqlite-{agent.chunks}", agent)))
            label = f"{agent.chunks:,} chunks"
            searches = [searching(index, embedder, text) for text in questions]
            yield cost(f"SQLite, search, {label}", searches, None)
            near = [_nearest(index, embedder.embed_query(text)) for text in questions]
            yield cost(f"SQLite, vector leg, {label}", near, None)
            yield cost(
                f"SQLite, add a chunk, {label}", [remembering(index, Writer(seed=9).texts(10**6))] * 60, None
            )


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
