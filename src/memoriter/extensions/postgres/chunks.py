"""The rows of documents and chunks on Postgres. Every function uses the transaction of its caller."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memoriter.errors import IndexBroken
from memoriter.extensions.postgres.connection import PostgresConnection
from memoriter.records import TRUST_LEVELS, Chunk, Document
from memoriter.store.documents import Counts, DocumentSummary, FileRow, StoredChunk, Surroundings

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


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk to insert."""

    chunk: Chunk
    #: The model of its vector, or empty if it has none.
    model: str
    #: The number of its tokens.
    length: int


def storable(chunk: Chunk) -> Chunk:
    """Return the chunk without what a text of Postgres cannot contain: null characters and lone surrogates."""
    return replace(chunk, text=_clean(chunk.text), headings=tuple(map(_clean, chunk.headings)))


def _clean(text: str) -> str:
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


# ---- reading ------------------------------------------------------------------------------------------------------


def state(connection: PostgresConnection, index: str) -> State:
    """Return the state of an index; that of an empty one if nothing was written yet. A snapshot reads it once."""
    if connection.memo is not None and ("state", index) in connection.memo:
        known: State = connection.memo["state", index]
        return known
    rows = connection.execute(
        "select chunks, tokens, next_row, in_graph from index_state where index_name = $1", (index,)
    )
    found = State(*rows[0]) if rows else State()
    if connection.memo is not None:
        connection.memo["state", index] = found
    return found


def files(connection: PostgresConnection, index: str) -> dict[str, FileRow]:
    """Return every document by path."""
    statement = "select path, source, mtime_ns, size, sha256, state from index_files where index_name = $1"
    return {row[0]: FileRow(*row) for row in connection.execute(statement, (index,))}


def count_without(connection: PostgresConnection, index: str, model: str) -> int:
    """Count the chunks that have no vector of this model. Two ranges instead of <>: each is a seek."""
    rows = connection.execute(
        """select (select count(*) from index_chunks where index_name = $1 and model < $2)
        + (select count(*) from index_chunks where index_name = $1 and model > $2)""",
        (index, model),
    )
    return int(rows[0][0])


def rows_without(
    connection: PostgresConnection, index: str, model: str, paths: Collection[str] | None
) -> list[int]:
    """Return the rows that have no vector of this model, in order; of all documents, or of some."""
    rows = connection.execute(
        """select path, rowid from index_chunks where index_name = $1 and model < $2
        union all select path, rowid from index_chunks where index_name = $1 and model > $2""",
        (index, model),
    )
    return sorted(rowid for path, rowid in rows if paths is None or path in paths)


def counts(connection: PostgresConnection, index: str, model: str) -> Counts:
    """Count files and chunks, and the chunks that have a vector of this model."""
    rows = connection.execute(
        """select count(*), coalesce(sum(size), 0)::bigint,
        (select count(*) from index_chunks where index_name = $1 and model = $2 and model <> '')
        from index_files where index_name = $1""",
        (index, model),
    )
    count, size, embedded = rows[0]
    return Counts(count, state(connection, index).chunks, embedded, size)


def chunks(connection: PostgresConnection, index: str, rowids: Iterable[int]) -> dict[int, StoredChunk]:
    """Return the chunks in these rows, in their order. Deleted rows are left out."""
    wanted = list(rowids)
    found = {row[0]: _stored(*row) for row in connection.execute(_CHUNKS, (index, wanted))}
    return {rowid: found[rowid] for rowid in wanted if rowid in found}


def stored_of(connection: PostgresConnection, index: str, path: str) -> list[StoredChunk]:
    """Return the chunks of one document in line order, each with its row."""
    return [_stored(*row) for row in connection.execute(_OF_PATH, (index, path))]


def summaries(connection: PostgresConnection, index: str, paths: Iterable[str]) -> dict[str, DocumentSummary]:
    """Return summaries of these documents by path. Documents without chunks are left out."""
    rows = connection.execute(_SUMMARIES, (index, list(paths)))
    return {
        row[0]: DocumentSummary(row[1], row[2], row[3], TRUST_LEVELS[row[4]], row[5], row[6]) for row in rows
    }


def paths_of(connection: PostgresConnection, index: str, session: str) -> list[str]:
    """Return the paths of the transcripts of a session, newest first."""
    return [row[0] for row in connection.execute(_OF_SESSION, (index, session))]


def around(
    connection: PostgresConnection, index: str, rowids: Iterable[int], reach: int
) -> dict[int, Surroundings]:
    """Return, for each row, the rows of the same document within reach."""
    rows = connection.execute(_AROUND, (index, list(rowids), reach))
    return {row: Surroundings(row, tuple(before), tuple(after)) for row, before, after in rows}


def dates(connection: PostgresConnection, index: str, rowids: Iterable[int]) -> dict[int, str]:
    """Return the dates of the notes of these rows. Rows of undated notes are left out."""
    statement = """
        select rowid, date from index_chunks where index_name = $1 and rowid = any($2) and date is not null"""
    return {row[0]: row[1] for row in connection.execute(statement, (index, list(rowids)))}


def _stored(rowid: int, headings: str, model: str, *fields: Any) -> StoredChunk:
    try:
        id_, path, source, start_line, end_line, date, text, trust = fields
        chunk = Chunk(id_, path, source, start_line, end_line, text, tuple(json.loads(headings)), date, trust)
    except (ValueError, TypeError) as error:
        raise IndexBroken(f"Chunk {rowid} of the index cannot be read.") from error
    return StoredChunk(rowid, chunk, model)


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


def contradictions(connection: PostgresConnection, index: str) -> list[str]:
    """Describe where the tables contradict each other."""
    found = {problem: connection.execute(sql, (index,))[0][0] for problem, sql in _CONTRADICTIONS.items()}
    return [f"{count} {problem}" for problem, count in found.items() if count]


# ---- writing ------------------------------------------------------------------------------------------------------


def insert(connection: PostgresConnection, index: str, new: Sequence[NewChunk]) -> range:
    """Insert chunks. Return their rows, in order."""
    after = connection.execute(_NEXT_ROW, (index, len(new)))[0][0]
    rows = range(after - len(new), after)
    if new:
        columns = zip(*(_values(row, item) for row, item in zip(rows, new, strict=True)), strict=True)
        connection.execute(_INSERT_CHUNKS, (index, *map(list, columns)))
        connection.execute(_COUNT, (index, len(new), sum(item.length for item in new)))
    return rows


def _values(row: int, item: NewChunk) -> tuple[object, ...]:
    chunk = item.chunk
    position = (row, chunk.id, chunk.path, chunk.source, chunk.start_line, chunk.end_line)
    headings = json.dumps(chunk.headings, ensure_ascii=False)
    content = (headings, chunk.date, bytes.fromhex(chunk.hash), item.model, chunk.trust, item.length)
    return (*position, *content, chunk.text)


def insert_file(connection: PostgresConnection, index: str, document: Document) -> None:
    """Insert or replace the row of a document."""
    stat = (document.source, document.mtime_ns, document.size, document.sha256)
    note = _clean(document.note) if document.note else document.note
    reading = (time.time(), note, _clean(document.state))
    connection.execute(_INSERT_FILE, (index, document.path, *stat, *reading))


def delete(connection: PostgresConnection, index: str, stored: Sequence[StoredChunk]) -> None:
    """Delete these chunks."""
    rows = connection.execute(
        "delete from index_chunks where index_name = $1 and rowid = any($2) returning length",
        (index, [item.rowid for item in stored]),
    )
    connection.execute(_COUNT, (index, -len(rows), -sum(row[0] for row in rows)))


def touch(connection: PostgresConnection, index: str, document: Document) -> None:
    """Update the stat of a document."""
    connection.execute(
        "update index_files set mtime_ns = $2, size = $3 where index_name = $1 and path = $4",
        (index, document.mtime_ns, document.size, document.path),
    )


def clear(connection: PostgresConnection, index: str) -> None:
    """Delete every document. Row numbers continue."""
    for name in ("index_files", "index_chunks", "index_terms"):
        connection.execute(f"delete from {name} where index_name = $1", (index,))  # noqa: S608 - constants
    connection.execute("update index_state set chunks = 0, tokens = 0 where index_name = $1", (index,))
