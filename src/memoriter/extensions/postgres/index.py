"""`PostgresIndex`: documents, chunks, keywords and vectors of one agent on a Postgres server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from memoriter.extensions.postgres.chunks import storable
from memoriter.extensions.postgres.database import PostgresDatabase
from memoriter.extensions.postgres.keywords import tokens_of
from memoriter.extensions.postgres.schema import INDEX_TABLES
from memoriter.extensions.postgres.server import lock_number
from memoriter.extensions.postgres.vacuum import vacuum
from memoriter.extensions.postgres.vectors import DROP, PostgresVectors, keys
from memoriter.records import Chunk, Document, Identity
from memoriter.store.documents import StoredChunk


class PostgresIndex(PostgresVectors):
    """One index of one agent. `Index` documents the public methods."""

    engine = "pgvector"
    healed: str | None = None
    remote: str | None = None
    left_elsewhere: tuple[str, ...] = ()

    def __init__(self, database: PostgresDatabase, name: str, folder: Path) -> None:
        super().__init__(database, name)
        self._folder = folder

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

    def snapshot(self) -> contextlib.AbstractContextManager[None]:
        return self._database.pinned()

    @contextlib.contextmanager
    def transaction(self, wait_s: float | None = None) -> Iterator[None]:
        with self._database.write(wait_s):
            yield

    def lock(self, name: str, wait_s: float) -> contextlib.AbstractContextManager[None]:
        """Hold an advisory lock of the server. A lost connection releases it."""
        number = lock_number(self._database.tenant, self._database.agent, self.name, name)
        return self._database.server.locks.hold(number, wait_s, self.place)

    def ready(self, identity: Identity) -> None:
        """Do nothing: the server searches what is committed."""

    # ---- writing ---------------------------------------------------------------------------------------------

    def replace(
        self, document: Document, chunks: Sequence[Chunk], *, identity: Identity | None = None
    ) -> int:
        new = [storable(chunk) for chunk in chunks]
        hashes = [chunk.hash for chunk in new]
        with self._database.write():
            embedded = self.known(identity, hashes) if identity else set()
            models = [str(identity) if hash_ in embedded else "" for hash_ in hashes]
            self._release(self._delete_from(document.path, document.from_line) - set(hashes))
            self._insert(list(zip(new, models, strict=True)))
            self._insert_file(document)
        return len(hashes) - models.count("")

    def assign(self, rowids: Iterable[int], identity: Identity) -> int:
        with self._database.write():
            stored = self.chunks(rowids).values()
            embedded = self.known(identity, {item.chunk.hash for item in stored})
            ready = [item for item in stored if item.chunk.hash in embedded]
            if ready:
                self._delete(ready)
                self._insert([(item.chunk, str(identity)) for item in ready])
        return len(ready)

    def remove(self, paths: Iterable[str]) -> int:
        removed = 0
        with self._database.write() as connection:
            for path in paths:
                self._release(self._delete_from(path))
                self._change("delete from index_files where index_name = $1 and path = $2", path)
                removed += connection.changes()
        return removed

    def _insert(self, chunks: Sequence[tuple[Chunk, str]]) -> None:
        """Insert chunks, each with the model of its vector."""
        rows = self._insert_rows([(chunk, model, sum(map(len, tokens_of(chunk)))) for chunk, model in chunks])
        self._add_terms({row: chunk for row, (chunk, _) in zip(rows, chunks, strict=True)})

    def _delete_from(self, path: str, from_line: int = 1) -> set[str]:
        """Delete the chunks of a document from a line on. Return the hashes of their vectors."""
        stored = [item for item in self.stored_of(path) if item.chunk.start_line >= from_line]
        self._delete(stored)
        return {item.chunk.hash for item in stored if item.model}

    def _delete(self, stored: Sequence[StoredChunk]) -> None:
        if stored:
            self._remove_terms({item.rowid: item.chunk for item in stored})
            self._delete_rows([item.rowid for item in stored])

    # ---- health ----------------------------------------------------------------------------------------------

    def size(self) -> int:
        """Return the bytes of the rows of this index, without the server's own structures."""
        rows = self._read(
            " union all ".join(
                f"select coalesce(sum(pg_column_size(t.*)), 0)::bigint from {name} t where index_name = $1"  # noqa: S608 - constants
                for name in INDEX_TABLES
            )
        )
        return sum(row[0] for row in rows)

    def erase(self, hashes: Iterable[str], identity: Identity | None) -> bool:  # noqa: ARG002 - one place for all
        """Erase the vectors of these texts, unless chunks use them, and what is left of deleted rows.

        Return False if a transaction that began before may still read them.
        """
        self._copies.drop()
        self._change(DROP, keys(hashes))
        return self.scrub()

    def scrub(self) -> bool:
        """Remove the versions of deleted rows from the tables. Return False if a transaction may still read them."""
        self._change("delete from index_meta where index_name = $1 and key = 'unscrubbed'")
        return vacuum(self._database, INDEX_TABLES)

    def heal(self, reason: str) -> None:
        """Empty the index. Its vectors stay."""
        self.healed = reason
        with self._database.write():
            self.clear()
            self._change("delete from index_meta where index_name = $1")

    def close(self) -> None:
        self._copies.drop()
        self._database.close()
