"""``index.db``: documents, chunks, keywords and vectors as of the last sync. All of it is derived from the files.

The row of a chunk never changes. It is inserted with or without a vector, and deleted with its document. A chunk that
gets its vector later moves to a new row, because vector engines look only for rows that are newer than theirs.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from memoriter import logs
from memoriter.errors import IndexBroken, SchemaTooNew
from memoriter.records import Chunk, Document, Identity
from memoriter.store import cache, documents, keywords
from memoriter.store.connection import inode_of, translate_values
from memoriter.store.database import Database, discard, lock_file, move_away
from memoriter.store.documents import (
    APPLICATION_ID,
    MIGRATIONS,
    Counts,
    DocumentSummary,
    FileRow,
    StoredChunk,
    Surroundings,
)
from memoriter.store.keywords import KeywordMatch
from memoriter.store.protocol import NO_FILTER, Filter, Healing, RowCache, value
from memoriter.store.vectors import (
    DefaultSettings,
    EngineSettings,
    distrust_files,
    find_engine,
    remove_unused,
)

if TYPE_CHECKING:
    from memoriter.store.vectors import Vector, VectorIndex
    from memoriter.store.vectors.nearest import Nearest

log = logs.get("store")

T = TypeVar("T")

#: Chunks and places of rows that are kept in memory for the next search: a few megabytes.
MAX_CHUNKS, MAX_PLACES = 1_000, 20_000


def open_index(
    folder: Path, *, engine: str = "scan", settings: EngineSettings | None = None, timeout_s: float = 30.0
) -> SqliteIndex:
    """Open or create the index in a folder. A file that cannot be read is replaced by an empty one."""
    path = folder / "index.db"
    if folder.exists() and not folder.is_dir():
        move_away(folder)
    found = inode_of(path)
    try:
        return SqliteIndex(folder, engine=engine, settings=settings, timeout_s=timeout_s)
    except (IndexBroken, SchemaTooNew) as error:
        aside = discard(path, MIGRATIONS, broken=found, timeout_s=timeout_s)
        index = SqliteIndex(folder, engine=engine, settings=settings, timeout_s=timeout_s)
        index.healed = _healing_message(str(error), aside)
        return index


class SqliteIndex(Healing):
    """The contents of ``index.db``. Safe to use from many threads and processes at the same time."""

    def __init__(
        self,
        folder: Path,
        *,
        engine: str = "scan",
        settings: EngineSettings | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        self.path = folder / "index.db"
        #: What was wrong with the file that this one replaced.
        self.healed: str | None = None
        self.engine = engine
        found = find_engine(engine)
        self.remote = found.label if found.is_remote else None
        #: Where vectors may still be that an earlier engine has sent there. Known after `erase`.
        self.left_elsewhere: tuple[str, ...] = ()
        self._settings = settings or DefaultSettings()
        self._timeout_s = timeout_s
        self._nearest: Nearest | None = None  # created at first use, since it imports numpy
        self._frequencies = keywords.Frequencies()
        self._without = RowCache[str, int](limit=8)
        self._chunks = RowCache[int, StoredChunk](limit=MAX_CHUNKS)
        self._places = RowCache[int, tuple[int, ...]](limit=MAX_PLACES)
        self._database = Database(
            self.path,
            application_id=APPLICATION_ID,
            migrations=MIGRATIONS,
            synchronous="NORMAL",
            timeout_s=timeout_s,
            on_connect=found.on_connect,
            damage=IndexBroken,
            checked=True,
        )

    @property
    def place(self) -> str:
        """The path of the database."""
        return str(self.path)

    @property
    def folder(self) -> Path:
        """The folder of the database."""
        return self.path.parent

    # ---- documents -------------------------------------------------------------------------------------------

    def meta(self, key: str) -> str | None:
        """Return a value that the index stores about itself."""
        with self._database.read() as connection:
            found: str | None = value(connection, "select value from meta where key = ?", (key,))
        return found

    def files(self) -> dict[str, FileRow]:
        """Return every document by path."""
        with self._database.read() as connection:
            return documents.files(connection)

    def count_without(self, model: str) -> int:
        """Count the chunks that have no vector of this model."""
        with self._database.read() as connection:
            counts = self._without.of(connection)
            if model not in counts:
                counts[model] = documents.count_without(connection, model)
            return counts[model]

    def rows_without(self, model: str, paths: Collection[str] | None = None) -> list[int]:
        """Return the rows without a vector of this model, in order; of all documents, or of some."""
        with self._database.read() as connection:
            return documents.rows_without(connection, model, paths)

    def counts(self, model: str) -> Counts:
        """Count files and chunks, and the chunks that have a vector of this model."""
        with self._database.read() as connection:
            return documents.counts(connection, model)

    def chunks(self, rowids: Iterable[int]) -> dict[int, StoredChunk]:
        """Return the chunks in these rows. Deleted rows are left out."""
        rows = list(rowids)
        with self._database.read() as connection:
            if len(rows) > MAX_CHUNKS:
                return documents.chunks(connection, rows)
            known = self._chunks.of(connection)
            if missing := [row for row in rows if row not in known]:
                known |= documents.chunks(connection, missing)
            return {row: known[row] for row in rows if row in known}

    def stored_of(self, path: str) -> list[StoredChunk]:
        """Return the chunks of one document, each with its row."""
        with self._database.read() as connection:
            return documents.stored_of(connection, path)

    def summaries(self, paths: Iterable[str]) -> dict[str, DocumentSummary]:
        """Return summaries of these documents by path. Documents without chunks are left out."""
        with self._database.read() as connection:
            return documents.summaries(connection, paths)

    def paths_of(self, session: str) -> list[str]:
        """Return the paths of the transcripts of a session, newest first."""
        with self._database.read() as connection:
            return documents.paths_of(connection, session)

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
        """Hold the lock file with this name, beside the database. Raises `LockTimeout` or `StoreError`."""
        return lock_file(self.path.with_name(f"{name}.lock"), wait_s)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        """Return the writer, for statements and the values of their rows."""
        with self._database.write() as connection, translate_values(self.path, IndexBroken):
            yield connection

    def set_meta(self, **values: str) -> None:
        """Store values about the index under these keys."""
        with self._writing() as connection:
            connection.executemany("insert or replace into meta(key, value) values(?, ?)", values.items())

    def replace(
        self, document: Document, chunks: Sequence[Chunk], *, identity: Identity | None = None
    ) -> int:
        """Replace the document with this path, from its ``from_line`` on. Return how many chunks have a vector."""
        hashes = [chunk.hash for chunk in chunks]
        with self._writing() as connection:
            embedded = cache.known(connection, identity, hashes) if identity else set()
            models = [str(identity) if hash_ in embedded else "" for hash_ in hashes]
            released = documents.delete(connection, document.path, document.from_line)
            cache.release(connection, released - set(hashes))
            documents.insert(connection, document, list(zip(chunks, hashes, models, strict=True)))
            if identity and embedded and self.engine != "scan":
                self._engine.follow(connection, identity)
            return len(hashes) - models.count("")

    def assign(self, rowids: Iterable[int], identity: Identity) -> int:
        """Give chunks their vectors of this identity from the cache, each in a new row. Return how many."""
        with self._writing() as connection:
            stored = documents.chunks(connection, rowids)
            embedded = cache.known(connection, identity, {item.chunk.hash for item in stored.values()})
            ready = [item for item in stored.values() if item.chunk.hash in embedded]
            documents.move(connection, ready, str(identity))
            if ready and self.engine != "scan":
                self._engine.follow(connection, identity)
            return len(ready)

    def touch(self, document: Document) -> None:
        """Update the stat of a document whose text is unchanged."""
        with self._writing() as connection:
            documents.touch(connection, document)

    def remove(self, paths: Iterable[str]) -> int:
        """Delete these documents. Return how many existed."""
        removed = 0
        with self._writing() as connection:
            for path in paths:
                cache.release(connection, documents.delete(connection, path))
                connection.execute("delete from files where path = ?", (path,))
                removed += connection.changes()
        return removed

    def clear(self) -> None:
        """Delete every document. Vectors stay in the cache, and row numbers continue."""
        with self._writing() as connection:
            documents.clear(connection)

    # ---- keywords --------------------------------------------------------------------------------------------

    def terms(self, terms: Sequence[str]) -> dict[str, int]:
        """Return how many chunks contain each term."""
        with self._database.read() as connection:
            return self._frequencies.of(connection, terms)

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
            return keywords.search(
                connection, self._frequencies, terms, limit=limit, where=where, known=known
            )

    def total(self) -> int:
        """Return the number of chunks."""
        with self._database.read() as connection:
            return keywords.total(connection)

    # ---- vectors ---------------------------------------------------------------------------------------------

    def nearest(
        self, vector: Vector, identity: Identity, *, limit: int, where: Filter = NO_FILTER
    ) -> list[tuple[int, float]]:
        """Return the chunks whose vectors of this identity are nearest, as (rowid, cosine), best first."""
        return self._vectors.search(vector, identity, limit=limit, where=where)

    def around(self, rowids: Iterable[int], *, reach: int) -> dict[int, Surroundings]:
        """Return, for each row, the rows of the same document at most ``reach`` chunks away."""
        assert reach <= documents.MAX_REACH
        rows = list(rowids)
        with self._database.read() as connection:
            known = self._places.of(connection)
            if missing := [row for row in rows if row not in known]:
                known |= documents.places(connection, missing)
            return {row: documents.surroundings(row, known[row], reach) for row in rows if row in known}

    def dates_of(self, rowids: Iterable[int]) -> dict[int, str]:
        """Return the dates of the notes of these rows. Rows of undated notes are left out."""
        with self._database.read() as connection:
            return documents.dates(connection, rowids)

    def cosines(self, rowids: Iterable[int], vector: Vector, identity: Identity) -> dict[int, float]:
        """Return the cosines of these rows, at least 0. Rows without a vector are left out."""
        return self._vectors.cosines(rowids, vector, identity)

    def vectors_of(self, rowids: Iterable[int], identity: Identity) -> dict[int, Vector]:
        """Return the vectors of these rows. Rows without one of this identity are left out."""
        from memoriter.store.vectors import nearest

        bound = (json.dumps(list(rowids)), *cache.key_of(identity), str(identity))
        with self._database.read() as connection:
            rows: Any = connection.execute(cache.OF_ROWS, bound)
            return {rowid: nearest.decode(blob) for rowid, blob in rows}

    @property
    def vector_problem(self) -> str | None:
        """The reason why the vector engine did not work as intended, in a sentence."""
        return self._engine.problem

    def ready(self, identity: Identity) -> None:
        """Let the vector engine add what another engine has written. Inside a snapshot it could not see it."""
        if self.engine != "scan":
            self._engine.ready(identity)

    def refresh(self, identity: Identity) -> None:
        """Let the vector engine update its files or tables after a sync."""
        self._engine.refresh(identity)

    def erase(self, hashes: Iterable[str], identity: Identity | None) -> bool:
        """Erase every byte of the vectors of these texts. Return False if a reader keeps some of them in the log."""
        with self._writing() as connection:
            cache.drop(connection, hashes)
        self.left_elsewhere = remove_unused(self.path.parent, self.engine)
        try:
            if identity is not None:
                self._engine.purge(identity)
        finally:
            is_clean = self.scrub()
        return is_clean

    @property
    def _engine(self) -> VectorIndex:
        return self._vectors.engine

    @property
    def _vectors(self) -> Nearest:
        if self._nearest is None:
            from memoriter.store.vectors import open_engine
            from memoriter.store.vectors.nearest import Nearest

            engine = open_engine(self.engine, self._database, self.path.parent, self._settings)
            self._nearest = Nearest(engine, self._database)
        return self._nearest

    # ---- the embedding cache ---------------------------------------------------------------------------------

    def known(self, identity: Identity, hashes: Iterable[str]) -> set[str]:
        """Return the hashes that have a vector of this identity."""
        with self._database.read() as connection:
            return cache.known(connection, identity, hashes)

    def load(self, identity: Identity, hashes: Iterable[str]) -> dict[str, Vector]:
        """Return the cached vectors of this identity by hash."""
        from memoriter.store.vectors import nearest

        with self._database.read() as connection:
            blobs = cache.load(connection, identity, hashes)
        return {hash_: nearest.decode(blob) for hash_, blob in blobs.items()}

    def save(self, identity: Identity, vectors: Mapping[str, Vector]) -> None:
        """Store vectors of this identity by hash. Raises `StoreError` for a wrong length, NaN or infinity."""
        from memoriter.store.vectors import nearest

        blobs = {hash_: nearest.encode(vector, identity.dimensions) for hash_, vector in vectors.items()}
        with self._writing() as connection:
            cache.save(connection, identity, blobs)

    def prune(self, limit_bytes: int) -> int:
        """Delete vectors that no chunk uses, longest unused first, until the cache fits. Return how many."""
        with self._database.read() as connection:
            size = value(connection, "select page_count * page_size from pragma_page_count, pragma_page_size")
        if size <= limit_bytes:
            return 0  # the whole file fits: no need to count
        with self._writing() as connection:
            return cache.prune(connection, limit_bytes)

    # ---- health ----------------------------------------------------------------------------------------------

    def size(self) -> int:
        """Return the bytes on disk of the database, its log and the files of the vector engine."""
        files = [self.path, self.path.with_name("index.db-wal"), *self.path.parent.glob("vectors/*/*")]
        return sum(file.stat().st_size for file in files if file.exists())

    def check(self, *, deep: bool = False) -> list[str]:
        """Describe what is wrong with the index. An empty list means that it is sound.

        Vector files are compared with their digests when they are used next, and built again if they differ.
        """
        if self.engine == "scan":
            self._close_engine()
            distrust_files(self.path.parent)
        found = self._database.check(deep=deep)
        if found:
            return found
        with self._database.snapshot() as connection:
            return documents.contradictions(connection)

    @property
    def keeps_deleted(self) -> bool:
        """Whether the file may still contain text that was deleted since the last `scrub`."""
        return self.meta("unscrubbed") is not None

    def scrub(self) -> bool:
        """Erase deleted text from the file and its log. Return False if readers keep some of it in the log.

        Deleted rows are overwritten, but FTS5 keeps their tokens until it merges. Vectors of deleted text stay in the
        cache until they are pruned.
        """
        with self._writing() as connection:
            connection.execute("insert into chunks_fts(chunks_fts) values('optimize')")
            connection.execute("delete from meta where key = 'unscrubbed'")
        return self._database.purge()

    def heal(self, reason: str) -> None:
        """Replace the damaged file by an empty one, unless another thread or process has just done so."""
        broken = self._database.used_inode() or inode_of(self.path)
        aside = discard(self.path, MIGRATIONS, broken=broken, timeout_s=self._timeout_s)
        self.healed = _healing_message(reason, aside)
        self._close_engine()
        self._database.reader()  # creates the new file

    def close(self) -> None:
        """Close every connection. The index cannot be used afterwards."""
        self._close_engine()
        self._database.close()

    def _close_engine(self) -> None:
        nearest, self._nearest = self._nearest, None
        if nearest is not None:
            nearest.engine.close()

    def __enter__(self) -> SqliteIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _healing_message(reason: str, aside: str | None) -> str:
    return f"{reason.rstrip('.')}. The file was renamed to {aside}." if aside else reason
