"""`Index`, which is derived, and `Transactions` for rows of truth: what other packages use of a store.

An index consists of four parts: documents, keywords, vectors and the embedding cache. One contract test runs on every
implementation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, TypeVar
from weakref import WeakKeyDictionary

import apsw

from memoriter import logs
from memoriter.errors import IndexBroken

if TYPE_CHECKING:
    from memoriter.records import Chunk, Document, Identity, Source
    from memoriter.store.documents import Counts, DocumentSummary, FileRow, StoredChunk, Surroundings
    from memoriter.store.keywords import KeywordMatch
    from memoriter.store.vectors import Vector

#: A limit that no table reaches. Databases write "no limit" differently.
NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class Filter:
    """Restricts a search to some chunks."""

    source: Source | None = None
    #: Compared character by character. End it with "/" for a folder.
    path_prefix: str | None = None


NO_FILTER = Filter()


class Rows(Protocol):
    """The rows of a statement."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchall(self) -> list[Any]:
        """Return all rows."""


class Connection(Protocol):
    """A connection inside a transaction."""

    def execute(self, statement: str, bindings: Any = None, /) -> Rows:
        """Run a statement and return its rows."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Rows:
        """Run a statement once for each sequence of values."""

    def changes(self) -> int:
        """Return how many rows the last statement changed."""


@dataclass(frozen=True, slots=True)
class Traces:
    """Remains of deleted rows, as codes of sentences for the receipt of an erasure."""

    #: What `Transactions.purge` removes.
    removed: str
    #: The same, while others still read it.
    busy: str
    #: What no program can remove at once.
    kept: tuple[str, ...] = ()


class Transactions(Protocol):
    """A database with one writer at a time. Safe to use from several threads and processes."""

    #: The file or the server, for messages.
    name: str
    traces: Traces

    def read(self) -> AbstractContextManager[Connection]:
        """Return a connection for reading. Errors are those of this package."""

    def snapshot(self) -> AbstractContextManager[Connection]:
        """Return a connection, as `read` does. All reads of this thread inside see one state of the database."""

    def pinned(self) -> AbstractContextManager[None]:
        """Let this thread read one state of the database, also in code that is not part of the store."""

    def write(self, wait_s: float | None = None) -> AbstractContextManager[Connection]:
        """Run one transaction: commit at the end, roll back on any error. A nested call joins the outer one.

        ``wait_s`` is how long to wait for other writers, instead of the timeout of the database. At the end, the commit
        is as durable as the database was opened or configured to be.
        """

    def purge(self) -> bool:
        """Remove what deleted rows leave behind, as far as the database can. Return False while others read it."""

    def changes_of_others(self) -> int | None:
        """Return a number that changes when another process has changed the database; None if none is known."""
        return None

    def check(self, *, deep: bool = False) -> list[str]:
        """Return what is wrong with the database, one sentence each."""

    def close(self) -> None:
        """Close every connection."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def value(connection: Connection, statement: str, bindings: tuple[Any, ...] = ()) -> Any:
    """Return the first column of the first row, or None without a row."""
    rows = connection.execute(statement, bindings).fetchall()
    return rows[0][0] if rows else None


def short_first(rows: Iterable[tuple[str, int]], paths: Collection[str] | None) -> list[int]:
    """Return the rows of some documents, or of all, in order. Those of long documents, such as logs, come last."""
    found = [(path, row) for path, row in rows if paths is None or path in paths]
    counts = Counter(path for path, _ in found)
    return [row for _, row in sorted((counts[path] > LONG_DOCUMENT, row) for path, row in found)]


log = logs.get("store")

#: Rows of a document that waits until others have their vectors.
LONG_DOCUMENT = 200

T = TypeVar("T")


class Documents(Protocol):
    """Documents and their chunks.

    The row of a chunk never changes: it is inserted with or without a vector, and deleted with its document.
    """

    def files(self) -> dict[str, FileRow]:
        """Return every document by path."""

    def count_without(self, model: str) -> int:
        """Count the chunks that have no vector of this model."""

    def rows_without(self, model: str, paths: Collection[str] | None = None) -> list[int]:
        """Return the rows without a vector of this model, of all documents or of some: long ones last."""

    def counts(self, model: str) -> Counts:
        """Count files and chunks, and the chunks that have a vector of this model."""

    def chunks(self, rowids: Iterable[int]) -> dict[int, StoredChunk]:
        """Return the chunks in these rows. Deleted rows are left out."""

    def stored_of(self, path: str) -> list[StoredChunk]:
        """Return the chunks of one document in line order, each with its row."""

    def summaries(self, paths: Iterable[str]) -> dict[str, DocumentSummary]:
        """Return summaries of these documents by path. Documents without chunks are left out."""

    def paths_of(self, session: str) -> list[str]:
        """Return the paths of the transcripts of a session, newest first."""

    def around(self, rowids: Iterable[int], *, reach: int) -> dict[int, Surroundings]:
        """Return, for each row, the rows of the same document at most ``reach`` chunks away."""

    def dates_of(self, rowids: Iterable[int]) -> dict[int, str]:
        """Return the dates of the notes of these rows. Rows of undated notes are left out."""

    def replace(
        self, document: Document, chunks: Sequence[Chunk], *, identity: Identity | None = None
    ) -> int:
        """Replace the document with this path, from its ``from_line`` on. Return how many chunks have a vector.

        A chunk gets its vector of this identity if that is in the cache. The others are found only by keyword until
        `assign` gives them one.
        """

    def assign(self, rowids: Iterable[int], identity: Identity) -> int:
        """Give chunks their vectors of this identity from the cache, each in a new row. Return how many.

        Rows that were deleted meanwhile and chunks without a vector in the cache are left out.
        """

    def touch(self, document: Document) -> None:
        """Update the stat of a document whose text is unchanged."""

    def remove(self, paths: Iterable[str]) -> int:
        """Delete these documents. Return how many existed."""

    def clear(self) -> None:
        """Delete every document. Vectors stay in the cache, and row numbers continue."""


class Keywords(Protocol):
    """The words of the chunks."""

    def terms(self, terms: Sequence[str]) -> dict[str, int]:
        """Return how many chunks contain each term."""

    def keyword(
        self,
        terms: Sequence[str],
        *,
        limit: int,
        where: Filter = NO_FILTER,
        known: Mapping[str, int] = MappingProxyType({}),
    ) -> list[KeywordMatch]:
        """Return the chunks that contain any of the terms, best first. ``known`` has frequencies from `terms`."""

    def total(self) -> int:
        """Return the number of chunks."""


class Vectors(Protocol):
    """The vectors of the chunks, and the engine that searches them."""

    #: The name of the vector engine.
    engine: str
    #: Where the vector engine keeps copies on other machines, for people; None if it keeps none.
    remote: str | None
    #: Where vectors may still be that an earlier engine has sent there. Known after `erase`.
    left_elsewhere: tuple[str, ...]

    def nearest(
        self, vector: Vector, identity: Identity, *, limit: int, where: Filter = NO_FILTER
    ) -> list[tuple[int, float]]:
        """Return the chunks whose vectors of this identity are nearest, as (rowid, cosine), best first."""

    def cosines(self, rowids: Iterable[int], vector: Vector, identity: Identity) -> dict[int, float]:
        """Return the cosines of these rows, at least 0. Rows without a vector are left out."""

    def vectors_of(self, rowids: Iterable[int], identity: Identity) -> dict[int, Vector]:
        """Return the vectors of these rows. Rows without one of this identity are left out."""

    @property
    def vector_problem(self) -> str | None:
        """The reason why the vector engine did not work as intended, in a sentence."""

    def ready(self, identity: Identity) -> None:
        """Let the vector engine add what another engine has written. Inside a snapshot it could not see it."""

    def refresh(self, identity: Identity) -> None:
        """Let the vector engine update its files or tables after a sync."""

    def erase(self, hashes: Iterable[str], identity: Identity | None) -> bool:
        """Erase every byte of the vectors of these texts, unless chunks use them, and of deleted rows.

        Return False if others are reading, so that some bytes are still to be erased. Raises `StoreUnavailable` after
        all else is erased if a vector store on another machine does not answer.
        """


class VectorCache(Protocol):
    """Vectors by the hash of their text, so that no text is embedded twice."""

    def known(self, identity: Identity, hashes: Iterable[str]) -> set[str]:
        """Return the hashes that have a vector of this identity."""

    def load(self, identity: Identity, hashes: Iterable[str]) -> dict[str, Vector]:
        """Return the cached vectors of this identity by hash."""

    def save(self, identity: Identity, vectors: Mapping[str, Vector]) -> None:
        """Store vectors of this identity by hash. Raises `StoreError` for a wrong length, NaN or infinity."""

    def prune(self, limit_bytes: int) -> int:
        """Delete vectors that no chunk uses, longest unused first, until the cache fits. Return how many."""


class Index(Documents, Keywords, Vectors, VectorCache, Protocol):
    """Documents, chunks, keywords and vectors as of the last sync. Safe to use from many threads and processes."""

    #: What was wrong with the index that this one replaced.
    healed: str | None

    @property
    def place(self) -> str:
        """Where the index is, for people."""

    @property
    def folder(self) -> Path:
        """A folder for files that are derived from the index. Its contents may be deleted at any time."""

    def meta(self, key: str) -> str | None:
        """Return a value that the index stores about itself."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Let this thread read one state of the index, whatever others commit meanwhile."""

    def transaction(self, wait_s: float | None = None) -> AbstractContextManager[None]:
        """Commit everything that is written inside together at the end, or nothing. One thread writes at a time.

        Raises `StoreLocked` if others still write after ``wait_s``, or after the timeout of the store.
        """

    def lock(self, name: str, wait_s: float) -> AbstractContextManager[None]:
        """Hold a lock with this name on the index against every other thread, process and machine.

        Raises `LockTimeout` when it is still held after ``wait_s``.
        """

    def set_meta(self, **values: str) -> None:
        """Store values about the index under these keys."""

    def size(self) -> int:
        """Return the bytes on disk."""

    def check(self, *, deep: bool = False) -> list[str]:
        """Describe what is wrong with the index. An empty list means that it is sound."""

    @property
    def keeps_deleted(self) -> bool:
        """Whether the store may still contain text that was deleted since the last `scrub`."""
        return self.meta("unscrubbed") is not None

    def belongs_to(self, workspace: str) -> bool:
        """Return whether the rows are those of a workspace, or there are none. Others must not answer."""
        return self.meta("workspace") in (None, workspace)

    def scrub(self) -> bool:
        """Erase deleted text. Return False if readers keep some of it."""

    def heal(self, reason: str) -> None:
        """Replace a damaged index by an empty one, unless another thread or process has just done so."""

    def healing(self, work: Callable[[], T], rebuild: Callable[[], object] = lambda: None) -> T:
        """Do work that uses the index. If the index is damaged, replace it, rebuild it, and do the work again."""
        try:
            return work()
        except IndexBroken as broken:
            log.warning("the index is damaged and is built again: %s", broken)
            self.heal(str(broken))
            rebuild()
            return work()

    def close(self) -> None:
        """Close every connection. The index cannot be used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


K = TypeVar("K")
V = TypeVar("V")

_ROW_SET = """
    select (select value from meta where key = 'store'), (select coalesce(max(rowid), 0) from chunks),
    (select count(*) from chunks)"""


class RowSet(NamedTuple):
    """The set of rows that exist. Two sets with the same newest row and the same total are equal."""

    store: str
    newest: int
    total: int


class SnapshotValue(Generic[V]):
    """A value that is read once in a snapshot, since nothing changes in it. A search asks for it several times."""

    def __init__(self, read: Callable[[apsw.Connection], V]) -> None:
        self._read = read
        self._held: WeakKeyDictionary[apsw.Connection, tuple[int, V]] = WeakKeyDictionary()

    def of(self, connection: apsw.Connection) -> V:
        """Return the value that the connection sees."""
        if connection.txn_state() != apsw.SQLITE_TXN_READ:  # before the first read, or while writing
            return self._read(connection)
        version = connection.data_version()
        held = self._held.get(connection)
        if held is not None and held[0] == version:
            return held[1]
        value = self._read(connection)
        self._held[connection] = (version, value)
        return value


def _read_row_set(connection: apsw.Connection) -> RowSet:
    """Read which rows exist. SQLite counts pages of an index: 12 µs in 100,000 chunks."""
    rows: Any = connection.execute(_ROW_SET).fetchall()
    return RowSet(*rows[0])


row_set = SnapshotValue(_read_row_set).of


class RowCache(Generic[K, V]):
    """Values that depend only on which rows exist, since rows never change. Dropped when rows are added or deleted."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: tuple[RowSet | None, dict[K, V]] = (None, {})

    def of(self, connection: apsw.Connection) -> dict[K, V]:
        """Return the values for the rows that the connection sees. The caller adds what is missing."""
        if connection.txn_state() == apsw.SQLITE_TXN_WRITE:
            return {}  # rows may be rolled back and their numbers reused
        rows, values = self._held
        now = row_set(connection)
        if rows != now or len(values) > self._limit:
            values = {}
            self._held = (now, values)
        return values
