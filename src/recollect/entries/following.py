"""The derived index of entries: keywords and vectors that follow ``memory.db`` by its sequence numbers.

The index notes up to which event it has come. When it is behind, it takes in what changed since; when it is gone,
older, newer, or of another ``memory.db``, it is made again. Nothing here is truth.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from recollect import logs
from recollect.errors import StoreBroken
from recollect.records import Chunk, Document, Entry
from recollect.store.entries import Entries
from recollect.store.index import Index

if TYPE_CHECKING:
    from recollect.embedding import Cached

log = logs.get("entries")

MARK = "entries"  #: the index's note of how far it has come: "<store> <seq>"
RETRY_S = 60.0  #: after the embedder failed, entries without a vector wait so long


class Following:
    """Keeps one index in step with one ``memory.db``."""

    def __init__(
        self,
        entries: Entries,
        index: Index,
        embedder: Cached | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.entries = entries
        self.index = index
        self.embedder = embedder
        self._clock = clock
        self._failed: float | None = None
        self.degraded: str | None = None

    @property
    def model(self) -> str:
        """Whose vectors entries should have; empty when there is no embedder."""
        return str(self.embedder.identity) if self.embedder else ""

    def follow(self) -> None:
        """Take in what has changed in ``memory.db``; a damaged index is set aside and made again."""
        try:
            self._follow()
        except StoreBroken as broken:
            log.warning("the index of entries is damaged and is made again: %s", broken)
            self.index.heal(str(broken))
            self._follow()

    def _follow(self) -> None:
        target = self.entries.seq()
        known = self._known(target)
        if known is None:
            log.info("the index of entries is made anew")
            self.index.clear()
        ids = set() if known == target else set(self.entries.changed_since(known or 0))
        ids |= self._without_vectors()
        if ids or known != target:
            self._take_in(ids, target)

    def _known(self, target: int) -> int | None:
        """Up to which event the index has come; None when what it holds cannot be built upon."""
        store, _, seq = (self.index.meta(MARK) or "").partition(" ")
        if store != self.entries.store_id or not seq.isdecimal() or int(seq) > target:
            return None
        return int(seq)

    def _without_vectors(self) -> set[str]:
        if self.embedder is None or (self._failed is not None and self._clock() - self._failed < RETRY_S):
            return set()
        return self.index.stale(self.model)

    def _take_in(self, ids: Iterable[str], target: int) -> None:
        ids = sorted(ids)
        self._embed([entry for entry in self.entries.load(ids).values() if entry.state == "active"])
        with self.index.transaction():
            # Read again under the index's lock: what was forgotten while it was embedded stays out.
            alive = {id_: one for id_, one in self.entries.load(ids).items() if one.state == "active"}
            self.index.remove([id_ for id_ in ids if id_ not in alive])
            for entry in alive.values():
                identity = self.embedder.identity if self.embedder else None
                self.index.replace(*as_document(entry), identity=identity)
            if (known := self._known(1 << 62)) is None or known < target:
                self.index.set_meta(**{MARK: f"{self.entries.store_id} {target}"})

    def _embed(self, entries: list[Entry]) -> None:
        if self.embedder is None or not entries:
            return
        texts = {chunk_of(entry).hash: entry.text for entry in entries}
        done = self.embedder.ensure(texts)
        self._failed = self._clock() if done.error else None
        self.degraded = f"Keyword search only for new entries: {done.error}" if done.error else None


def chunk_of(entry: Entry) -> Chunk:
    """An entry as the index holds it: one chunk, under the entry's own id."""
    day = datetime.fromtimestamp(entry.valid_from, UTC).date().isoformat() if entry.valid_from > 0 else None
    return Chunk(entry.id, entry.id, "entries", 1, 1, entry.text, date=day)


def as_document(entry: Entry) -> tuple[Document, list[Chunk]]:
    """An entry as the index takes it."""
    digest = hashlib.sha256(entry.text.encode("utf-8", "surrogatepass")).hexdigest()
    return Document(entry.id, "entries", entry.text, digest, 0, len(entry.text)), [chunk_of(entry)]
