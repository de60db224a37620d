"""The rows of documents and chunks in the tables of ``index.db``."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from memoriter.errors import IndexBroken
from memoriter.records import TRUST_LEVELS, Chunk, Document, Identity, Source, Trust
from memoriter.store import cache, keywords
from memoriter.store.connection import translate_values
from memoriter.store.database import Database, read_migrations
from memoriter.store.protocol import Index, RowCache, short_first, value

#: Chunks and places of rows that are kept in memory for the next search: a few megabytes.
MAX_CHUNKS, MAX_PLACES = 1_000, 20_000

#: A document with more chunks is long: it is not read as a whole to find the rows around one of them.
MAX_WHOLE = 256
#: How many chunks before and after a row are found at most.
MAX_REACH = 16

APPLICATION_ID = 0x7265636C  # "recl"

MIGRATIONS = read_migrations("index.sql")


@dataclass(frozen=True, slots=True)
class FileRow:
    """A document in the index."""

    path: str
    source: Source
    mtime_ns: int
    #: In bytes.
    size: int
    sha256: str
    #: Where reading continues when the file has grown.
    state: str = ""


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """The stat, the number of chunks and the trust of an indexed document."""

    mtime_ns: int
    #: In bytes.
    size: int
    chunks: int
    #: The trust of the least trusted chunk.
    trust: Trust
    #: The day of the first chunk.
    date: str | None = None
    #: The start of the first chunk of a transcript.
    begins: str = ""


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk in the index."""

    rowid: int
    chunk: Chunk
    #: The model of its vector, or empty if it has none.
    model: str


@dataclass(frozen=True, slots=True)
class Counts:
    """The size of the index."""

    files: int
    chunks: int
    #: Chunks with a vector of the requested model.
    embedded: int
    #: Total size of the files.
    bytes: int


class Surroundings(NamedTuple):
    """The rows of a document around one of its rows, nearest first."""

    row: int
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def all(self) -> tuple[int, ...]:
        """All of them, and the row itself first."""
        return (self.row, *self.before, *self.after)

    @property
    def nearest(self) -> tuple[int, ...]:
        """The row itself, and those directly before and after it."""
        return (self.row, *self.before[:1], *self.after[:1])


# Two ranges instead of <>: each is a seek in the index on model.
_WITHOUT = """
    select path, rowid from chunks where model < ?1 union all select path, rowid from chunks where model > ?1"""
COUNT_WITHOUT = """
    select (select count(*) from chunks where model < ?1) + (select count(*) from chunks where model > ?1)"""

_COUNTS = """
    select (select count(*) from files), (select count(*) from chunks),
    (select count(*) from chunks where model = ?1 and model <> ''), (select coalesce(sum(size), 0) from files)"""

_SUMMARIES = """
    select f.path, f.mtime_ns, f.size, count(c.rowid),
    max(case c.trust when 'untrusted' then 3 when 'relayed' then 2 when 'agent' then 1 else 0 end),
    (select n.date from chunks n where n.path = f.path order by n.start_line limit 1),
    case f.source when 'sessions'
    then (select substr(n.text, 1, 240) from chunks n where n.path = f.path order by n.start_line limit 1) else '' end
    from json_each(?) wanted cross join files f on f.path = wanted.value join chunks c on c.path = f.path
    group by f.path"""
_OF_SESSION = """
    select path from files where source = 'sessions' and json_valid(state)
    and json_extract(state, '$.session') = ? order by mtime_ns desc"""

# By line and not by row: a chunk moves to a new row when it gets its vector.
_AROUND = """
    select c.rowid, (select group_concat(rowid) from (select n.rowid from chunks n
            where n.path = c.path and (n.start_line, n.rowid) < (c.start_line, c.rowid)
            order by n.start_line desc, n.rowid desc limit ?2)),
        (select group_concat(rowid) from (select n.rowid from chunks n
            where n.path = c.path and (n.start_line, n.rowid) > (c.start_line, c.rowid)
            order by n.start_line, n.rowid limit ?2))
    from json_each(?1) wanted cross join chunks c on c.rowid = wanted.value"""

# The next chunks that are found are often of the same documents, so a document is read as a whole if it is not long.
_PLACES = """
    select (select group_concat(rowid) from (select n.rowid from chunks n where n.path = d.path
        order by n.start_line, n.rowid limit ?2))
    from (select distinct c.path from json_each(?1) wanted cross join chunks c on c.rowid = wanted.value) d"""

_OF_PATH = "select rowid from chunks where path = ? order by start_line, rowid"
_DATES = """
    select c.rowid, c.date from json_each(?) wanted cross join chunks c on c.rowid = wanted.value
    where c.date is not null"""

_CHUNKS = """
    select c.rowid, c.headings, c.model, c.id, c.path, c.source, c.start_line, c.end_line, c.date, c.text, c.trust
    from json_each(?) wanted cross join chunks c on c.rowid = wanted.value"""

_INSERT_CHUNK = """
    insert into chunks(id, path, source, start_line, end_line, headings, date, hash, model, text, trust)
    values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""

_INSERT_FILE = """
    insert or replace into files(path, source, mtime_ns, size, sha256, indexed_at, note, state)
    values(?, ?, ?, ?, ?, ?, ?, ?)"""

# FTS5 keeps the words of deleted rows until its segments merge.
_DELETED = "insert or replace into meta(key, value) values('unscrubbed', 'yes')"

_CONTRADICTIONS = {
    "chunks have no keyword row": """
        select count(*) from chunks where rowid not in (select id from chunks_fts_docsize)""",
    "keyword rows have no chunk": """
        select count(*) from chunks_fts_docsize where id not in (select rowid from chunks)""",
    "chunks have no file": """
        select count(*) from chunks where path not in (select path from files)""",
    "chunks have lost their vector": """
        select count(*) from chunks where model <> '' and hash not in (select hash from embedding_cache)""",
}


class SqliteDocuments(Index):
    """The rows of documents and chunks. `Index` documents the public methods."""

    path: Path
    _database: Database

    def __init__(self) -> None:
        self._without = RowCache[str, int](limit=8)
        self._chunks = RowCache[int, StoredChunk](limit=MAX_CHUNKS)
        self._places = RowCache[int, tuple[int, ...]](limit=MAX_PLACES)

    # ---- reading ---------------------------------------------------------------------------------------------

    def meta(self, key: str) -> str | None:
        with self._database.read() as connection:
            found: str | None = value(connection, "select value from meta where key = ?", (key,))
        return found

    def files(self) -> dict[str, FileRow]:
        with self._database.read() as connection:
            rows: Any = connection.execute("select path, source, mtime_ns, size, sha256, state from files")
            return {row[0]: FileRow(*row) for row in rows}

    def count_without(self, model: str) -> int:
        with self._database.read() as connection:
            counts = self._without.of(connection)
            if model not in counts:
                counts[model] = int(value(connection, COUNT_WITHOUT, (model,)))
            return counts[model]

    def rows_without(self, model: str, paths: Collection[str] | None = None) -> list[int]:
        with self._database.read() as connection:
            rows: Any = connection.execute(_WITHOUT, (model,))
            return short_first(rows, paths)

    def counts(self, model: str) -> Counts:
        with self._database.read() as connection:
            rows: Any = connection.execute(_COUNTS, (model,)).fetchall()
            return Counts(*rows[0])

    def chunks(self, rowids: Iterable[int]) -> dict[int, StoredChunk]:
        rows = list(rowids)
        with self._database.read() as connection:
            known = self._chunks.of(connection) if len(rows) <= MAX_CHUNKS else {}
            if missing := [row for row in rows if row not in known]:
                found: Any = connection.execute(_CHUNKS, (json.dumps(missing),))
                known |= {row[0]: stored_chunk(*row) for row in found}
            return {row: known[row] for row in rows if row in known}

    def stored_of(self, path: str) -> list[StoredChunk]:
        with self._database.read() as connection:
            rows: Any = connection.execute(_OF_PATH, (path,))
            return list(self.chunks([row[0] for row in rows]).values())

    def summaries(self, paths: Iterable[str]) -> dict[str, DocumentSummary]:
        with self._database.read() as connection:
            rows: Any = connection.execute(_SUMMARIES, (json.dumps(list(paths)),))
            return {
                row[0]: DocumentSummary(row[1], row[2], row[3], TRUST_LEVELS[row[4]], *row[5:])
                for row in rows
            }

    def paths_of(self, session: str) -> list[str]:
        with self._database.read() as connection:
            rows: Any = connection.execute(_OF_SESSION, (session,))
            return [row[0] for row in rows]

    def around(self, rowids: Iterable[int], *, reach: int) -> dict[int, Surroundings]:
        assert reach <= MAX_REACH
        rows = list(rowids)
        with self._database.read() as connection:
            known = self._places.of(connection)
            if missing := [row for row in rows if row not in known]:
                known |= _read_places(connection, missing)
            return {row: _surroundings(row, known[row], reach) for row in rows if row in known}

    def dates_of(self, rowids: Iterable[int]) -> dict[int, str]:
        with self._database.read() as connection:
            rows: Any = connection.execute(_DATES, (json.dumps(list(rowids)),))
            return dict(rows)

    # ---- writing ---------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        """Return the writer, for statements and the values of their rows."""
        with self._database.write() as connection, translate_values(self.path, IndexBroken):
            yield connection

    def set_meta(self, **values: str) -> None:
        with self._writing() as connection:
            connection.executemany("insert or replace into meta(key, value) values(?, ?)", values.items())

    def replace(
        self, document: Document, chunks: Sequence[Chunk], *, identity: Identity | None = None
    ) -> int:
        hashes = [chunk.hash for chunk in chunks]
        with self._writing() as connection:
            embedded = cache.known(connection, identity, hashes) if identity else set()
            models = [str(identity) if hash_ in embedded else "" for hash_ in hashes]
            cache.release(connection, _delete(connection, document.path, document.from_line) - set(hashes))
            _insert(connection, zip(chunks, models, strict=True))
            stat = (document.mtime_ns, document.size, document.sha256)
            reading = (time.time(), document.note, document.state)
            connection.execute(_INSERT_FILE, (document.path, document.source, *stat, *reading))
            if identity and embedded:
                self._follow(connection, identity)
            return len(hashes) - models.count("")

    def assign(self, rowids: Iterable[int], identity: Identity) -> int:
        with self._writing() as connection:
            stored = self.chunks(rowids).values()
            embedded = cache.known(connection, identity, {item.chunk.hash for item in stored})
            ready = [item for item in stored if item.chunk.hash in embedded]
            rows = [(item.rowid,) for item in ready]
            connection.executemany("delete from chunks_fts where rowid = ?", rows)
            connection.executemany("delete from chunks where rowid = ?", rows)
            _insert(connection, ((item.chunk, str(identity)) for item in ready))
            if ready:
                self._follow(connection, identity)
            return len(ready)

    def _follow(self, connection: apsw.Connection, identity: Identity) -> None:
        """Let the vector engine add new rows, inside the transaction."""

    def touch(self, document: Document) -> None:
        stat = (document.mtime_ns, document.size, document.path)
        with self._writing() as connection:
            connection.execute("update files set mtime_ns = ?, size = ? where path = ?", stat)

    def remove(self, paths: Iterable[str]) -> int:
        removed = 0
        with self._writing() as connection:
            for path in paths:
                cache.release(connection, _delete(connection, path))
                connection.execute("delete from files where path = ?", (path,))
                removed += connection.changes()
        return removed

    def clear(self) -> None:
        with self._writing() as connection:
            connection.execute(_DELETED)
            connection.execute("delete from files")
            connection.execute("delete from chunks")
            connection.execute("insert into chunks_fts(chunks_fts) values('delete-all')")


def _surroundings(row: int, rows: tuple[int, ...], reach: int) -> Surroundings:
    """Return the rows within reach of a row, from rows of its document, which are in order."""
    at = rows.index(row)
    return Surroundings(row, rows[max(0, at - reach) : at][::-1], rows[at + 1 : at + 1 + reach])


def _read_places(connection: apsw.Connection, rowids: Collection[int]) -> dict[int, tuple[int, ...]]:
    """Return, for these rows and all others of their documents, the rows of the document in order.

    Of a long document, only these rows are returned, each with the rows at most `MAX_REACH` chunks away.
    """
    found: Any = connection.execute(_PLACES, (json.dumps(list(rowids)), MAX_WHOLE + 1))
    known: dict[int, tuple[int, ...]] = {}
    for (joined,) in found:
        if len(rows := _numbers(joined)) <= MAX_WHOLE:
            known |= dict.fromkeys(rows, rows)
    if in_long := [row for row in rowids if row not in known]:
        near: Any = connection.execute(_AROUND, (json.dumps(in_long), MAX_REACH))
        for row, joined_before, joined_after in near:
            known[row] = (*_numbers(joined_before)[::-1], row, *_numbers(joined_after))
    return known


def _numbers(joined: str | None) -> tuple[int, ...]:
    return tuple(map(int, joined.split(","))) if joined else ()


def stored_chunk(rowid: int, headings: str, model: str, *fields: Any) -> StoredChunk:
    """Return the chunk in a row. Raises `IndexBroken` if its values are damaged."""
    try:
        id_, path, source, start_line, end_line, date, text, trust = fields
        above = tuple(json.loads(headings)) if headings != "[]" else ()
        chunk = Chunk(id_, path, source, start_line, end_line, text, above, date, trust)
    except (ValueError, TypeError) as error:
        raise IndexBroken(f"Chunk {rowid} of the index cannot be read.") from error
    return StoredChunk(rowid, chunk, model)


def contradictions(connection: apsw.Connection) -> list[str]:
    """Describe where the tables contradict each other."""
    counts = [(value(connection, statement), problem) for problem, statement in _CONTRADICTIONS.items()]
    return [f"{count} {problem}" for count, problem in counts if count]


def _insert(connection: apsw.Connection, chunks: Iterable[tuple[Chunk, str]]) -> None:
    """Insert chunks, each with the model of its vector."""
    for chunk, model in chunks:
        position = (chunk.id, chunk.path, chunk.source, chunk.start_line, chunk.end_line)
        headings = json.dumps(chunk.headings, ensure_ascii=False)
        content = (headings, chunk.date, chunk.hash, model, chunk.text, chunk.trust)
        connection.execute(_INSERT_CHUNK, (*position, *content))
        connection.execute(
            "insert into chunks_fts(rowid, title, body) values(?, ?, ?)",
            (connection.last_insert_rowid(), *keywords.columns(chunk)),
        )


def _delete(connection: apsw.Connection, path: str, from_line: int = 1) -> set[str]:
    """Delete the chunks of a document from a line on. Return the hashes of their vectors."""
    bindings = (path, from_line)
    found = connection.execute(
        "select rowid, hash, model from chunks where path = ? and start_line >= ?", bindings
    )
    rows: list[Any] = found.fetchall()
    connection.executemany("delete from chunks_fts where rowid = ?", ((row[0],) for row in rows))
    connection.execute("delete from chunks where path = ? and start_line >= ?", bindings)
    if rows:
        connection.execute(_DELETED)
    return {hash_ for _, hash_, model in rows if model}
