"""The derived index of entries: keywords and vectors that follow ``memory.db`` by its sequence numbers.

The index notes up to which event it has come. When it is behind, it takes in what changed since; when it is gone,
older, newer, or of another ``memory.db``, it is made again. Nothing here is truth.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.errors import EmbeddingError, StoreBroken
from memoriter.index.progress import Reached
from memoriter.records import Chunk, Document, Entry
from memoriter.store.entry_store import EntryStore
from memoriter.store.index import Index

if TYPE_CHECKING:
    from memoriter.embedding import Batched
    from memoriter.embedding.protocol import Matrix

log = logs.get("entries")

MARK = "entries"  #: under which the index notes how far it has come
BLOCK = 256  #: entries that are embedded and written together
RETRY_S = 60.0  #: entries without a vector, because the embedder failed, wait so long at most


class Follower:
    """Keeps one index in step with one ``memory.db``."""

    def __init__(
        self,
        entries: EntryStore,
        index: Index,
        embedder: Batched | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.entries = entries
        self.index = index
        self.embedder = embedder
        self._reached = Reached(index, MARK, entries)
        self._clock = clock
        self._looked: float | None = None  # when entries without a vector were last looked for
        self.degraded: str | None = None

    @property
    def model(self) -> str:
        """Whose vectors entries should have; empty when there is no embedder."""
        return str(self.embedder.identity) if self.embedder else ""

    def follow(self, vectors: Mapping[str, Matrix] | None = None) -> None:
        """Take in what has changed in ``memory.db``; a damaged index is set aside and made again.

        ``vectors`` of entries, by id, are known to the caller already.
        """
        try:
            self._follow(vectors or {})
        except StoreBroken as broken:
            log.warning("the index of entries is damaged and is made again: %s", broken)
            self.index.heal(str(broken))
            self._follow({})

    def prepare(self, ids: Iterable[str]) -> None:
        """Take in some entries before their turn, for one who cannot wait for all; `follow` finds their vectors."""
        try:
            self._take_in(list(ids), {})
        except StoreBroken as broken:
            log.warning("the index of entries is damaged and is made again: %s", broken)
            self.index.heal(str(broken))

    def vector(self, text: str) -> Matrix | None:
        """The vector of a statement; None without an embedder, or when it fails."""
        found = self._embed({"": text})
        return found.get("")

    def _follow(self, vectors: Mapping[str, Matrix]) -> None:
        since, now = self._reached.begin(), self.entries.seq()
        ids = set() if since == now else set(self.entries.changed_since(since))
        ids |= self._without_vectors()
        waiting = iter(sorted(ids))
        while block := list(islice(waiting, BLOCK)):
            self._take_in(block, vectors)
        self._reached.note(since, now)

    def _without_vectors(self) -> set[str]:
        """Entries that the embedder has still to see; looked for now and then, since that reads the whole index."""
        now = self._clock()
        if self.embedder is None or (self._looked is not None and now - self._looked < RETRY_S):
            return set()
        self._looked = now
        return self.index.stale(self.model)

    def _take_in(self, ids: list[str], vectors: Mapping[str, Matrix]) -> None:
        identity = self.embedder.identity if self.embedder else None
        new = self._embed(self._texts(ids, vectors)) | dict(vectors)
        with self.index.transaction():
            # Read again under the index's lock: what was forgotten while it was embedded leaves nothing here.
            alive = {id_: one for id_, one in self.entries.load(ids).items() if one.state == "active"}
            self.index.remove([id_ for id_ in ids if id_ not in alive])
            if identity is not None:
                self.index.save(
                    identity, {chunk_of(alive[id_]).hash: new[id_] for id_ in alive if id_ in new}
                )
            for entry in alive.values():
                self.index.replace(*as_document(entry), identity=identity)

    def _texts(self, ids: list[str], vectors: Mapping[str, Matrix]) -> dict[str, str]:
        """The texts that have no vector yet, by id."""
        if self.embedder is None:
            return {}
        entries = [one for one in self.entries.load(ids).values() if one.state == "active"]
        having = self.index.known(self.embedder.identity, [chunk_of(one).hash for one in entries])
        return {
            one.id: one.text for one in entries if one.id not in vectors and chunk_of(one).hash not in having
        }

    def _embed(self, texts: Mapping[str, str]) -> dict[str, Matrix]:
        if self.embedder is None or not texts:
            return {}
        try:
            rows = self.embedder.embed(list(texts.values()))
        except EmbeddingError as error:
            self.degraded = f"Keyword search only for new entries: {error}"
            return {}
        self.degraded = None
        return dict(zip(texts, rows, strict=True))


def chunk_of(entry: Entry) -> Chunk:
    """An entry as the index holds it: one chunk, under the entry's own id."""
    day = datetime.fromtimestamp(entry.valid_from, UTC).date().isoformat() if entry.valid_from > 0 else None
    return Chunk(entry.id, entry.id, "entries", 1, 1, entry.text, date=day)


def as_document(entry: Entry) -> tuple[Document, list[Chunk]]:
    """An entry as the index takes it."""
    digest = hashlib.sha256(entry.text.encode("utf-8", "surrogatepass")).hexdigest()
    return Document(entry.id, "entries", entry.text, digest, 0, len(entry.text)), [chunk_of(entry)]
