"""`PostgresIndex`: documents, chunks, keywords and vectors of one agent on a Postgres server."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from psycopg import errors

from memoriter import logs
from memoriter.extensions.postgres import chunks as rows_of
from memoriter.extensions.postgres import keywords, vectors
from memoriter.extensions.postgres.chunks import NewChunk, State, storable
from memoriter.extensions.postgres.connection import PostgresConnection
from memoriter.extensions.postgres.database import PostgresDatabase
from memoriter.extensions.postgres.locks import locks_of
from memoriter.extensions.postgres.schema import INDEX_TABLES
from memoriter.extensions.postgres.server import SCHEMA, lock_number
from memoriter.extensions.postgres.vacuum import vacuum
from memoriter.extensions.postgres.vector_copy import CopyView, VectorCopies
from memoriter.records import Chunk, Document, Identity
from memoriter.store.documents import Counts, DocumentSummary, FileRow, StoredChunk, Surroundings
from memoriter.store.keywords import KeywordMatch
from memoriter.store.protocol import NO_FILTER, Filter, Healing
from memoriter.store.vectors.nearest import unit

if TYPE_CHECKING:
    from memoriter.store.vectors import Vector

log = logs.get("store")
T = TypeVar("T")

_META = "insert into index_meta(index_name, key, value) values($1, $2, $3)"
_SET_META = f"{_META} on conflict(index_name, key) do update set value = excluded.value"


class PostgresIndex(Healing):
    """One index of one agent. Safe to use from many threads, processes and machines at the same time."""

    engine = "pgvector"
    healed: str | None = None
    remote: str | None = None
    left_elsewhere: tuple[str, ...] = ()

    def __init__(self, database: PostgresDatabase, name: str, folder: Path) -> None:
        self.name = name
        self._database = database
        self._folder = folder
        self._vector_problem: str | None = None
        self._copies = VectorCopies(database, name)

    @property
    def place(self) -> str:
        """The server and the name of the index, with its tenant and agent."""
        database = self._database
        return f"{database.name} ({self.name} of {database.tenant}/{database.agent})"

    @property
    def folder(self) -> Path:
        """A folder of this machine for files that are derived from the index."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder

    # ---- documents -------------------------------------------------------------------------------------------

    def meta(self, key: str) -> str | None:
        """Return a value that the index stores about itself."""
        with self._database.read() as connection:
            rows = connection.execute(
                "select value from index_meta where index_name = $1 and key = $2", (self.name, key)
            )
        return rows[0][0] if rows else None

    def files(self) -> dict[str, FileRow]:
        """Return every document by path."""
        with self._database.read() as connection:
            return rows_of.files(connection, self.name)

    def count_without(self, model: str) -> int:
        """Count the chunks that have no vector of this model."""
        with self._database.read() as connection:
            return rows_of.count_without(connection, self.name, model)

    def rows_without(self, model: str, paths: Collection[str] | None = None) -> list[int]:
        """Return the rows without a vector of this model, in order; of all documents, or of some."""
        with self._database.read() as connection:
            return rows_of.rows_without(connection, self.name, model, paths)

    def counts(self, model: str) -> Counts:
        """Count files and chunks, and the chunks that have a vector of this model."""
        with self._database.snapshot() as connection:
            return rows_of.counts(connection, self.name, model)

    def chunks(self, rowids: Iterable[int]) -> dict[int, StoredChunk]:
        """Return the chunks in these rows. Deleted rows are left out."""
        with self._database.read() as connection:
            return rows_of.chunks(connection, self.name, rowids)

    def stored_of(self, path: str) -> list[StoredChunk]:
        """Return the chunks of one document in line order, each with its row."""
        with self._database.read() as connection:
            return rows_of.stored_of(connection, self.name, path)

    def summaries(self, paths: Iterable[str]) -> dict[str, DocumentSummary]:
        """Return summaries of these documents by path. Documents without chunks are left out."""
        with self._database.read() as connection:
            return rows_of.summaries(connection, self.name, paths)

    def paths_of(self, session: str) -> list[str]:
        """Return the paths of the transcripts of a session, newest first."""
        with self._database.read() as connection:
            return rows_of.paths_of(connection, self.name, session)

    def around(self, rowids: Iterable[int], *, reach: int) -> dict[int, Surroundings]:
        """Return, for each row, the rows of the same document at most ``reach`` chunks away."""
        with self._database.read() as connection:
            return rows_of.around(connection, self.name, rowids, reach)

    def dates_of(self, rowids: Iterable[int]) -> dict[int, str]:
        """Return the dates of the notes of these rows. Rows of undated notes are left out."""
        with self._database.read() as connection:
            return rows_of.dates(connection, self.name, rowids)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let this thread read one state of the index, whatever others commit meanwhile."""
        with self._database.pinned():
            yield

    # ---- writing ---------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self, wait_s: float | None = None) -> Iterator[None]:
        """Commit everything that is written inside together at the end, or nothing."""
        with self._database.write(wait_s):
            yield

    def lock(self, name: str, wait_s: float) -> contextlib.AbstractContextManager[None]:
        """Hold an advisory lock of the server. A lost connection releases it."""
        number = lock_number(self._database.tenant, self._database.agent, self.name, name)
        return locks_of(self._database.server).hold(number, wait_s, self.place)

    def set_meta(self, **values: str) -> None:
        """Store values about the index under these keys."""
        with self._database.write() as connection:
            connection.executemany(_SET_META, [(self.name, *item) for item in values.items()])

    def replace(
        self, document: Document, chunks: Sequence[Chunk], *, identity: Identity | None = None
    ) -> int:
        """Replace the document with this path, from its ``from_line`` on. Return how many chunks have a vector."""
        new = [storable(chunk) for chunk in chunks]
        hashes = [chunk.hash for chunk in new]
        with self._database.write() as connection:
            embedded = vectors.known(connection, self.name, identity, hashes) if identity else set()
            models = [str(identity) if hash_ in embedded else "" for hash_ in hashes]
            released = self._delete(connection, document.path, document.from_line)
            vectors.release(connection, self.name, released - set(hashes))
            self._insert(connection, list(zip(new, models, strict=True)))
            rows_of.insert_file(connection, self.name, document)
        return len(hashes) - models.count("")

    def assign(self, rowids: Iterable[int], identity: Identity) -> int:
        """Give chunks their vectors of this identity from the cache, each in a new row. Return how many."""
        with self._database.write() as connection:
            stored = rows_of.chunks(connection, self.name, rowids)
            hashes = {item.chunk.hash for item in stored.values()}
            embedded = vectors.known(connection, self.name, identity, hashes)
            ready = [item for item in stored.values() if item.chunk.hash in embedded]
            if ready:
                self._delete_rows(connection, ready)
                self._insert(connection, [(item.chunk, str(identity)) for item in ready])
            return len(ready)

    def _insert(self, connection: PostgresConnection, chunks: Sequence[tuple[Chunk, str]]) -> None:
        new = [NewChunk(chunk, model, keywords.length(chunk)) for chunk, model in chunks]
        rows = rows_of.insert(connection, self.name, new)
        keywords.add(connection, self.name, dict(zip(rows, (item.chunk for item in new), strict=True)))

    def _delete(self, connection: PostgresConnection, path: str, from_line: int = 1) -> set[str]:
        """Delete the chunks of a document from a line on. Return the hashes of their vectors."""
        found = rows_of.stored_of(connection, self.name, path)
        stored = [item for item in found if item.chunk.start_line >= from_line]
        self._delete_rows(connection, stored)
        return {item.chunk.hash for item in stored if item.model}

    def _delete_rows(self, connection: PostgresConnection, stored: Sequence[StoredChunk]) -> None:
        if stored:
            keywords.remove(connection, self.name, {item.rowid: item.chunk for item in stored})
            rows_of.delete(connection, self.name, stored)
            connection.execute(_SET_META, (self.name, "unscrubbed", "yes"))

    def touch(self, document: Document) -> None:
        """Update the stat of a document whose text is unchanged."""
        with self._database.write() as connection:
            rows_of.touch(connection, self.name, document)

    def remove(self, paths: Iterable[str]) -> int:
        """Delete these documents. Return how many existed."""
        removed = 0
        with self._database.write() as connection:
            for path in paths:
                vectors.release(connection, self.name, self._delete(connection, path))
                connection.execute(
                    "delete from index_files where index_name = $1 and path = $2", (self.name, path)
                )
                removed += connection.changes()
        return removed

    def clear(self) -> None:
        """Delete every document. Vectors stay in the cache, and row numbers continue."""
        with self._database.write() as connection:
            rows_of.clear(connection, self.name)
            connection.execute(_SET_META, (self.name, "unscrubbed", "yes"))

    # ---- keywords --------------------------------------------------------------------------------------------

    def terms(self, terms: Sequence[str]) -> dict[str, int]:
        """Return how many chunks contain each term."""
        with self._database.read() as connection:
            state = rows_of.state(connection, self.name)
            return keywords.frequencies(connection, self.name, state, terms)

    def keyword(
        self,
        terms: Sequence[str],
        *,
        limit: int,
        where: Filter = NO_FILTER,
        known: Mapping[str, int] = MappingProxyType({}),
    ) -> list[KeywordMatch]:
        """Return the chunks that contain any of the terms, best first. ``known`` has frequencies from `terms`."""
        with self._database.snapshot() as connection:
            state = rows_of.state(connection, self.name)
            return keywords.search(connection, self.name, state, terms, limit=limit, where=where, known=known)

    def total(self) -> int:
        """Return the number of chunks."""
        return self._state().chunks

    def _state(self) -> State:
        with self._database.read() as connection:
            return rows_of.state(connection, self.name)

    # ---- vectors ---------------------------------------------------------------------------------------------

    def nearest(
        self, vector: Vector, identity: Identity, *, limit: int, where: Filter = NO_FILTER
    ) -> list[tuple[int, float]]:
        """Return the chunks whose vectors of this identity are nearest, as (rowid, cosine), best first."""
        with self._database.snapshot() as connection:
            state = rows_of.state(connection, self.name)
            query = unit(vector, identity.dimensions)
            if where == NO_FILTER and query is not None and limit > 0:
                if copy := self._copy(connection, identity):
                    return copy.nearest(query, limit)
                if state.in_graph:
                    self._copies.count_search(state, identity)
            return vectors.nearest(connection, self.name, state, vector, identity, limit=limit, where=where)

    def copy_vectors(self, identity: Identity) -> None:
        """Copy the vectors into this process now. Searches of a large index do so in the background."""
        self._copies.copy(identity, self.total())

    def _copy(self, connection: PostgresConnection, identity: Identity) -> CopyView | None:
        """Return the vectors as this process has copied them. A transaction that writes uses none."""
        if connection.memo is None:
            return None
        key = ("copy", self.name, identity)
        if key not in connection.memo:
            state = rows_of.state(connection, self.name)
            connection.memo[key] = self._copies.view(connection, state, identity) if state.in_graph else None
        found: CopyView | None = connection.memo[key]
        return found

    def cosines(self, rowids: Iterable[int], vector: Vector, identity: Identity) -> dict[int, float]:
        """Return the cosines of these rows, at least 0. Rows without a vector are left out."""
        with self._database.read() as connection:
            query = unit(vector, identity.dimensions)
            copy = self._copy(connection, identity) if query is not None else None
            if copy is not None and query is not None:
                return copy.cosines(query, list(rowids))
            return vectors.cosines(connection, self.name, vector, identity, rowids)

    def vectors_of(self, rowids: Iterable[int], identity: Identity) -> dict[int, Vector]:
        """Return the vectors of these rows. Rows without one of this identity are left out."""
        with self._database.read() as connection:
            return vectors.of_rows(connection, self.name, identity, rowids)

    @property
    def vector_problem(self) -> str | None:
        """Why a large index is not in the graph, so that every vector is compared."""
        return self._vector_problem

    def ready(self, identity: Identity) -> None:
        """Do nothing: the server searches what is committed."""

    def refresh(self, identity: Identity) -> None:
        """Add the vectors to the graph once there are many. Build the graph if there is none for their dimensions."""
        with self._database.read() as connection:
            if rows_of.state(connection, self.name).in_graph:
                return
            if not vectors.needs_graph(connection, self.name, identity):
                return
        try:
            self._build_graph(identity.dimensions)
        except errors.InsufficientPrivilege as error:
            self._vector_problem = f"Every vector is compared, because no graph can be built: {error}"
            log.warning("%s: %s", self.place, self._vector_problem)
            return
        self._vector_problem = None
        with self._database.write() as connection:
            vectors.add_to_graph(connection, self.name)

    def _build_graph(self, dimensions: int) -> None:
        """Build the graph of vectors with these dimensions for all agents, unless it exists."""
        with contextlib.closing(self._database.server.connect()) as connection, connection.transaction():
            connection.execute(f"set local search_path = {SCHEMA}, public")
            exists = connection.execute("select to_regclass(%s)", (f"{vectors.graph_name(dimensions)}_0",))
            if exists.fetchone() != (None,):
                return
            connection.execute("select pg_advisory_xact_lock(%s)", (lock_number(SCHEMA, "graph"),))
            for statement in vectors.graph_statements(dimensions):
                connection.execute(statement.encode())

    # ---- the embedding cache ---------------------------------------------------------------------------------

    def known(self, identity: Identity, hashes: Iterable[str]) -> set[str]:
        """Return the hashes that have a vector of this identity."""
        with self._database.read() as connection:
            return vectors.known(connection, self.name, identity, hashes)

    def load(self, identity: Identity, hashes: Iterable[str]) -> dict[str, Vector]:
        """Return the cached vectors of this identity by hash."""
        with self._database.read() as connection:
            return vectors.load(connection, self.name, identity, hashes)

    def save(self, identity: Identity, values: Mapping[str, Vector]) -> None:
        """Store vectors of this identity by hash. Raises `StoreError` for a wrong length, NaN or infinity."""
        if not values:
            return
        with self._database.write() as connection:
            in_graph = rows_of.state(connection, self.name).in_graph
            vectors.save(connection, self.name, identity, values, in_graph=in_graph)

    def prune(self, limit_bytes: int) -> int:
        """Delete vectors that no chunk uses, longest unused first, until the cache fits. Return how many."""
        with self._database.write() as connection:
            return vectors.prune(connection, self.name, limit_bytes)

    # ---- health ----------------------------------------------------------------------------------------------

    def size(self) -> int:
        """Return the bytes of the rows of this index, without the server's own structures."""
        with self._database.read() as connection:
            rows = connection.execute(
                " union all ".join(
                    f"select coalesce(sum(pg_column_size(t.*)), 0)::bigint from {name} t where index_name = $1"  # noqa: S608 - constants
                    for name in INDEX_TABLES
                ),
                (self.name,),
            )
        return sum(row[0] for row in rows)

    def check(self, *, deep: bool = False) -> list[str]:  # noqa: ARG002 - the same check for both
        """Describe where the tables contradict each other. The server guards against damaged pages."""
        with self._database.snapshot() as connection:
            return rows_of.contradictions(connection, self.name)

    @property
    def keeps_deleted(self) -> bool:
        """Whether the server may still contain text that was deleted since the last `scrub`."""
        return self.meta("unscrubbed") is not None

    def erase(self, hashes: Iterable[str], identity: Identity | None) -> bool:  # noqa: ARG002 - one place for all
        """Erase the vectors of these texts, unless chunks use them, and what is left of deleted rows.

        Return False if a transaction that began before may still read them.
        """
        self._copies.drop()
        with self._database.write() as connection:
            vectors.drop(connection, self.name, hashes)
        return self.scrub()

    def scrub(self) -> bool:
        """Remove the versions of deleted rows from the tables. Return False if a transaction may still read them."""
        with self._database.write() as connection:
            connection.execute(
                "delete from index_meta where index_name = $1 and key = 'unscrubbed'", (self.name,)
            )
        return vacuum(self._database, INDEX_TABLES)

    def heal(self, reason: str) -> None:
        """Empty the index. Its vectors stay."""
        self.healed = reason
        with self._database.write() as connection:
            rows_of.clear(connection, self.name)
            connection.execute("delete from index_meta where index_name = $1", (self.name,))

    def close(self) -> None:
        """Close the database."""
        self._copies.drop()
        self._database.close()

    def __enter__(self) -> PostgresIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
