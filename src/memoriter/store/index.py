"""``index.db``: documents, chunks, keywords and vectors as of the last sync. All of it is derived from the files.

The row of a chunk never changes. It is inserted with or without a vector, and deleted with its document. A chunk that
gets its vector later moves to a new row, because vector engines look only for rows that are newer than theirs.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from memoriter.errors import IndexBroken, LockTimeout, SchemaTooNew
from memoriter.files.platform import CAN_REPLACE_OPEN_FILES
from memoriter.records import Identity
from memoriter.store import cache, documents, keywords
from memoriter.store.connection import inode_of, store_lock
from memoriter.store.database import Database, discard, move_away
from memoriter.store.documents import APPLICATION_ID, MIGRATIONS, SqliteDocuments
from memoriter.store.keywords import KeywordMatch
from memoriter.store.protocol import NO_FILTER, Filter, value
from memoriter.store.vectors import (
    DefaultSettings,
    EngineSettings,
    distrust_files,
    find_engine,
    remove_unused,
)

if TYPE_CHECKING:
    import apsw

    from memoriter.store.vectors import Vector
    from memoriter.store.vectors.nearest import Nearest, VectorIndex


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


class SqliteIndex(SqliteDocuments):
    """The contents of ``index.db``. `Index` documents the public methods."""

    def __init__(
        self,
        folder: Path,
        *,
        engine: str = "scan",
        settings: EngineSettings | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        super().__init__()
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

    def snapshot(self) -> contextlib.AbstractContextManager[None]:
        return self._database.pinned()

    @contextlib.contextmanager
    def transaction(self, wait_s: float | None = None) -> Iterator[None]:
        with self._database.write(wait_s):
            yield

    def lock(self, name: str, wait_s: float) -> contextlib.AbstractContextManager[None]:
        """Hold the lock file with this name, beside the database. Raises `LockTimeout` or `StoreError`."""
        return store_lock(self.path.with_name(name), timeout_s=wait_s, late=LockTimeout)

    # ---- keywords --------------------------------------------------------------------------------------------

    def terms(self, terms: Sequence[str]) -> dict[str, int]:
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
        with self._database.snapshot() as connection:
            return keywords.search(
                connection, self._frequencies, terms, limit=limit, where=where, known=known
            )

    def total(self) -> int:
        with self._database.read() as connection:
            return keywords.total(connection)

    # ---- vectors ---------------------------------------------------------------------------------------------

    def nearest(
        self, vector: Vector, identity: Identity, *, limit: int, where: Filter = NO_FILTER
    ) -> list[tuple[int, float]]:
        return self._vectors.search(vector, identity, limit=limit, where=where)

    def cosines(self, rowids: Iterable[int], vector: Vector, identity: Identity) -> dict[int, float]:
        return self._vectors.cosines(rowids, vector, identity)

    def vectors_of(self, rowids: Iterable[int], identity: Identity) -> dict[int, Vector]:
        from memoriter.store.vectors import nearest

        bound = (json.dumps(list(rowids)), *cache.key_of(identity), str(identity))
        with self._database.read() as connection:
            rows: Any = connection.execute(cache.OF_ROWS, bound)
            return {rowid: nearest.decode(blob) for rowid, blob in rows}

    @property
    def vector_problem(self) -> str | None:
        return self._engine.problem

    def ready(self, identity: Identity) -> None:
        if self.engine != "scan":
            self._engine.ready(identity)

    def refresh(self, identity: Identity) -> None:
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

    def _follow(self, connection: apsw.Connection, identity: Identity) -> None:
        if self.engine != "scan":
            self._engine.follow(connection, identity)

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
        with self._database.read() as connection:
            return cache.known(connection, identity, hashes)

    def load(self, identity: Identity, hashes: Iterable[str]) -> dict[str, Vector]:
        from memoriter.store.vectors import nearest

        with self._database.read() as connection:
            blobs = cache.load(connection, identity, hashes)
        return {hash_: nearest.decode(blob) for hash_, blob in blobs.items()}

    def save(self, identity: Identity, vectors: Mapping[str, Vector]) -> None:
        from memoriter.store.vectors import nearest

        blobs = {hash_: nearest.encode(vector, identity.dimensions) for hash_, vector in vectors.items()}
        with self._writing() as connection:
            cache.save(connection, identity, blobs)

    def prune(self, limit_bytes: int) -> int:
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
        # Vector files are compared with their digests when they are used next, and built again if they differ.
        if self.engine == "scan":
            self._close_engine()
            distrust_files(self.path.parent)
        found = self._database.check(deep=deep)
        if found:
            return found
        with self._database.snapshot() as connection:
            return documents.contradictions(connection)

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
        broken = self._database.used_inode() or inode_of(self.path)
        self._close_engine()
        if not CAN_REPLACE_OPEN_FILES:
            self._database.release()
        aside = discard(self.path, MIGRATIONS, broken=broken, timeout_s=self._timeout_s)
        self.healed = _healing_message(reason, aside)
        self._database.reader()  # creates the new file

    def close(self) -> None:
        self._close_engine()
        self._database.close()

    def _close_engine(self) -> None:
        nearest, self._nearest = self._nearest, None
        if nearest is not None:
            nearest.engine.close()


def _healing_message(reason: str, aside: str | None) -> str:
    return f"{reason.rstrip('.')}. The file was renamed to {aside}." if aside else reason
