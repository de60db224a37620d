"""``index.db``: documents, chunks, keywords and vectors as they were read at the last sync. All of it is derived.

The index is told what to hold and asked what it holds; it reads no files, makes no vectors and weighs no hits. A
chunk's row never changes: it comes with a vector or without, and goes with its document.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from recollect.errors import SchemaTooNew, StoreBroken, StoreError
from recollect.records import Chunk, Document, Identity, Source
from recollect.store import cache, healing, keywords
from recollect.store.database import Database, value
from recollect.store.keywords import Filter, KeywordMatch
from recollect.store.schema import APPLICATION_ID, MIGRATIONS

if TYPE_CHECKING:
    from recollect.store.vectors import Vector, VectorIndex

__all__ = ["Counts", "FileRow", "Filter", "Index", "KeywordMatch", "StoredChunk", "open_index"]

ENGINES = ("scan", "sqlite-vec")
EVERYTHING = Filter()


@dataclass(frozen=True, slots=True)
class FileRow:
    """A document as it was when it was indexed."""

    path: str
    source: Source
    mtime_ns: int
    size: int  #: bytes
    sha256: str


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk in the index."""

    rowid: int
    chunk: Chunk
    model: str  #: of its vector; empty when it has none


@dataclass(frozen=True, slots=True)
class Counts:
    """How much the index holds."""

    files: int
    chunks: int
    embedded: int  #: chunks with a vector of the model asked for
    bytes: int  #: of the files


def open_index(folder: Path, *, engine: str = "scan", timeout_s: float = 30.0) -> Index:
    """Open the index in a folder, or begin one. What cannot be read is set aside, for all of it can be made again."""
    try:
        return Index(folder, engine=engine, timeout_s=timeout_s)
    except (StoreBroken, SchemaTooNew) as error:
        aside = healing.set_aside(folder / "index.db", broken=None, timeout_s=timeout_s)
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
        self._vectors: VectorIndex | None = None  # made at first use: it brings numpy
        self._database = Database(
            self.path,
            application_id=APPLICATION_ID,
            migrations=MIGRATIONS,
            synchronous="NORMAL",
            timeout_s=timeout_s,
            on_connect=_extension(engine),
        )

    # ---- what is held -----------------------------------------------------------------------------------------

    def meta(self, key: str) -> str | None:
        """A note that the index keeps about itself."""
        with self._database.read() as connection:
            found: str | None = value(connection, "select value from meta where key = ?", (key,))
        return found

    def set_meta(self, **values: str) -> None:
        """Keep notes under these keys."""
        with self._database.write() as connection:
            connection.executemany("insert or replace into meta(key, value) values(?, ?)", values.items())

    def files(self) -> dict[str, FileRow]:
        """Every document, by path."""
        with self._database.read() as connection:
            rows: Any = connection.execute("select path, source, mtime_ns, size, sha256 from files")
            return {row[0]: FileRow(*row) for row in rows}

    def stale(self, model: str) -> set[str]:
        """Paths of documents with a chunk that has no vector of this model."""
        with self._database.read() as connection:
            rows = connection.execute(
                "select path from chunks where model < ?1 union select path from chunks where model > ?1",
                (model,),
            )
            return {row[0] for row in rows}

    def counts(self, model: str) -> Counts:
        """How much is held, and how much of it has a vector of this model."""
        with self._database.read() as connection:
            rows: list[Any] = connection.execute(_COUNTS, (model,)).fetchall()
        return Counts(*rows[0])

    def chunks(self, rowids: Iterable[int]) -> dict[int, StoredChunk]:
        """The chunks in these rows; a row that is gone is left out."""
        with self._database.read() as connection:
            rows: list[Any] = connection.execute(_CHUNKS, (_array(rowids),)).fetchall()
        return {row[0]: self._stored(*row) for row in rows}

    def _stored(self, rowid: int, headings: str, model: str, *fields: Any) -> StoredChunk:
        try:
            id_, path, source, start_line, end_line, date, text = fields
            chunk = Chunk(id_, path, source, start_line, end_line, text, tuple(json.loads(headings)), date)
        except (ValueError, TypeError) as error:
            raise StoreBroken(f"{self.path}: chunk {rowid} cannot be read") from error
        return StoredChunk(rowid, chunk, model)

    # ---- writing ----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything written inside is seen by others at once, at the end, or not at all."""
        with self._database.write():
            yield

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything that this thread reads inside sees one state, whatever is committed meanwhile."""
        with self._database.snapshot():
            yield

    def replace(
        self, document: Document, chunks: Sequence[Chunk], *, identity: Identity | None = None
    ) -> None:
        """Put a document in place of what stood under its path.

        A chunk whose vector of this identity is in the cache gets it; the others can be found by keyword.
        """
        with self._database.write() as connection:
            hashes = [chunk.hash for chunk in chunks]
            self._delete(connection, document.path, keep=set(hashes))
            having = cache.known(connection, identity, hashes) if identity else set()
            for chunk, hash_ in zip(chunks, hashes, strict=True):
                _insert(connection, chunk, hash_, str(identity) if hash_ in having else "")
            connection.execute(_FILE, (*_file_values(document), time.time(), document.note))
            if having and identity:
                self._followed(connection, identity)

    def touch(self, document: Document) -> None:
        """Note that a document whose text is as it was has another stat."""
        with self._database.write() as connection:
            stat = (document.mtime_ns, document.size, document.path)
            connection.execute("update files set mtime_ns = ?, size = ? where path = ?", stat)

    def touch(self, document: Document) -> None:
        """Keep a document's new stat: its bytes, and so its rows, are the same."""
        with self._database.write() as connection:
            connection.execute(
                "update files set mtime_ns = ?, size = ? where path = ?",
                (document.mtime_ns, document.size, document.path),
            )

    def remove(self, paths: Iterable[str]) -> int:
        """Drop these documents; how many there were."""
        with self._database.write() as connection:
            removed = 0
            for path in paths:
                self._delete(connection, path)
                connection.execute("delete from files where path = ?", (path,))
                removed += connection.changes()
        return removed

    def clear(self) -> None:
        """Drop every document. Vectors stay in the cache, and rows are numbered on from where they were."""
        with self._database.write() as connection:
            connection.execute("delete from files")
            connection.execute("delete from chunks")
            connection.execute("insert into chunks_fts(chunks_fts) values('delete-all')")

    def _delete(
        self, connection: apsw.Connection, path: str, keep: set[str] | frozenset[str] = frozenset()
    ) -> None:
        rows: list[Any] = connection.execute(_ROWS_OF, (path,)).fetchall()
        if not rows:
            return
        connection.executemany("delete from chunks_fts where rowid = ?", ((row[0],) for row in rows))
        connection.execute("delete from chunks where path = ?", (path,))
        cache.release(connection, {hash_ for _, hash_, model in rows if model} - keep)

    def _followed(self, connection: apsw.Connection, identity: Identity) -> None:
        """Only an engine that lives in the database must take part in the transaction."""
        if self.engine != "scan":
            self._engine.follow(connection, identity)

    # ---- keywords ---------------------------------------------------------------------------------------------

    def terms(self, terms: Sequence[str]) -> dict[str, int]:
        """How many chunks hold each term; 0 for one that is unknown."""
        with self._database.read() as connection:
            return keywords.frequencies(connection, terms)

    def keyword(self, terms: Sequence[str], *, limit: int, where: Filter = EVERYTHING) -> list[KeywordMatch]:
        """The chunks that hold any of the terms, best first."""
        with self._database.snapshot(), self._database.read() as connection:
            return keywords.search(connection, terms, limit=limit, where=where)

    # ---- vectors ----------------------------------------------------------------------------------------------

    def nearest(
        self, vector: Vector, identity: Identity, *, limit: int, where: Filter = EVERYTHING
    ) -> list[tuple[int, float]]:
        """The chunks whose vectors of this identity are nearest, as (rowid, cosine), best first."""
        from recollect.store.vectors.nearest import nearest  # noqa: PLC0415

        return nearest(self._engine, self._database, vector, identity, limit=limit, where=where)

    def vectors_of(self, rowids: Iterable[int], identity: Identity) -> dict[int, Vector]:
        """The vectors of the chunks in these rows, where they have one of this identity."""
        from recollect.store.vectors import codec  # noqa: PLC0415

        with self._database.read() as connection:
            bound = (_array(rowids), *cache.key_of(identity), str(identity))
            return {row: codec.decode(blob) for row, blob in connection.execute(cache.OF_ROWS, bound)}

    def refresh(self, identity: Identity) -> None:
        """After a sync: let the vector engine put its own files or tables in order."""
        self._engine.refresh(identity)

    @property
    def _engine(self) -> VectorIndex:
        if self._vectors is None:
            from recollect.store.vectors import open_engine  # noqa: PLC0415

            self._vectors = open_engine(self.engine, self._database, self.path.parent / "vectors")
        return self._vectors

    # ---- the embedding cache ----------------------------------------------------------------------------------

    def known(self, identity: Identity, hashes: Iterable[str]) -> set[str]:
        """Those of the hashes that have a vector of this identity."""
        with self._database.read() as connection:
            return cache.known(connection, identity, hashes)

    def load(self, identity: Identity, hashes: Iterable[str]) -> dict[str, Vector]:
        """The vectors of this identity that are there, by hash."""
        from recollect.store.vectors import codec  # noqa: PLC0415

        with self._database.read() as connection:
            blobs = cache.load(connection, identity, hashes)
        return {hash_: codec.decode(blob) for hash_, blob in blobs.items()}

    def save(self, identity: Identity, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors of this identity, by hash. A wrong length, NaN or infinity is refused."""
        from recollect.store.vectors import codec  # noqa: PLC0415

        blobs = {hash_: codec.encode(vector, identity.dimensions) for hash_, vector in vectors.items()}
        with self._database.write() as connection:
            cache.save(connection, identity, blobs)

    def prune(self, limit_bytes: int) -> int:
        """Drop vectors longest out of use until the cache fits; those that chunks use stay. How many were dropped."""
        with self._database.read() as connection:
            held = connection.execute(
                "select page_count * page_size from pragma_page_count, pragma_page_size"
            )
            if held.fetchall()[0][0] <= limit_bytes:
                return 0  # the whole file fits: no need to count
        with self._database.write() as connection:
            return cache.prune(connection, limit_bytes)

    # ---- health -----------------------------------------------------------------------------------------------

    def check(self, *, deep: bool = False) -> list[str]:
        """What is wrong with the index, in sentences; empty when all is well."""
        found = self._database.check(deep=deep)
        if found:
            return found
        with self._database.snapshot(), self._database.read() as connection:
            counted = [(value(connection, statement), words) for statement, words in _SOUND]
        return [f"{count} {words}" for count, words in counted if count]

    def size(self) -> int:
        """Bytes on disk: the database, its log and the vector engine's files."""
        places = [self.path, self.path.with_name("index.db-wal"), *self.path.parent.glob("vectors/*/*")]
        return sum(place.stat().st_size for place in places if place.exists())

    def size(self) -> int:
        """Bytes on disk, with what waits in the write-ahead log and with the vector files."""
        files = [*self.path.parent.glob("index.db*"), *(self.path.parent / "vectors").rglob("*")]
        return sum(file.stat().st_size for file in files if file.is_file())

    def heal(self, reason: str) -> None:
        """Set the file aside and begin an empty one, unless another thread or process has done so already."""
        aside = healing.set_aside(self.path, broken=self._database.used_inode(), timeout_s=self._timeout_s)
        self.healed = _healed(reason, aside)
        self._vectors = None
        self._database.reader()  # begins the new file

    def close(self) -> None:
        """Close every connection; the index can no longer be used."""
        self._vectors = None
        self._database.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# Two ranges instead of <>: each is a seek in the index on model.
_STALE = "select path from chunks where model < ?1 union select path from chunks where model > ?1"

_COUNTS = """
    select (select count(*) from files), (select count(*) from chunks),
    (select count(*) from chunks where model = ?1 and model <> ''), (select coalesce(sum(size), 0) from files)"""

_ROWS_OF = "select rowid, hash, model from chunks where path = ?"

_CHUNKS = """
    select c.rowid, c.headings, c.model, c.id, c.path, c.source, c.start_line, c.end_line, c.date, c.text
    from json_each(?) wanted cross join chunks c on c.rowid = wanted.value"""

_CHUNK = """
    insert into chunks(id, path, source, start_line, end_line, headings, date, hash, model, text)
    values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""

_FILE = """
    insert or replace into files(path, source, mtime_ns, size, sha256, indexed_at, note)
    values(?, ?, ?, ?, ?, ?, ?)"""

_SOUND = (
    (
        "select count(*) from chunks where rowid not in (select id from chunks_fts_docsize)",
        "chunks cannot be found by keyword",
    ),
    (
        "select count(*) from chunks_fts_docsize where id not in (select rowid from chunks)",
        "keyword rows belong to no chunk",
    ),
    ("select count(*) from chunks where path not in (select path from files)", "chunks belong to no file"),
    (
        "select count(*) from chunks where model <> '' and hash not in (select hash from embedding_cache)",
        "chunks have lost their vector",
    ),
)


def _insert(connection: apsw.Connection, chunk: Chunk, hash_: str, model: str) -> None:
    place = (chunk.id, chunk.path, chunk.source, chunk.start_line, chunk.end_line)
    headings = json.dumps(chunk.headings, ensure_ascii=False)
    connection.execute(_CHUNK, (*place, headings, chunk.date, hash_, model, chunk.text))
    connection.execute(
        "insert into chunks_fts(rowid, title, body) values(?, ?, ?)",
        (connection.last_insert_rowid(), *keywords.columns(chunk)),
    )


def _file_values(document: Document) -> tuple[str, str, int, int, str]:
    return document.path, document.source, document.mtime_ns, document.size, document.sha256


def _extension(engine: str) -> Callable[[apsw.Connection], None] | None:
    if engine not in ENGINES:
        raise StoreError(f"there is no vector engine {engine!r}; choose one of {', '.join(ENGINES)}")
    if engine == "scan":
        return None
    from recollect.store.vectors.extension import load_vec0  # noqa: PLC0415

    return load_vec0


def _array(values: Iterable[int]) -> str:
    return json.dumps(list(values))


def _healed(reason: str, aside: str | None) -> str:
    return f"{reason}; set aside as {aside}" if aside else reason
