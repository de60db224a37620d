"""Vector engines outside the database: one engine over the tables of any store. Extensions bring the stores.

A table stores row numbers and vectors, never text. The database has every vector too, so a table is derived: a pointer
in the database records what the table contains, and a table that differs or does not open is rebuilt. Rows that are
newer than the table are compared in memory. While the store of the tables does not answer, all rows are.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np

from memoriter import logs
from memoriter.errors import StoreBroken, StoreError, StoreLocked, StoreUnavailable, first_line
from memoriter.extensions.external_tables.tables import TableStore, VectorTable
from memoriter.records import Identity
from memoriter.sentences import sentence
from memoriter.store import cache
from memoriter.store.connection import store_lock
from memoriter.store.protocol import value
from memoriter.store.vectors.nearest import VectorIndex, best, blocks, positions, products
from memoriter.store.vectors.sidefiles import identity_key

if TYPE_CHECKING:
    from memoriter.store.vectors import EngineContext, Rows, Vector

log = logs.get("store")

#: Rows that may be newer than the table, since each write to a table is slow.
BATCH_ROWS = 256
PURGE_WAIT_S = 60.0
#: The table is rebuilt above this share of deleted rows.
DEAD_SHARE = 0.2
#: A filter that allows at most this many rows is answered in memory.
SMALL_FILTER = 2_000
#: Rows that are read and added together.
FILL_ROWS = 4096
#: Seconds before a store that failed is asked again, unless it names a time.
COOLDOWN_S = 30.0


class ExternalIndex(VectorIndex):
    """Finds the nearest rows with a table outside the database."""

    def __init__(self, context: EngineContext, store: TableStore) -> None:
        self.store = store
        self._database = context.database
        self._lock_path = context.folder
        self._lock = threading.Lock()
        #: The open table, and the pointer that it matched.
        self._open: tuple[str, VectorTable] | None = None
        #: The pointer of a table that failed in a search.
        self._suspect: str | None = None
        self._failure: str | None = None
        self._retry_at = 0.0

    @property
    def problem(self) -> str | None:
        """The reason why the store cannot be used now. Its rows are compared in memory meanwhile."""
        why = self.store.missing() or self._failure
        return sentence("search.compared_here", store=self.store.label, why=why.rstrip(".")) if why else None

    def ready(self, identity: Identity) -> None:
        """Rebuild the table if it does not match its pointer. Add new rows if there are many.

        `follow` adds none: its transaction may be rolled back.
        """
        with self._database.read() as connection:
            if connection.txn_state() == apsw.SQLITE_TXN_WRITE or self._is_paused():
                return
            pointer = self._pointer(connection, identity)
            newer = value(connection, _NEWER, (pointer.get("sent", 0), str(identity), BATCH_ROWS))
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
        if allow is not None and len(allow) <= SMALL_FILTER:
            found = self._of_rows(connection, query, identity, allow)
        else:
            pointer = self._pointer(connection, identity)
            found, since = self._ask_table(pointer, query, limit, allow)
            # A row that is in both has its exact value from memory.
            found |= self._newer(connection, query, identity, since, limit, allow)
        return sorted(found.items(), key=lambda hit: (-hit[1], hit[0]))[:limit]

    def cosines(
        self, connection: apsw.Connection, query: Vector, identity: Identity, rows: Rows
    ) -> dict[int, float]:
        found = self._of_rows(connection, query, identity, rows)
        return {row: max(0.0, cosine) for row, cosine in found.items()}

    def refresh(self, identity: Identity) -> None:
        """Add new rows, delete removed ones, and compact the table after many small writes."""
        if not self._is_paused():
            self._write(lambda: self._tidy(identity))

    def purge(self, identity: Identity) -> None:
        """Erase deleted vectors from the table and from older tables. Raises `StoreUnavailable` if that has to wait."""
        if missing := self.store.missing():
            with self._database.read() as connection:
                if not self._pointer(connection, identity):
                    return  # the store was never used
            raise StoreUnavailable(missing)
        with self._failures(), store_lock(self._lock_path, timeout_s=PURGE_WAIT_S):
            if self.store.keeps_deleted:
                table = self._rebuild(identity)
            else:
                table = self._append(identity)
                self._delete_dead(table, identity)
            self.store.drop_others(table.name)

    def close(self) -> None:
        with self._lock:
            self._open = None
        self.store.close()

    # ---- searching -------------------------------------------------------------------------------------------

    def _ask_table(
        self, pointer: dict[str, Any], query: Vector, limit: int, allow: Rows | None
    ) -> tuple[dict[int, float], int]:
        """Return what the table answers, and the row after which it may lack some."""
        if not pointer or self._is_paused():
            return {}, 0
        try:
            table = self._open_if_current(pointer)
            found = self._in_table(table, pointer, query, limit, allow)
            since = pointer["sent"] if table.is_current() else pointer["last"]
        except StoreUnavailable as error:
            self._pause(error)
        except Exception as error:  # noqa: BLE001 - a damaged table can fail in any way
            log.warning("cannot use the %s table, the next search rebuilds it: %s", self.store.label, error)
            self._suspect = json.dumps(pointer)
        else:
            self._failure = None
            if found is not None:
                return found, since
        return {}, 0

    def _in_table(
        self, table: VectorTable, pointer: dict[str, Any], query: Vector, limit: int, allow: Rows | None
    ) -> dict[int, float] | None:
        """Return the nearest allowed rows of the table; None if the table cannot name enough of them."""
        most = min(pointer["rows"], self.store.max_limit)
        width = min(most, limit if allow is None else 4 * limit + 50)
        while width:
            ids, near = table.nearest(query, width)
            if 2 * len(ids) < width and table.is_current():
                raise StoreError(f"It answered with {len(ids)} of {width} rows.")
            kept = ids <= pointer["sent"]
            if allow is not None:
                kept &= np.isin(ids, allow)
            if kept.sum() >= limit or width == len(ids) == pointer["rows"]:
                return dict(zip(ids[kept].tolist(), near[kept].tolist(), strict=True))
            if width >= most:
                return None
            width = min(most, width * 8)
        return {}

    def _of_rows(
        self, connection: apsw.Connection, query: Vector, identity: Identity, rows: Rows
    ) -> dict[int, float]:
        bound = (json.dumps(rows.tolist()), *cache.key_of(identity), str(identity))
        wanted: Any = connection.execute(cache.OF_ROWS, bound)
        found: dict[int, float] = {}
        for _, ids, matrix in blocks(wanted, identity.dimensions):
            found |= zip(ids.tolist(), products(matrix, query).tolist(), strict=True)
        return found

    def _newer(
        self,
        connection: apsw.Connection,
        query: Vector,
        identity: Identity,
        since: int,
        limit: int,
        allow: Rows | None,
    ) -> dict[int, float]:
        """Return the nearest of the rows after ``since`` by comparing each."""
        found: dict[int, float] = {}
        rows: Any = connection.execute(cache.AFTER_ROW, (since, *cache.key_of(identity), str(identity)))
        for _, ids, matrix in blocks(rows, identity.dimensions):
            at = np.arange(len(ids)) if allow is None else positions(ids, allow)
            top, near = best(ids[at], products(matrix[at], query), limit)
            found |= zip(top.tolist(), near.tolist(), strict=True)
        return found

    # ---- the table -------------------------------------------------------------------------------------------

    def _open_if_current(self, pointer: dict[str, Any]) -> VectorTable:
        """Return the open table if it matches the pointer."""
        key = json.dumps(pointer)
        with self._lock:
            if self._open is None or self._open[0] != key:
                self._open = (key, self.store.open(pointer["table"], pointer["state"]))
            return self._open[1]

    def _usable(self, pointer: dict[str, Any]) -> bool:
        if self._suspect == json.dumps(pointer):
            return False
        try:
            self._open_if_current(pointer)
        except StoreUnavailable as error:
            self._pause(error)
        except Exception as error:  # noqa: BLE001 - as in search
            log.warning("rebuilding the %s table: %s", self.store.label, error)
            return False
        return True

    def _is_paused(self) -> bool:
        return self.store.missing() is not None or time.monotonic() < self._retry_at

    def _pause(self, error: StoreUnavailable) -> None:
        """Do not ask the store again for a while, so that not every search waits for it."""
        if self._failure is None:
            log.warning("vectors are compared on this machine: %s", error)
        self._failure = str(error)
        self._retry_at = time.monotonic() + (
            COOLDOWN_S if error.retry_after_s is None else error.retry_after_s
        )

    # ---- writing ---------------------------------------------------------------------------------------------

    def _write(self, work: Callable[[], object]) -> None:
        """Run the work unless another process is writing already, or the store does not answer."""
        with (
            contextlib.suppress(StoreLocked, StoreUnavailable),
            self._failures(),
            store_lock(self._lock_path, timeout_s=0),
        ):
            work()
            self._failure = None

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """Turn every failure of the store into `StoreUnavailable`, and do not ask the store again for a while."""
        try:
            yield
        except StoreUnavailable as error:
            self._pause(error)
            raise
        except (StoreBroken, StoreLocked):  # the database is rebuilt, or another process is writing
            raise
        except Exception as error:
            # The packages raise errors of many kinds, for example on a full disk.
            failure = StoreUnavailable(f"{self.store.label} failed: {first_line(error)}")
            self._pause(failure)
            raise failure from error

    def _append(self, identity: Identity) -> VectorTable:
        """Add rows that are newer than the table."""
        with self._database.read() as connection:
            pointer = self._pointer(connection, identity)
        if not pointer or not self._usable(pointer):
            return self._rebuild(identity)
        table = self._open_if_current(pointer)
        self._fill(table, identity, pointer["sent"], last=pointer["last"])
        return table

    def _rebuild(self, identity: Identity) -> VectorTable:
        table = self.store.create(_prefix(identity), identity.dimensions)
        self._record(np.empty(0, dtype=np.int64))
        self._fill(table, identity, 0, last=0)
        self.store.drop_others(table.name)
        return table

    def _tidy(self, identity: Identity) -> None:
        table = self._append(identity)
        with self._database.read() as connection:
            held, dead = len(self._recorded(connection)), len(self._dead(connection, identity))
        if self.store.keeps_deleted and dead > DEAD_SHARE * held:
            self._rebuild(identity)
            return
        self._delete_dead(table, identity)
        table.tidy()
        with self._database.read() as connection:
            pointer = self._pointer(connection, identity)
        self._point(identity, table, sent=pointer["sent"], last=pointer["last"])

    def _fill(self, table: VectorTable, identity: Identity, sent: int, *, last: int) -> None:
        """Add the rows after ``sent``. Rows are recorded before they are added, so that none is forgotten there."""
        while True:
            with self._database.snapshot() as connection:
                bound = (sent, *cache.key_of(identity), str(identity), FILL_ROWS)
                rows: Any = connection.execute(f"{cache.AFTER_ROW} limit ?", bound)
                part = next(blocks(rows, identity.dimensions), None)
                recorded = self._recorded(connection)
            if part is not None:
                sent, ids, matrix = part
                self._record(np.union1d(recorded, ids))
                table.add(ids, matrix)
            self._point(identity, table, sent=sent, last=last)
            if part is None:
                return

    def _delete_dead(self, table: VectorTable, identity: Identity) -> None:
        with self._database.read() as connection:
            dead, held = self._dead(connection, identity), self._recorded(connection)
            pointer = self._pointer(connection, identity)
        if not len(dead):
            return
        table.delete(dead)
        self._record(np.setdiff1d(held, dead))
        self._point(identity, table, sent=pointer["sent"], last=pointer["last"])

    def _point(self, identity: Identity, table: VectorTable, *, sent: int, last: int) -> None:
        """Record the contents of the table. After a crash before this, the old pointer does not match the table."""
        with self._database.write() as connection:
            pointer = {
                "identity": identity_key(identity),
                "table": table.name,
                #: Rows up to this one were added; up to `last`, every search in the table finds them.
                "sent": sent,
                "last": sent if table.is_current() else last,
                "rows": len(self._recorded(connection)),
                "state": table.state(),
            }
            connection.execute(_PUT, (self.store.key, json.dumps(pointer)))
        with self._lock:
            self._open = (json.dumps(pointer), table)
            self._suspect = None

    # ---- what the database records ---------------------------------------------------------------------------

    def _pointer(self, connection: apsw.Connection, identity: Identity) -> dict[str, Any]:
        """Return the recorded contents of the table of this identity, or an empty dict."""
        found = value(connection, _GET, (self.store.key,))
        pointer: dict[str, Any] = json.loads(found) if found else {}
        return pointer if pointer.get("identity") == identity_key(identity) else {}

    def _record(self, rows: Rows) -> None:
        """Record which rows the table may contain, as ranges."""
        with self._database.write() as connection:
            connection.execute(_PUT, (f"{self.store.key}_rows", _to_ranges(rows)))

    def _recorded(self, connection: apsw.Connection) -> Rows:
        return _from_ranges(value(connection, _GET, (f"{self.store.key}_rows",)) or "")

    def _dead(self, connection: apsw.Connection, identity: Identity) -> Rows:
        """Return the rows that the table may contain although their chunks were deleted."""
        live = value(connection, _LIVE, (str(identity),)) or ""
        return np.setdiff1d(self._recorded(connection), np.fromstring(live, dtype=np.int64, sep=" "))


def _prefix(identity: Identity) -> str:
    return "v" + hashlib.sha256(json.dumps(identity_key(identity)).encode()).hexdigest()[:16]


def _to_ranges(rows: Rows) -> str:
    """Return ascending rows as text: "1-3 7"."""
    if not len(rows):
        return ""
    breaks = np.flatnonzero(np.diff(rows) > 1)
    firsts = rows[np.concatenate(([0], breaks + 1))].tolist()
    lasts = rows[np.concatenate((breaks, [len(rows) - 1]))].tolist()
    return " ".join(
        str(first) if first == last else f"{first}-{last}" for first, last in zip(firsts, lasts, strict=True)
    )


def _from_ranges(text: str) -> Rows:
    """Return the rows of a text that `_to_ranges` made."""
    ends = [part.partition("-") for part in text.split()]
    parts = [np.arange(int(first), int(last or first) + 1, dtype=np.int64) for first, _, last in ends]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


_GET = "select value from meta where key = ?"
_PUT = "insert or replace into meta(key, value) values(?, ?)"
_LIVE = "select group_concat(rowid, ' ') from chunks where model = ?"
_NEWER = "select count(*) from (select 1 from chunks where rowid > ? and +model = ? limit ?)"
