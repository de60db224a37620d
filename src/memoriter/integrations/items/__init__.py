"""Values that programs keep under a name, and find again by name, by what they hold, or by meaning.

`Items` joins the truth (``items.db``) with an index derived from it. What is deleted or replaced is found no more at
once, and leaves no copy behind: its bytes are overwritten seconds later, for all changes together, because that means
to write the keywords anew. `settle` and `close` do so at once; what a killed process left is done at the next opening.

Items are not part of the memory that is searched for an agent: their namespaces say whose they are, and only the
program that made those knows what they mean.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.errors import MemoriterError
from memoriter.integrations.items.index import ItemIndex, chunks_of
from memoriter.integrations.items.later import Later
from memoriter.integrations.items.store import ItemStore
from memoriter.records import Item, ItemHit, Matching, Put
from memoriter.store.index import open_index

if TYPE_CHECKING:
    from memoriter.embedding import Embedder
    from memoriter.memory import Memory

__all__ = ["Items", "count_namespaces", "open_items"]

log = logs.get("items")

INDEX_FOLDER = "items"  #: everything in it is derived from items.db


class Items:
    """The items of one agent."""

    def __init__(
        self,
        folder: Path,
        embedder: Embedder | None = None,
        *,
        engine: str = "scan",
        clock: Callable[[], float] = time.time,
    ) -> None:
        from memoriter.embedding import Batched

        self.clock = clock
        self.store = ItemStore(folder)
        index = open_index(folder / INDEX_FOLDER, engine=engine)
        batched = Batched(embedder) if embedder else None
        self.index = ItemIndex(self.store, index, embedder, batched, clock=lambda: self.clock())  # noqa: PLW0108 - may be turned
        self._erasing = Later(self._erase)
        if self.store.unfinished():
            self._erasing.ask()
            self._erasing.now()

    # ---- by name ---------------------------------------------------------------------------------------------

    def get(self, namespace: Sequence[str], key: str, *, refresh: bool = True) -> Item | None:
        """The item under this name; ``refresh``: its time begins anew."""
        item = self.store.get(namespace, key, now=self.clock())
        if item is not None and refresh:
            self._refresh([item])
        return item

    def put(self, puts: Sequence[Put]) -> None:
        """Keep, replace or delete values, all or none; on the disk when this returns."""
        now, erase = self.clock(), False
        with self.store.database.write():
            for item in self.store.expired(now=now):
                self._delete(item)
                erase = True
            for put in puts:
                found = self.store.get(put.namespace, put.key, now=now)
                if put.value is not None:
                    self.store.put(put, at=now)
                    if found and (found.value, found.texts) != (put.value, put.texts):
                        self.store.doom(
                            found, _hashes(found)
                        )  # those that the new value still needs will stay
                        erase = True
                elif found:
                    self._delete(found)
                    erase = True
        self._catch_up(erase=erase)

    def _delete(self, item: Item) -> None:
        self.store.delete(item)
        self.store.doom(item, _hashes(item))

    def sweep(self) -> int:
        """Delete what has expired; how many there were."""
        count = len(self.store.expired(now=self.clock()))
        self.put(())
        return count

    def namespaces(self) -> list[tuple[str, ...]]:
        """Every namespace that holds an item."""
        return self.store.namespaces(now=self.clock())

    def _refresh(self, items: Sequence[Item]) -> None:
        ids = [item.id for item in items if item.ttl_s is not None]
        if ids:
            self.store.refresh(ids, at=self.clock())

    # ---- by what they hold -----------------------------------------------------------------------------------

    def search(
        self,
        prefix: Sequence[str],
        query: str | None = None,
        *,
        matching: Matching | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = True,
    ) -> list[ItemHit]:
        """The items under a prefix that match: best first for a query, else the last changed first.

        Those that a query says nothing about come last, without a score.
        """
        now = self.clock()
        if matching is None:
            ids = self.store.ids_under(prefix, now=now)
        else:
            parts = self.store.parts_under(prefix, matching.names, matching.conditions, now=now)
            ids = [item_id for item_id, part in parts if matching.admits(part)]
        wanted = min(offset + limit, len(ids))
        scores = self.index.scores(query, prefix, set(ids), wanted) if query and ids else {}
        ranked = sorted((item_id for item_id in ids if item_id in scores), key=lambda one: -scores[one])
        order = [*ranked, *(item_id for item_id in ids if item_id not in scores)][offset : offset + limit]
        items = self.store.load(order, now=now)
        hits = [ItemHit(items[item_id], scores.get(item_id)) for item_id in order if item_id in items]
        if refresh:
            self._refresh([hit.item for hit in hits])
        return hits

    # ---- catching up -----------------------------------------------------------------------------------------

    def _catch_up(self, *, erase: bool) -> None:
        """After a change: the truth stands whatever happens to what is derived from it."""
        try:
            self.index.follow()
        except MemoriterError as error:
            log.error("the index of items is behind: %s", error)
        if erase:
            self._erasing.ask()

    def settle(self) -> None:
        """Leave no byte of what was deleted or replaced until now."""
        self._erasing.now()

    def _erase(self) -> bool:
        """Whether it is done: another process that reads keeps the old pages in the log."""
        try:
            return self.index.erase()
        except MemoriterError as error:
            log.error("what is gone from the items could not be erased yet: %s", error)
            return False

    def close(self) -> None:
        """Erase what waits, and give back files."""
        try:
            self._erasing.close()
        finally:
            self.index.index.close()
            self.store.close()


def _hashes(item: Item) -> list[str]:
    """The names of its vectors in the derived index."""
    return [chunk.hash for chunk in chunks_of(item)]


def open_items(memory: Memory) -> Items:
    """Open the items of a memory, for `Memory.extension`."""
    settings = memory.settings
    return Items(settings.agent_folder, memory.embedder, engine=settings.index.vector_engine)


def count_namespaces(memory: Memory) -> int | None:
    """Count the namespaces that hold items, or return None if none was ever stored."""
    if not (memory.settings.agent_folder / "items.db").exists():
        return None
    return len(memory.extension(open_items).namespaces())
