"""The engine of the extra ``lancedb``: vectors in a LanceDB table, written in batches.

LanceDB does not sync its files, so the table is checked: a pointer in the database records its last row and its number
of rows. A table that differs or does not open is rebuilt. It stores row numbers and vectors, never text, and its
filters contain only integers. The few rows that are newer than the table are compared in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np

from memoriter import logs
from memoriter.errors import StoreError, StoreLocked
from memoriter.records import Identity
from memoriter.store import cache
from memoriter.store.connection import make_private_folder, store_lock, value
from memoriter.store.database import Database
from memoriter.store.vectors.nearest import blocks
from memoriter.store.vectors.sidefiles import best, identity_key, positions

if TYPE_CHECKING:
    from memoriter.store.vectors import Rows, Vector

log = logs.get("store")

#: The meta key that records the contents of the table.
POINTER = "lance"
#: Rows that may be newer than the table, since each write creates a version and three files.
BATCH_ROWS = 256
#: A refresh compacts a table with more versions than this.
MAX_VERSIONS = 50
#: Older versions stay this long for readers that have them open.
KEEP_VERSIONS = timedelta(hours=1)
PURGE_WAIT_S = 60.0
#: The table is rebuilt above this share of deleted rows.
DEAD_SHARE = 0.2


class Lance:
    """Finds the nearest rows with LanceDB."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self._folder = folder
        self._lock = threading.Lock()
        #: The open table, and the pointer that it matched.
        self._open: tuple[str, Any] | None = None
        #: The pointer of a table that failed in a search.
        self._suspect: str | None = None

    def follow(self, connection: apsw.Connection, identity: Identity) -> None:
        """Do nothing inside a transaction that may be rolled back: `ready` adds committed rows."""

    def ready(self, identity: Identity) -> None:
        """Rebuild the table if it does not match its pointer. Add new rows if there are many."""
        with self._database.read() as connection:
            pointer = _pointer(connection, identity)
            newer = value(connection, _NEWER, (pointer.get("last", 0), str(identity), BATCH_ROWS))
        if pointer and not self._usable(pointer):
            self._write(lambda: self._rebuild(identity))
        elif newer >= BATCH_ROWS:
            self._write(lambda: self._append(identity))

    def search(
        self,
        connection: apsw.Connection,
        query: Vector,
        identity: Identity,
        *,
        limit: int,
        allow: Rows | None,
    ) -> list[tuple[int, float]]:
        """Return the nearest rows as (rowid, cosine), best first."""
        pointer = _pointer(connection, identity)
        found = self._tail(connection, query, identity, pointer.get("last", 0), limit, allow)
        if pointer.get("rows"):
            try:
                found += self._in_table(pointer, query, limit, allow)
            except Exception as error:  # noqa: BLE001 - a damaged table can fail in any way
                log.warning("cannot use the LanceDB table, the next search rebuilds it: %s", error)
                self._suspect = json.dumps(pointer)
                found += self._tail(connection, query, identity, 0, limit, allow, until=pointer["last"])
        return sorted(found, key=lambda hit: (-hit[1], hit[0]))[:limit]

    def cosines(
        self, connection: apsw.Connection, query: Vector, identity: Identity, rows: Rows
    ) -> dict[int, float]:
        """Return the cosines of these rows, at least 0. Rows without a vector are left out."""
        found = self.search(connection, query, identity, limit=len(rows), allow=rows)
        return {row: max(0.0, cosine) for row, cosine in found}

    def refresh(self, identity: Identity) -> None:
        """Add new rows, delete removed ones, and compact the table after many small writes."""
        self._write(lambda: self._tidy(identity))

    def _tidy(self, identity: Identity) -> None:
        table, last = self._append(identity)
        dead = self._dead(table, identity)
        if len(dead) > DEAD_SHARE * table.count_rows():
            table, last = self._rebuild(identity)
        elif len(dead):
            table.delete(f"rowid in ({', '.join(str(int(row)) for row in dead)})")
        if table.version > MAX_VERSIONS:
            table.optimize(cleanup_older_than=KEEP_VERSIONS)
        self._point(identity, table, last)

    def purge(self, identity: Identity) -> None:
        """Erase deleted vectors from all files and older versions of the table."""
        with self._lock:
            self._open = None
        with store_lock(self._folder, timeout_s=PURGE_WAIT_S):
            shutil.rmtree(self._folder, ignore_errors=True)
            self._rebuild(identity)

    # ---- the table -------------------------------------------------------------------------------------------

    def _in_table(
        self, pointer: dict[str, Any], query: Vector, limit: int, allow: Rows | None
    ) -> list[tuple[int, float]]:
        table, rows = self._open_if_current(pointer), pointer["rows"]
        width = min(rows, limit if allow is None else 4 * limit + 50)
        while True:
            asked = table.search(query, vector_column_name="vector").distance_type("cosine").limit(width)
            answer = asked.select(["rowid", "_distance"]).to_arrow()
            ids = answer["rowid"].to_numpy()
            near = 1.0 - answer["_distance"].to_numpy()
            if allow is not None:
                kept = np.isin(ids, allow)
                ids, near = ids[kept], near[kept]
            if len(ids) >= limit or width >= rows:
                return [(int(row), float(cosine)) for row, cosine in zip(ids, near, strict=True)]
            width = min(rows, width * 8)

    def _open_if_current(self, pointer: dict[str, Any]) -> Any:
        """Return the open table if it matches the pointer."""
        key = json.dumps(pointer)
        with self._lock:
            if self._open is None or self._open[0] != key:
                table = self._connect().open_table(pointer["table"])
                found = (table.version, table.count_rows())
                if found != (pointer["version"], pointer["rows"]):
                    wanted = (pointer["version"], pointer["rows"])
                    raise StoreError(f"Version and rows are {found} instead of {wanted}.")
                self._open = (key, table)
            return self._open[1]

    def _usable(self, pointer: dict[str, Any]) -> bool:
        if self._suspect == json.dumps(pointer):
            return False
        try:
            self._open_if_current(pointer)
        except Exception as error:  # noqa: BLE001 - as in search
            log.warning("rebuilding the LanceDB table: %s", error)
            return False
        return True

    def _tail(
        self,
        connection: apsw.Connection,
        query: Vector,
        identity: Identity,
        last: int,
        limit: int,
        allow: Rows | None,
        until: int | None = None,
    ) -> list[tuple[int, float]]:
        """Return the nearest of the rows after ``last`` by comparing each."""
        found: list[tuple[int, float]] = []
        rows: Any = connection.execute(cache.AFTER_ROW, (last, *cache.key_of(identity), str(identity)))
        for _, ids, matrix in blocks(rows, identity.dimensions):
            at = np.arange(len(ids)) if allow is None else positions(ids, allow)
            at = at if until is None else at[ids[at] <= until]
            top, near = best(ids[at], matrix[at] @ query, limit)
            found += [(int(row), float(cosine)) for row, cosine in zip(top, near, strict=True)]
        return found

    # ---- writing ---------------------------------------------------------------------------------------------

    def _write(self, work: Callable[[], object]) -> None:
        """Run the work unless another process is writing already."""
        with contextlib.suppress(StoreLocked), store_lock(self._folder, timeout_s=0):
            work()

    def _append(self, identity: Identity) -> tuple[Any, int]:
        """Add rows that are newer than the table. Return the table and its last row."""
        with self._database.read() as connection:
            pointer = _pointer(connection, identity)
        if not pointer or not self._usable(pointer):
            return self._rebuild(identity)
        table = self._open_if_current(pointer)
        last = self._fill(table, identity, pointer["last"])
        self._point(identity, table, last)
        return table, last

    def _rebuild(self, identity: Identity) -> tuple[Any, int]:
        import pyarrow as pa

        make_private_folder(self._folder)
        fields = [("rowid", pa.int64()), ("vector", pa.list_(pa.float32(), identity.dimensions))]
        name = _table_name(identity)
        shutil.rmtree(
            self._folder / f"{name}.lance", ignore_errors=True
        )  # a damaged table cannot be overwritten
        table = self._connect().create_table(name, schema=pa.schema(fields))
        last = self._fill(table, identity, 0)
        self._point(identity, table, last)
        return table, last

    def _fill(self, table: Any, identity: Identity, last: int) -> int:
        import pyarrow as pa

        with self._database.snapshot() as connection:
            rows: Any = connection.execute(cache.AFTER_ROW, (last, *cache.key_of(identity), str(identity)))
            for seen, ids, matrix in blocks(rows, identity.dimensions):
                flat = pa.array(matrix.reshape(-1), type=pa.float32())
                vectors = pa.FixedSizeListArray.from_arrays(flat, identity.dimensions)
                table.add(pa.table({"rowid": pa.array(ids), "vector": vectors}))
                last = seen
        return last

    def _point(self, identity: Identity, table: Any, last: int) -> None:
        """Record the contents of the table. After a crash before this, the old pointer does not match the table."""
        pointer = {
            "identity": identity_key(identity),
            "table": _table_name(identity),
            "last": last,
            "rows": table.count_rows(),
            "version": table.version,
        }
        with self._database.write() as connection:
            statement = "insert or replace into meta(key, value) values(?, ?)"
            connection.execute(statement, (POINTER, json.dumps(pointer)))
        with self._lock:
            self._open = self._suspect = None

    def _dead(self, table: Any, identity: Identity) -> Rows:
        stored = table.search().select(["rowid"]).limit(table.count_rows()).to_arrow()["rowid"].to_numpy()
        with self._database.read() as connection:
            numbers = value(
                connection, "select group_concat(rowid, ' ') from chunks where model = ?", (str(identity),)
            )
        live = np.array((numbers or "").split(), dtype=np.int64)
        dead: Rows = np.setdiff1d(stored, live)
        return dead

    def _connect(self) -> Any:
        os.environ.setdefault("LANCE_LOG", "error")  # otherwise it warns on stderr about every new table
        try:
            import lancedb
        except ImportError as error:
            raise StoreError("LanceDB is not installed. Run: pip install 'memoriter[lancedb]'") from error
        return lancedb.connect(str(self._folder))


_NEWER = "select count(*) from (select 1 from chunks where rowid > ? and +model = ? limit ?)"


def _pointer(connection: apsw.Connection, identity: Identity) -> dict[str, Any]:
    """Return the recorded contents of the table of this identity, or an empty dict."""
    found = value(connection, "select value from meta where key = ?", (POINTER,))
    pointer: dict[str, Any] = json.loads(found) if found else {}
    return pointer if pointer.get("identity") == identity_key(identity) else {}


def _table_name(identity: Identity) -> str:
    return "v" + hashlib.sha256(json.dumps(identity_key(identity)).encode()).hexdigest()[:16]
