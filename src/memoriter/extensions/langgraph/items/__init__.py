"""Named values that programs store and find again by name, by content or by meaning. LangGraph's store uses them.

`Items` joins the source of truth (``items.db``) with an index derived from it. A deleted or replaced value is no longer
found immediately. Its bytes are overwritten a few seconds later, for all changes together, because that rewrites the
keywords. `settle` and `close` do it immediately, and the next process completes what a killed one left behind.

Items are not part of the memory that agents search: only the program that stores them knows what they mean.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from memoriter import logs
from memoriter.background import Task, Workers
from memoriter.embedding import Embedder
from memoriter.errors import MemoriterError
from memoriter.extensions.langgraph.items.index import ItemIndex, chunks_of
from memoriter.extensions.langgraph.items.store import Item, ItemHit, ItemStore, Put
from memoriter.memory import Memory, parts_of
from memoriter.store import Index
from memoriter.store.protocol import Transactions
from memoriter.store.vectors import find_engine

__all__ = ["DelayedWork", "Items", "count_namespaces", "items_of"]

log = logs.get("items")

#: The folder of the derived index. Everything in it can be rebuilt from items.db.
INDEX_FOLDER = "items"
#: Seconds from a request until the work starts, and the longest such delay while the work fails.
DELAY_S, MAX_DELAY_S = 2.0, 60.0
#: The delay is at least this many times as long as the work took, so that the work takes a small share of the time.
DELAY_FACTOR = 20
#: Seconds to wait for the background thread when the work is closed.
CLOSE_TIMEOUT_S = 10.0


def items_of(memory: Memory) -> Items:
    """Return the items of a memory. They are opened once, and closed with the memory."""
    return parts_of(memory).open_once(Items, lambda: _open_items(memory))


def _open_items(memory: Memory) -> Items:
    settings, parts = memory.settings, parts_of(memory)
    engine = settings.index.vector_engine
    if find_engine(engine).is_remote:
        engine = "scan"  # the values of frameworks never leave this machine
    index = parts.store.open_index("items", settings.agent_folder / INDEX_FOLDER, engine)
    try:
        database = parts.store.open_rows("items", index)
    except BaseException:
        index.close()
        raise
    return Items(database, index, parts.embedder)


def count_namespaces(memory: Memory) -> int | None:
    """Count the namespaces that hold items, or return None if none was ever stored."""
    if not parts_of(memory).store.may_hold("items", memory.settings.agent_folder / INDEX_FOLDER):
        return None
    return len(items_of(memory).namespaces())


class Items:
    """The items of one agent."""

    def __init__(self, database: Transactions, index: Index, embedder: Embedder | None) -> None:
        from memoriter.embedding import Batched

        self.clock = time.time
        try:
            self.store = ItemStore(database)
        except BaseException:
            index.close()
            raise
        batched = Batched(embedder) if embedder else None
        self.index = ItemIndex(self.store, index, embedder, batched, clock=lambda: self.clock())  # noqa: PLW0108 - a test may replace the clock
        self._erasing = DelayedWork(self._erase)
        if self.store.unfinished():
            self._erasing.request()
            self._erasing.run_now()

    # ---- by name ---------------------------------------------------------------------------------------------

    def get(self, namespace: Sequence[str], key: str, *, refresh: bool = True) -> Item | None:
        """Return the item with this name. With ``refresh`` its time to live starts again."""
        item = self.store.get(namespace, key, now=self.clock())
        if item is not None and refresh:
            self._refresh([item])
        return item

    def put(self, puts: Sequence[Put]) -> None:
        """Store, replace or delete values, all of them or none. They are on disk when this returns."""
        now = self.clock()
        with self.store.database.write():
            expired = self.store.expired(now=now)
            for item in expired:
                self._delete(item)
            changed = [self._put(put.clean(), now) for put in puts]
        self._update_index(erase=bool(expired) or any(changed))

    def _put(self, put: Put, now: float) -> bool:
        """Make one change; return whether it leaves something to erase."""
        old = self.store.get(put.namespace, put.key, now=now)
        if put.value is None:
            if old:
                self._delete(old)
            return old is not None
        self.store.put(put, at=now)
        if old is None or (old.value, old.texts) == (put.value, put.texts):
            return False
        # Vectors that the new value still uses stay.
        self.store.mark_for_erasure(old, _hashes(old))
        return True

    def _delete(self, item: Item) -> None:
        self.store.delete(item)
        self.store.mark_for_erasure(item, _hashes(item))

    def sweep(self) -> int:
        """Delete expired items and return how many there were."""
        count = len(self.store.expired(now=self.clock()))
        self.put(())
        return count

    def namespaces(self) -> list[tuple[str, ...]]:
        """Return every namespace that holds an item."""
        return self.store.namespaces(now=self.clock())

    def _refresh(self, items: Sequence[Item]) -> None:
        ids = [item.id for item in items if item.ttl_s is not None]
        if ids:
            self.store.refresh(ids, at=self.clock())

    def check(self, *, deep: bool = False) -> list[str]:
        """Return what is wrong with the database, one sentence each; empty when nothing is."""
        return self.store.check(deep=deep)

    # ---- by content ------------------------------------------------------------------------------------------

    def search(
        self,
        prefix: Sequence[str],
        query: str | None = None,
        *,
        matching: Callable[[Mapping[str, Any]], bool] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = True,
    ) -> list[ItemHit]:
        """Return the items under a prefix that match: best first for a query, otherwise the newest change first.

        Items that the query does not match come last, without a score.
        """
        now = self.clock()
        if matching is None:
            ids = self.store.ids_under(prefix, now=now)
        else:
            values = self.store.values_under(prefix, now=now)
            found = (item_id for item_id, value in values if matching(value))
            ids = list(found if query else islice(found, offset + limit))
        wanted = min(offset + limit, len(ids))
        scores = self.index.scores(query, prefix, set(ids), wanted) if query and ids else {}
        ranked = sorted((item_id for item_id in ids if item_id in scores), key=lambda id_: -scores[id_])
        order = [*ranked, *(item_id for item_id in ids if item_id not in scores)][offset : offset + limit]
        items = self.store.load(order, now=now)
        hits = [ItemHit(items[item_id], scores.get(item_id)) for item_id in order if item_id in items]
        if refresh:
            self._refresh([hit.item for hit in hits])
        return hits

    # ---- index and erasure -----------------------------------------------------------------------------------

    def _update_index(self, *, erase: bool) -> None:
        """Index what changed. A failure does not undo the change: the index catches up later."""
        self.index.follower.try_follow()
        if erase:
            self._erasing.request()

    def settle(self) -> None:
        """Overwrite every byte of the values deleted or replaced so far."""
        self._erasing.run_now()

    def _erase(self) -> bool:
        """Return whether the erasure is complete. A process that reads keeps the old pages in the log."""
        try:
            return self.index.erase()
        except MemoriterError as error:
            log.error("deleted items could not be erased yet: %s", error)
            return False

    def close(self) -> None:
        """Erase what is pending, and close the files."""
        try:
            self._erasing.close()
        finally:
            self.index.index.close()
            self.store.close()


def _hashes(item: Item) -> list[str]:
    """Return the names of the item's vectors in the derived index."""
    return [chunk.hash for chunk in chunks_of(item)]


class DelayedWork:
    """Work that runs a little later, once for all requests so far. ``work`` returns whether it succeeded."""

    def __init__(self, work: Callable[[], bool], *, delay_s: float = DELAY_S) -> None:
        self._work = work
        self._min_delay_s = self._delay_s = delay_s
        self._closed = False
        self._workers = Workers("memoriter-items", keep=True)
        self._reset()
        _open.add(self)

    def _reset(self) -> None:
        """Forget all requests: a fork has the parent's locks, but not the threads that would release them."""
        self._lock = threading.Lock()
        self._running = threading.Lock()
        self._task: Task[None] | None = None

    def request(self) -> None:
        """Run the work after the delay."""
        with self._lock:
            if self._task is None and not self._closed:
                self._task = self._workers.submit(self.run_now, delay_s=self._delay_s)

    def run_now(self) -> None:
        """Run the work now if it was requested. Work that is already running is waited for."""
        with self._running:
            with self._lock:
                task, self._task = self._task, None
            if task is None:
                return
            task.cancel()
            start, succeeded = time.monotonic(), False
            try:
                succeeded = self._work()
            finally:
                self._set_delay(time.monotonic() - start, succeeded=succeeded)
                if not succeeded:
                    self.request()

    def _set_delay(self, took_s: float, *, succeeded: bool) -> None:
        if succeeded:
            self._delay_s = max(self._min_delay_s, DELAY_FACTOR * took_s)
        else:
            self._delay_s = min(MAX_DELAY_S, 2 * self._delay_s)

    def close(self) -> None:
        """Run the work if it was requested, and accept no more requests."""
        with self._lock:
            self._closed = True
        self.run_now()
        self._workers.close(CLOSE_TIMEOUT_S)


_open: weakref.WeakSet[DelayedWork] = weakref.WeakSet()


def _reset_after_fork() -> None:
    for work in list(_open):
        work._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


@atexit.register
def _close_all() -> None:
    """Run pending work when a program ends without closing."""
    for work in list(_open):
        with contextlib.suppress(Exception):  # no caller is left, and the next process completes the work
            work.close()
