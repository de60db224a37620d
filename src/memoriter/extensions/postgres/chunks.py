"""The rows of documents and chunks on Postgres."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from memoriter.extensions.postgres.connection import Rows
from memoriter.extensions.postgres.database import PostgresDatabase
from memoriter.records import TRUST_LEVELS, Chunk, Document
from memoriter.store.documents import (
    Counts,
    DocumentSummary,
    FileRow,
    StoredChunk,
    Surroundings,
    stored_chunk,
)
from memoriter.store.protocol import Index, short_first

_SUMMARIES = """
    select f.path, f.mtime_ns, f.size, count(*),
    max(case c.trust when 'untrusted' then 3 when 'relayed' then 2 when 'agent' then 1 else 0 end),
    (select n.date from index_chunks n where n.index_name = $1 and n.path = f.path order by n.start_line limit 1),
    case f.source when 'sessions' then (select left(n.text, 240) from index_chunks n
        where n.index_name = $1 and n.path = f.path order by n.start_line limit 1) else '' end
    from index_files f join index_chunks c on c.index_name = f.index_name and c.path = f.path
    where f.index_name = $1 and f.path = any($2) group by f.path, f.mtime_ns, f.size, f.source"""

_OF_SESSION = """
    select path from index_files where index_name = $1 and source = 'sessions' and state like '{%'
    and state::json ->> 'session' = $2 order by mtime_ns desc"""

# By line and not by row: a chunk moves to a new row when it gets its vector.
_AROUND = """
    select c.rowid,
        array(select n.rowid from index_chunks n where n.index_name = $1 and n.path = c.path
            and (n.start_line, n.rowid) < (c.start_line, c.rowid)
            order by n.start_line desc, n.rowid desc limit $3),
        array(select n.rowid from index_chunks n where n.index_name = $1 and n.path = c.path
            and (n.start_line, n.rowid) > (c.start_line, c.rowid) order by n.start_line, n.rowid limit $3)
    from index_chunks c where c.index_name = $1 and c.rowid = any($2)"""

_CHUNK_COLUMNS = "rowid, headings, model, id, path, source, start_line, end_line, date, text, trust"
_CHUNKS = f"select {_CHUNK_COLUMNS} from index_chunks where index_name = $1 and rowid = any($2)"  # noqa: S608 - constants
_OF_PATH = f"""
    select {_CHUNK_COLUMNS} from index_chunks where index_name = $1 and path = $2 order by start_line, rowid"""  # noqa: S608 - constants

_INSERT_CHUNKS = """
    insert into index_chunks(index_name, rowid, id, path, source, start_line, end_line, headings, date, hash, model,
        trust, length, text)
    select $1, * from unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::integer[],
        $8::text[], $9::text[], $10::bytea[], $11::text[], $12::text[], $13::integer[], $14::text[])"""

_INSERT_FILE = """
    insert into index_files(index_name, path, source, mtime_ns, size, sha256, indexed_at, note, state)
    values($1, $2, $3, $4, $5, $6, $7, $8, $9)
    on conflict(index_name, path) do update set source = excluded.source, mtime_ns = excluded.mtime_ns,
    size = excluded.size, sha256 = excluded.sha256, indexed_at = excluded.indexed_at, note = excluded.note,
    state = excluded.state"""

_NEXT_ROW = """
    insert into index_state(index_name, next_row) values($1, 1 + $2)
    on conflict(index_name) do update set next_row = index_state.next_row + $2 returning next_row"""

_COUNT = """
    update index_state set chunks = chunks + $2, tokens = tokens + $3 where index_name = $1"""

_SET_META = """
    insert into index_meta(index_name, key, value) values($1, $2, $3)
    on conflict(index_name, key) do update set value = excluded.value"""

# Two ranges instead of <>: each is a seek.
_COUNT_WITHOUT = """
    select (select count(*) from index_chunks where index_name = $1 and model < $2)
    + (select count(*) from index_chunks where index_name = $1 and model > $2)"""
_WITHOUT = """
    select path, rowid from index_chunks where index_name = $1 and model < $2
    union all select path, rowid from index_chunks where index_name = $1 and model > $2"""
_COUNTS = """
    select count(*), coalesce(sum(size), 0)::bigint,
    (select count(*) from index_chunks where index_name = $1 and model = $2 and model <> '')
    from index_files where index_name = $1"""
_DATES = "select rowid, date from index_chunks where index_name = $1 and rowid = any($2) and date is not null"

_CONTRADICTIONS = {
    "chunks have no file": """
        select count(*) from index_chunks c where index_name = $1
        and not exists(select from index_files f where f.index_name = $1 and f.path = c.path)""",
    "chunks have lost their vector": """
        select count(*) from index_chunks c where index_name = $1 and model <> ''
        and not exists(select from index_vectors v
            where v.index_name = $1 and v.model = c.model and v.hash = c.hash)""",
    "chunks are not counted": """
        select abs(count(*) - coalesce((select chunks from index_state where index_name = $1), 0))
        from index_chunks where index_name = $1""",
    "tokens have no keyword": """
        select abs(coalesce(sum(length), 0) - coalesce((select tokens from index_state where index_name = $1), 0))
        from index_chunks where index_name = $1""",
}


@dataclass(frozen=True, slots=True)
class State:
    """Facts about all chunks of an index."""

    chunks: int = 0
    tokens: int = 0
    next_row: int = 1
    #: Whether its vectors are in the graph.
    in_graph: bool = False

    @property
    def mean_length(self) -> float:
        """The mean number of tokens of a chunk."""
        return self.tokens / self.chunks if self.chunks else 1.0


class PostgresDocuments(Index):
    """The rows of documents and chunks of one index. `Index` documents the public methods."""

    def __init__(self, database: PostgresDatabase, name: str) -> None:
        self.name = name
        self._database = database

    def _read(self, statement: str, *bound: object) -> Rows:
        """Run a statement whose first value is the name of the index."""
        with self._database.read() as connection:
            return connection.execute(statement, (self.name, *bound))

    def _fetch(self, statement: str, *bound: object) -> Rows:
        """Run a statement of a search, as `_read` does. Its rows come in binary form."""
        with self._database.read() as connection:
            return connection.fetch(statement, (self.name, *bound))

    def _change(self, statement: str, *bound: object) -> Rows:
        """Run a statement in a transaction. Inside another one, it is a part of that."""
        with self._database.write() as connection:
            return connection.execute(statement, (self.name, *bound))

    # ---- reading ---------------------------------------------------------------------------------------------

    def _state(self) -> State:
        """Return the state of the index; that of an empty one if nothing was written yet. A snapshot reads it once."""
        with self._database.read() as connection:
            memo = connection.memo if connection.memo is not None else {}
            if ("state", self.name) not in memo:
                rows = self._read(
                    "select chunks, tokens, next_row, in_graph from index_state where index_name = $1"
                )
                memo["state", self.name] = State(*rows[0]) if rows else State()
            found: State = memo["state", self.name]
            return found

    def meta(self, key: str) -> str | None:
        rows = self._read("select value from index_meta where index_name = $1 and key = $2", key)
        return rows[0][0] if rows else None

    def files(self) -> dict[str, FileRow]:
        rows = self._read(
            "select path, source, mtime_ns, size, sha256, state from index_files where index_name = $1"
        )
        return {row[0]: FileRow(*row) for row in rows}

    def count_without(self, model: str) -> int:
        return int(self._read(_COUNT_WITHOUT, model)[0][0])

    def rows_without(self, model: str, paths: Collection[str] | None = None) -> list[int]:
        return short_first(self._read(_WITHOUT, model), paths)

    def counts(self, model: str) -> Counts:
        with self._database.snapshot():
            files, size, embedded = self._read(_COUNTS, model)[0]
            return Counts(files, self._state().chunks, embedded, size)

    def chunks(self, rowids: Iterable[int]) -> dict[int, StoredChunk]:
        wanted = list(rowids)
        found = {row[0]: stored_chunk(*row) for row in self._read(_CHUNKS, wanted)}
        return {rowid: found[rowid] for rowid in wanted if rowid in found}

    def stored_of(self, path: str) -> list[StoredChunk]:
        return [stored_chunk(*row) for row in self._read(_OF_PATH, path)]

    def summaries(self, paths: Iterable[str]) -> dict[str, DocumentSummary]:
        rows = self._read(_SUMMARIES, list(paths))
        return {
            row[0]: DocumentSummary(row[1], row[2], row[3], TRUST_LEVELS[row[4]], *row[5:]) for row in rows
        }

    def paths_of(self, session: str) -> list[str]:
        return [row[0] for row in self._read(_OF_SESSION, session)]

    def around(self, rowids: Iterable[int], *, reach: int) -> dict[int, Surroundings]:
        rows = self._read(_AROUND, list(rowids), reach)
        return {row: Surroundings(row, tuple(before), tuple(after)) for row, before, after in rows}

    def dates_of(self, rowids: Iterable[int]) -> dict[int, str]:
        return dict(self._read(_DATES, list(rowids)))

    def check(self, *, deep: bool = False) -> list[str]:  # noqa: ARG002 - the server guards against damaged pages
        with self._database.snapshot():
            found = {problem: self._read(sql)[0][0] for problem, sql in _CONTRADICTIONS.items()}
        return [f"{count} {problem}" for problem, count in found.items() if count]

    # ---- writing ---------------------------------------------------------------------------------------------

    def set_meta(self, **values: str) -> None:
        with self._database.write() as connection:
            connection.executemany(_SET_META, [(self.name, *item) for item in values.items()])

    def touch(self, document: Document) -> None:
        self._change(
            "update index_files set mtime_ns = $2, size = $3 where index_name = $1 and path = $4",
            document.mtime_ns,
            document.size,
            document.path,
        )

    def clear(self) -> None:
        with self._database.write():
            for name in ("index_files", "index_chunks", "index_terms"):
                self._change(f"delete from {name} where index_name = $1")  # noqa: S608 - constants
            self._change("update index_state set chunks = 0, tokens = 0 where index_name = $1")
            self.set_meta(unscrubbed="yes")

    def _insert_rows(self, chunks: Sequence[tuple[Chunk, str, int]]) -> range:
        """Insert chunks, each with its model and its number of tokens. Return their rows, in order."""
        after = self._change(_NEXT_ROW, len(chunks))[0][0]
        rows = range(after - len(chunks), after)
        if chunks:
            columns = zip(*(_values(row, *new) for row, new in zip(rows, chunks, strict=True)), strict=True)
            self._change(_INSERT_CHUNKS, *map(list, columns))
            self._change(_COUNT, len(chunks), sum(length for _, _, length in chunks))
        return rows

    def _insert_file(self, document: Document) -> None:
        stat = (document.source, document.mtime_ns, document.size, document.sha256)
        note = _clean(document.note) if document.note else document.note
        self._change(_INSERT_FILE, document.path, *stat, time.time(), note, _clean(document.state))

    def _delete_rows(self, rowids: Sequence[int]) -> None:
        rows = self._change(
            "delete from index_chunks where index_name = $1 and rowid = any($2) returning length", rowids
        )
        self._change(_COUNT, -len(rows), -sum(row[0] for row in rows))
        self.set_meta(unscrubbed="yes")


def storable(chunk: Chunk) -> Chunk:
    """Return the chunk without what a text of Postgres cannot contain: null characters and lone surrogates."""
    return replace(chunk, text=_clean(chunk.text), headings=tuple(map(_clean, chunk.headings)))


def _clean(text: str) -> str:
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _values(row: int, chunk: Chunk, model: str, length: int) -> tuple[object, ...]:
    position = (row, chunk.id, chunk.path, chunk.source, chunk.start_line, chunk.end_line)
    headings = json.dumps(chunk.headings, ensure_ascii=False)
    content = (headings, chunk.date, bytes.fromhex(chunk.hash), model, chunk.trust, length)
    return (*position, *content, chunk.text)
