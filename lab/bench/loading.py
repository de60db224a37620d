"""Rows of many agents, copied into the tables of a Postgres server as syncs would leave them.

Adding a million chunks through the product takes hours on a small machine. The rows are the same. Texts repeat between
agents, and vectors are synthetic.
"""

from __future__ import annotations

import hashlib
import itertools
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import psycopg

from lab.bench.built import CHUNKS_PER_DOCUMENT, DIMS, IDENTITY
from lab.bench.corpus import Writer
from lab.bench.vectors import Matrix, synthetic
from memoriter.extensions.postgres.keywords import BLOCK, ENTRY, tokens_of
from memoriter.extensions.postgres.schema import INDEX_TABLES, PARTITIONS
from memoriter.extensions.postgres.vectors import GRAPH_ROWS, graph_statements
from memoriter.records import Chunk

TENANT = "bench"
#: The shares of all chunks that the largest agents have. The others have equal shares.
LARGE_SHARES = (0.1, 0.05)
#: Different texts. Each is used by several agents.
TEXTS = 20_000
#: The same sequence of vectors for any number of agents.
MAX_VECTORS = 10**9
#: Agents that are loaded in one transaction.
GROUP = 50

_COPY_START, _COPY_END = b"PGCOPY\n\xff\r\n\x00" + bytes(8), b"\xff\xff"
_pack_number = struct.Struct(">ii").pack


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent, and where its vectors start in the sequence of all."""

    name: str
    chunks: int
    first: int
    #: Whether the agent is searched through the graph.
    in_graph: bool


def agents_of(count: int, chunks: int, sizes: Sequence[int] = (), *, graph: bool = True) -> list[Agent]:
    """Return agents of different sizes: those that are given, or the shares of the largest; then equal ones."""
    large = list(sizes) or [int(chunks * share) for share in LARGE_SHARES[: max(0, count - 1)]]
    small = max(1, (chunks - sum(large)) // (count - len(large)))
    every = [*large, *[small] * (count - len(large))]
    starts = itertools.accumulate([0, *every])
    return [
        Agent(f"agent-{n:05d}", size, start, graph and size >= GRAPH_ROWS)
        for n, (size, start) in enumerate(zip(every, starts, strict=False))
    ]


class Texts:
    """Some texts, with their terms as numbers in the order of bytes, in which the server sorts them."""

    def __init__(self) -> None:
        self.texts = list(Writer(seed=1).texts(TEXTS))
        title = tokens_of(Chunk("", "memory/0.md", "memory", 1, 1, ""))[0]
        counted = [Counter(tokens_of(Chunk("", "", "memory", 1, 1, text))[1]) for text in self.texts]
        self.terms = sorted({*title, *itertools.chain.from_iterable(counted)}, key=str.encode)
        number = {term: at for at, term in enumerate(self.terms)}
        self._title = np.array([number[term] for term in title], dtype=np.int64)
        self._numbers = [np.array([number[term] for term in counts], dtype=np.int64) for counts in counted]
        self._counts = [np.array(list(counts.values()), dtype=np.uint8) for counts in counted]
        self.lengths = np.array([counts.total() + len(title) for counts in counted])

    def lists(self, picks: np.ndarray) -> Iterator[tuple[str, int, bytes]]:
        """Yield the lists of an agent whose rows have these texts: term, block and entries, in order."""
        sizes = [len(self._numbers[pick]) for pick in picks]
        rows = np.arange(1, len(picks) + 1)
        title = len(self._title)
        terms = np.concatenate([*(self._numbers[pick] for pick in picks), np.tile(self._title, len(picks))])
        of_row = np.concatenate([np.repeat(rows, sizes), np.repeat(rows, title)])
        entries = np.zeros(len(terms), dtype=ENTRY)
        entries["at"] = of_row % BLOCK
        body = sum(sizes)
        entries["body"][:body] = np.concatenate([self._counts[pick] for pick in picks])
        entries["title"][body:] = 1
        entries["length"] = self.lengths[picks][of_row - 1]
        blocks = len(picks) // BLOCK + 1
        keys = terms * blocks + of_row // BLOCK
        order = np.argsort(keys, kind="stable")
        keys, content = keys[order], entries[order].tobytes()
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        ends = np.append(starts[1:], len(keys))
        size = ENTRY.itemsize
        for key, start, end in zip(keys[starts].tolist(), starts.tolist(), ends.tolist(), strict=True):
            term, block = divmod(key, blocks)
            yield self.terms[term], block, content[start * size : end * size]


class Loader:
    """Copies the rows of agents, as a role that bypasses row-level security."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute("set search_path = memoriter, public")
        self._connection.execute("set synchronous_commit = off")
        self._chance = np.random.default_rng(5)

    @property
    def server_process(self) -> int:
        """The process of the server that serves this connection."""
        return self._connection.info.backend_pid

    def is_loaded(self, agents: Sequence[Agent]) -> bool:
        """Return whether the server has these agents and no others."""
        statement = "select count(*), coalesce(sum(next_row - 1), 0) from index_state where tenant = %s"
        found = self._connection.execute(statement, (TENANT,)).fetchone()
        return (
            found is not None
            and found[0] == len(agents)
            and found[1] >= sum(agent.chunks for agent in agents)
        )

    def load(self, agents: Sequence[Agent]) -> float:
        """Load every agent, one transaction for some of them. Return the seconds."""
        started, texts = time.perf_counter(), Texts()
        self._connection.execute("delete from index_state where tenant = %s", (TENANT,))
        vectors = _vectors()
        for at in range(0, len(agents), GROUP):
            group = agents[at : at + GROUP]
            with self._connection.transaction():
                for agent in group:
                    picks = self._chance.integers(0, TEXTS, size=agent.chunks)
                    self._copy_chunks(agent, texts, picks)
                    self._copy_terms(agent, texts.lists(picks))
                self._copy_vectors(group, vectors)
            print(f"{at + len(group)} of {len(agents)} agents", file=sys.stderr, flush=True)
        return time.perf_counter() - started

    def _copy_chunks(self, agent: Agent, texts: Texts, picks: np.ndarray) -> None:
        lengths = texts.lengths[picks].tolist()
        self._connection.execute(
            "insert into index_state(tenant, agent, index_name, next_row, chunks, tokens, in_graph)"
            " values(%s, %s, 'notes', %s, %s, %s, %s)",
            (TENANT, agent.name, agent.chunks + 1, agent.chunks, sum(lengths), agent.in_graph),
        )
        files = "copy index_files(tenant, agent, index_name, path, source, mtime_ns, size, sha256, indexed_at, state)"
        with self._connection.cursor().copy(f"{files} from stdin") as copy:
            for start in range(0, agent.chunks, CHUNKS_PER_DOCUMENT):
                copy.write_row(
                    (TENANT, agent.name, "notes", path_of(start), "memory", 1, 1, "0" * 64, 0.0, "")
                )
        chunks = (
            "copy index_chunks(tenant, agent, index_name, rowid, start_line, end_line, length, hash, model, source,"
            " trust, id, path, headings, text) from stdin"
        )
        with self._connection.cursor().copy(chunks) as copy:
            for at, (pick, length) in enumerate(zip(picks.tolist(), lengths, strict=True)):
                line = 2 * (at % CHUNKS_PER_DOCUMENT) + 1
                key = _key(agent.first + at)
                place = (at + 1, line, line, length, key, str(IDENTITY), "memory", "owner", key.hex()[:12])
                copy.write_row((TENANT, agent.name, "notes", *place, path_of(at), "[]", texts.texts[pick]))

    def _copy_terms(self, agent: Agent, lists: Iterator[tuple[str, int, bytes]]) -> None:
        start = struct.pack(">h", 6) + _fields(TENANT.encode(), agent.name.encode(), b"notes")
        statement = (
            "copy index_terms(tenant, agent, index_name, term, block, list) from stdin with (format binary)"
        )
        with self._connection.cursor().copy(statement) as copy:
            copy.write(_COPY_START)
            for some in _batched(lists):
                copy.write(
                    b"".join(
                        start + _fields(term.encode()) + _pack_number(4, block) + _fields(content)
                        for term, block, content in some
                    )
                )
            copy.write(_COPY_END)

    def _copy_vectors(self, group: Sequence[Agent], vectors: Iterator[Matrix]) -> None:
        statement = (
            "copy index_vectors(tenant, agent, index_name, dims, in_graph, hash, used_at, model, vector)"
            " from stdin with (format binary)"
        )
        with self._connection.cursor().copy(statement) as copy:
            copy.write(_COPY_START)
            for agent in group:
                for number in range(agent.chunks):
                    copy.write(_vector_row(agent, _key(agent.first + number), next(vectors)))
            copy.write(_COPY_END)

    def build_graph(self, agents: Sequence[Agent]) -> float:
        """Build the graph if an agent uses it, and refresh the statistics. Return the seconds for the graph."""
        started = time.perf_counter()
        for statement in graph_statements(DIMS) if any(agent.in_graph for agent in agents) else ():
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

    def plain_pgvector(self, agents: Sequence[Agent]) -> Callable[[Agent, Matrix], object]:
        """Return a search as in the documentation of pgvector: one table, a filter by agent, and a limit."""
        execute = self._connection.execute
        execute("create table if not exists plain(id bigserial, agent text, embedding vector)")
        if not self._number("select count(*) from (select from plain where agent <> %s limit 1) p", ""):
            execute(
                "insert into plain(agent, embedding) select agent, vector from index_vectors where agent = any(%s)",
                ([agent.name for agent in agents],),
            )
            execute("create index on plain(agent)")
            execute("vacuum analyze plain")
        search = "select id from plain where agent = %s order by embedding <=> %s::vector limit %s"

        def nearest(agent: Agent, query: Matrix) -> object:
            text = f"[{','.join(map(repr, query.tolist()))}]"
            return execute(search, (agent.name, text, 200)).fetchall()

        return nearest


def matrices_of(agents: Sequence[Agent]) -> dict[str, Matrix]:
    """Return the vectors of some agents by name."""
    last = max(agent.first + agent.chunks for agent in agents)
    found: dict[str, list[Matrix]] = {agent.name: [] for agent in agents}
    for number, vector in enumerate(itertools.islice(_vectors(), last)):
        for agent in agents:
            if agent.first <= number < agent.first + agent.chunks:
                found[agent.name].append(vector)
    return {name: np.stack(rows) for name, rows in found.items()}


def path_of(row: int) -> str:
    """Return the path of the document that contains a row."""
    return f"memory/{row // CHUNKS_PER_DOCUMENT}.md"


def _vectors() -> Iterator[Matrix]:
    return (row for block in synthetic(MAX_VECTORS, DIMS, seed=1) for row in block)


def _key(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


def _vector_row(agent: Agent, key: bytes, vector: Matrix) -> bytes:
    fields = (
        TENANT.encode(),
        agent.name.encode(),
        b"notes",
        struct.pack(">i", DIMS),
        struct.pack("?", agent.in_graph),
        key,
        struct.pack(">d", 0.0),
        str(IDENTITY).encode(),
        struct.pack(">hh", DIMS, 0) + vector.astype(">f4").tobytes(),
    )
    return struct.pack(">h", len(fields)) + _fields(*fields)


def _fields(*values: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(value)) + value for value in values)


def _batched(lists: Iterator[tuple[str, int, bytes]]) -> Iterator[list[tuple[str, int, bytes]]]:
    while some := list(itertools.islice(lists, 10_000)):
        yield some
