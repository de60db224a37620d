"""``index.db``: documents, chunks, keywords and vectors as they were at the last sync. All of it is derived.

The index is told what to hold and asked what it holds; it reads no files, makes no vectors and weighs no hits.
A chunk's row never changes: it comes with a vector or without, and goes with its document.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import apsw

from memoriter.errors import SchemaTooNew, StoreBroken, StoreError
from memoriter.records import Chunk, Document, Identity
from memoriter.store import cache, documents, keywords
from memoriter.store.connection import inode_of, value
from memoriter.store.database import Database, set_aside
from memoriter.store.documents import APPLICATION_ID, MIGRATIONS, Counts, FileRow, Holding, StoredChunk
from memoriter.store.keywords import Filter, KeywordMatch

if TYPE_CHECKING:
    from memoriter.store.vectors import Vector, VectorIndex
    from memoriter.store.vectors.nearest import Nearest

ENGINES = ("scan", "sqlite-vec", "lancedb")
EVERYTHING = Filter()


def open_index(folder: Path, *, engine: str = "scan", timeout_s: float = 30.0) -> Index:
    """Open the index in a folder, or begin one. What cannot be read is set aside: it can be made again."""
    path = folder / "index.db"
    found = inode_of(path)
    try:
        return Index(folder, engine=engine, timeout_s=timeout_s)
    except (StoreBroken, SchemaTooNew) as error:
        aside = set_aside(path, broken=found, timeout_s=timeout_s)
        index = Index(folder, engine=engine, timeout_s=timeout_s)
        index.healed = _healed(str(error), aside)
        return index


class Index:
    """What ``index.db`` holds. Safe to use from many threads and processes at once."""

    def __init__(self, folder: Path, *, engine: str = "scan", timeout_s: float = 30.0) -> None:
        self.path = folder / "index.db"
        self.healed: str | None = None  #: in words, what was wrong with the file that this one replaced
        self.engine = engine
        self._timeout_s = timeout_s
        self._nearest: Nearest | None = None  # made at first use: it brings numpy
        self._frequencies = keywords.Frequencies()
        self._database = Database(
            self.path,
            application_id=APPLICATION_ID,
            migrations=MIGRATIONS,
            synchronous="NORMAL",
            timeout_s=timeout_s,
            on_connect=_extension(engine),
        )

    # ---- what is held ----------------------------------------------------------------------------------------

    def meta(self, key: str) -> str | None:
        """A note that the index keeps about itself."""
        with self._database.read() as connection:
            found: str | None = value(connection, "select value from meta where key = ?", (key,))
        return found

    def files(self) -> dict[str, FileRow]:
        """Every document, by path."""
        with self._database.read() as connection:
            return documents.files(connection)

    def stale(self, model: str) -> set[str]:
        """Paths of documents with a chunk that has no vector of this model."""
        with self._database.read() as connection:
            return documents.stale(connection, model)

    def counts(self, model: str) -> Counts:
        """How much is held, and how much of it has a vector of this model."""
        with self._database.read() as connection:
            return documents.counts(connection, model)

    def chunks(self, rowids: Iterable[int]) -> dict[int, StoredChunk]:
        """The chunks in these rows; a row that is gone is left out."""
        with self._database.read() as connection:
            return documents.chunks(connection, rowids)

    def chunks_of(self, path: str) -> list[Chunk]:
        """The chunks of one document."""
        with self._database.read() as connection:
            return documents.chunks_of(connection, path)

    def stored_of(self, path: str) -> list[StoredChunk]:
        """The chunks of one document, each with its row."""
        with self._database.read() as connection:
            return documents.stored_of(connection, path)

    def holdings(self, paths: Iterable[str]) -> dict[str, Holding]:
        """What is held of these documents; one without a chunk is left out."""
        with self._database.read() as connection:
            return documents.holdings(connection, paths)

    def paths_of(self, session: str) -> list[str]:
        """The transcripts of the session of this name, newest first."""
        with self._database.read() as connection:
            return documents.paths_of(connection, session)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything that this thread reads inside sees one state, whatever is committed meanwhile."""
        with self._database.snapshot():
            yield

    # ---- writing ---------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything written inside is seen by others at once, at the end, or not at all."""
        with self._database.write():
            yield

    def set_meta(self, **values: str) -> None:
        """Keep notes under these keys."""
        with self._database.write() as connection:
            connection.executemany("insert or replace into meta(key, value) values(?, ?)", values.items())

    def replace(
        self, document: Document, chunks: Sequence[Chunk], *, identity: Identity | None = None
    ) -> None:
        """Put a document in place of what stood under its path, from its ``from_line`` on.

        A chunk whose vector of this identity is in the cache has it from now on; the others can be found by
        keyword until their document is replaced again.
        """
        hashes = [chunk.hash for chunk in chunks]
        with self._database.write() as connection:
            having = cache.known(connection, identity, hashes) if identity else set()
            models = [str(identity) if hash_ in having else "" for hash_ in hashes]
            dropped = documents.delete(connection, document.path, document.from_line)
            cache.release(connection, dropped - set(hashes))
            documents.insert(connection, document, list(zip(chunks, hashes, models, strict=True)))
            if identity and having and self.engine != "scan":
                self._engine.follow(connection, identity)

    def touch(self, document: Document) -> None:
        """Note that a document whose text is as it was has another stat."""
        with self._database.write() as connection:
            documents.touch(connection, document)

    def remove(self, paths: Iterable[str]) -> int:
        """Drop these documents; how many there were."""
        removed = 0
        with self._database.write() as connection:
            for path in paths:
                cache.release(connection, documents.delete(connection, path))
                connection.execute("delete from files where path = ?", (path,))
                removed += connection.changes()
        return removed

    def clear(self) -> None:
        """Drop every document. Vectors stay in the cache, and rows are numbered on from where they were."""
        with self._database.write() as connection:
            documents.clear(connection)

    # ---- keywords --------------------------------------------------------------------------------------------

    def terms(self, terms: Sequence[str]) -> dict[str, int]:
        """How many chunks hold each term; 0 for one that is unknown."""
        with self._database.read() as connection:
            return self._frequencies.of(connection, terms)

    def keyword(
        self,
        terms: Sequence[str],
        *,
        limit: int,
        where: Filter = EVERYTHING,
        known: Mapping[str, int] = MappingProxyType({}),
    ) -> list[KeywordMatch]:
        """The chunks that hold any of the terms, best first; ``known``: what `terms` has just said of them."""
        with self._database.snapshot() as connection:
            return keywords.search(
                connection, self._frequencies, terms, limit=limit, where=where, known=known
            )

    def total(self) -> int:
        """How many chunks there are, without counting them: for a search, where ``counts`` would take too long."""
        with self._database.read() as connection:
            return keywords.total(connection)

    # ---- vectors ---------------------------------------------------------------------------------------------

    def nearest(
        self, vector: Vector, identity: Identity, *, limit: int, where: Filter = EVERYTHING
    ) -> list[tuple[int, float]]:
        """The chunks whose vectors of this identity are nearest, as (rowid, cosine), best first."""
        return self._vectors.search(vector, identity, limit=limit, where=where)

    def around(self, rowids: Iterable[int], *, reach: int) -> dict[int, list[int]]:
        """For each of these rows, those of the same document at most ``reach`` chunks away, itself among them."""
        with self._database.read() as connection:
            return documents.around(connection, rowids, reach)

    def dates_of(self, rowids: Iterable[int]) -> dict[int, str]:
        """The notes' own days of the chunks in these rows, where they have one."""
        with self._database.read() as connection:
            return documents.dates(connection, rowids)

    def cosines(self, rowids: Iterable[int], vector: Vector, identity: Identity) -> dict[int, float]:
        """How near the chunks in these rows are, where they have a vector: the cosine, 0 where it is negative."""
        return self._vectors.cosines(rowids, vector, identity)

    def vectors_of(self, rowids: Iterable[int], identity: Identity) -> dict[int, Vector]:
        """The vectors of the chunks in these rows, where they have one of this identity."""
        from memoriter.store.vectors import nearest

        bound = (json.dumps(list(rowids)), *cache.key_of(identity), str(identity))
        with self._database.read() as connection:
            rows: Any = connection.execute(cache.OF_ROWS, bound)
            return {rowid: nearest.decode(blob) for rowid, blob in rows}

    def refresh(self, identity: Identity) -> None:
        """After a sync: let the vector engine put its own files or tables in order."""
        self._engine.refresh(identity)

    def erase(self, hashes: Iterable[str], identity: Identity | None) -> bool:
        """Keep no byte of these texts' vectors, unless chunks still use them; nor of rows that are gone.

        False when another process reads at this moment, so that the log still has to be emptied.
        """
        with self._database.write() as connection:
            cache.drop(connection, hashes)
        if identity is not None:
            self._engine.purge(identity)
        return self.scrub()

    @property
    def _engine(self) -> VectorIndex:
        return self._vectors.engine

    @property
    def _vectors(self) -> Nearest:
        if self._nearest is None:
            from memoriter.store.vectors import open_engine
            from memoriter.store.vectors.nearest import Nearest

            engine = open_engine(self.engine, self._database, self.path.parent / "vectors")
            self._nearest = Nearest(engine, self._database)
        return self._nearest

    # ---- the embedding cache ---------------------------------------------------------------------------------

    def known(self, identity: Identity, hashes: Iterable[str]) -> set[str]:
        """Those of the hashes that have a vector of this identity."""
        with self._database.read() as connection:
            return cache.known(connection, identity, hashes)

    def load(self, identity: Identity, hashes: Iterable[str]) -> dict[str, Vector]:
        """The vectors of this identity that are there, by hash."""
        from memoriter.store.vectors import nearest

        with self._database.read() as connection:
            blobs = cache.load(connection, identity, hashes)
        return {hash_: nearest.decode(blob) for hash_, blob in blobs.items()}

    def save(self, identity: Identity, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors of this identity, by hash. A wrong length, NaN or infinity is refused."""
        from memoriter.store.vectors import nearest

        blobs = {hash_: nearest.encode(vector, identity.dimensions) for hash_, vector in vectors.items()}
        with self._database.write() as connection:
            cache.save(connection, identity, blobs)

    def prune(self, limit_bytes: int) -> int:
        """Drop vectors, longest out of use first, until the cache fits; those that chunks use stay. How many."""
        with self._database.read() as connection:
            held = value(connection, "select page_count * page_size from pragma_page_count, pragma_page_size")
        if held <= limit_bytes:
            return 0  # the whole file fits: no need to count
        with self._database.write() as connection:
            return cache.prune(connection, limit_bytes)

    # ---- health ----------------------------------------------------------------------------------------------

    def size(self) -> int:
        """Bytes on disk: the database, its log and the vector engine's files."""
        places = [self.path, self.path.with_name("index.db-wal"), *self.path.parent.glob("vectors/*/*")]
        return sum(place.stat().st_size for place in places if place.exists())

    def check(self, *, deep: bool = False) -> list[str]:
        """What is wrong with the index, in sentences; empty when all is well."""
        found = self._database.check(deep=deep)
        if found:
            return found
        with self._database.snapshot() as connection:
            return documents.unsound(connection)

    def scrub(self) -> bool:
        """Leave nothing of removed text in the file and its log; False when others' reading keeps some in the log.

        Rows are overwritten when they go, but FTS5 keeps their tokens until it merges. Vectors of removed text stay
        in the cache until they are pruned.
        """
        with self._database.write() as connection:
            connection.execute("insert into chunks_fts(chunks_fts) values('optimize')")
        return self._database.truncate_log()

    def heal(self, reason: str) -> None:
        """Set the file aside and begin an empty one, unless another thread or process has just done so."""
        broken = self._database.used_inode() or inode_of(self.path)
        aside = set_aside(self.path, broken=broken, timeout_s=self._timeout_s)
        self.healed = _healed(reason, aside)
        self._nearest = None
        self._database.reader()  # begins the new file

    def close(self) -> None:
        """Close every connection; the index can no longer be used."""
        self._nearest = None
        self._database.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _extension(engine: str) -> Callable[[apsw.Connection], None] | None:
    if engine not in ENGINES:
        raise StoreError(f"there is no vector engine {engine!r}; choose one of {', '.join(ENGINES)}")
    if engine != "sqlite-vec":
        return None
    from memoriter.store.vectors.sqlite_vec import load_vec0

    return load_vec0


def _healed(reason: str, aside: str | None) -> str:
    return f"{reason}; set aside as {aside}" if aside else reason
