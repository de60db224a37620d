"""`Follower`: keeps a derived index in step with a store of record whose changes are numbered.

The index remembers the number of the last change it contains. When it is behind, the follower indexes what changed
since: first keywords, then vectors within a time limit, and the others in the background. When it is missing, damaged,
or belongs to another store, the follower builds it again. The store is the source of truth; everything in the index can
be derived from it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeVar

from memoriter import logs
from memoriter.errors import EmbeddingError, StoreError, StoreLocked
from memoriter.index.vectors import RETRY_S, BackgroundWork, Pace
from memoriter.records import Chunk, Document
from memoriter.sentences import sentence
from memoriter.store import Index
from memoriter.text import TOKENIZER_VERSION

if TYPE_CHECKING:
    from memoriter.embedding import Batched
    from memoriter.embedding.protocol import Matrix

log = logs.get("index")

#: Number of documents that are written together.
BLOCK = 256
#: A caller waits this long for missing vectors, in seconds.
EMBED_S = 1.0

_TOKENIZER = "tokenizer"
#: Rows of another version do not count. The second number rises when `documents` selects others than before.
_VERSION = f"{TOKENIZER_VERSION}.2"
_MARK = re.compile(r"(?P<store>\S+) (?P<number>\d{1,18}) (?P<mark>\S*)", re.ASCII)
T = TypeVar("T")

Indexed = tuple[Document, Sequence[Chunk]]
"""A document as the index stores it."""


class NumberedStore(Protocol):
    """A store of record that an index can follow."""

    @property
    def store_id(self) -> str:
        """An id that no other store has."""

    def seq(self) -> int:
        """Return the number of the newest change; 0 before the first."""

    def mark(self, seq: int) -> str:
        """Return a text that identifies the change with this number. A diverged copy of the store has another."""

    def changed_since(self, seq: int) -> Iterable[str]:
        """Return the paths of the documents that changed after this change, including deleted ones."""

    def documents(self, paths: Sequence[str]) -> Mapping[str, Indexed]:
        """Return the documents under these paths that should be in the index, by path."""


class Position:
    """The last change that an index contains, stored in the index itself as "<store> <number> <mark>".

    Several processes may follow at the same time, and each may be killed at any point. The index always contains every
    change up to the stored number. It may contain later ones. Rows made by another tokenizer do not count.
    """

    def __init__(self, index: Index, key: str, store: NumberedStore) -> None:
        self._index = index
        self._key = key
        self._store = store

    def start(self, wait_s: float | None = None) -> int:
        """Return the change to continue after. An index that cannot be continued is cleared and starts at 0."""
        # Read before the store's number, which is never smaller than a number stored earlier.
        known = self._stored_seq()
        if known is not None and known <= self._store.seq():
            return known
        with self._index.transaction(wait_s):
            known = self._stored_seq()
            if known is not None and known <= self._store.seq():
                return known  # another process was faster
            self.restart()
        return 0

    def restart(self) -> None:
        """Clear the index."""
        # In one transaction: clearing the index under an old number would lose what that number covers.
        with self._index.transaction():
            self._index.clear()
            self._set(0)

    def peek(self) -> int:
        """Return the change to continue after, without clearing an index that cannot be continued."""
        known = self._stored_seq()
        return known if known is not None and known <= self._store.seq() else 0

    def advance(self, since: int, now: int) -> None:
        """Record that every change after ``since`` up to ``now`` is in the index.

        This has no effect if another process recorded a later change, or if the index was cleared meanwhile and does
        not contain ``since`` any more.
        """
        if since == now:
            return
        with self._index.transaction():
            known = self._stored_seq()
            if known is not None and since <= known < now:
                self._set(now)

    def _stored_seq(self) -> int | None:
        if self._index.meta(_TOKENIZER) != _VERSION:
            return None
        found = _MARK.fullmatch(self._index.meta(self._key) or "")
        if found is None or found["store"] != self._store.store_id:
            return None
        number = int(found["number"])
        return number if found["mark"] == self._store.mark(number) else None

    def _set(self, number: int) -> None:
        mark = f"{self._store.store_id} {number} {self._store.mark(number)}"
        self._index.set_meta(**{self._key: mark, _TOKENIZER: _VERSION})


class Follower:
    """Keeps one index in step with one store. ``name`` says what the store holds, such as "entries"."""

    def __init__(
        self,
        store: NumberedStore,
        index: Index,
        embedder: Batched | None,
        *,
        name: str,
        block: int = BLOCK,
        background: bool = False,
    ) -> None:
        self.index = index
        self.embedder = embedder
        self._store = store
        self._name = name
        self._block = block
        self._position = Position(index, name, store)
        self._clock = time.monotonic
        #: Why the embedder failed, and when.
        self._failure: tuple[EmbeddingError, float] | None = None
        self._background = BackgroundWork(self._embed_all) if background else None

    @property
    def model(self) -> str:
        """The identity of the vectors that documents should have; empty without an embedder."""
        return str(self.embedder.identity) if self.embedder else ""

    @property
    def degraded(self) -> str | None:
        """A sentence about vectors that are missing because the embedder fails or is still computing."""
        if self._failure is not None:
            return sentence(f"{self._name}.keywords_only", why=self._failure[0])
        missing, total = self._count_indexed() if self.embedder else (0, 0)
        return sentence(f"{self._name}.missing", missing=missing, total=total) if missing else None

    def count_missing(self) -> tuple[int, int]:
        """Return how many documents have no vector yet, and how many there are. New ones are not indexed for this."""
        if self.embedder is None:
            return 0, self.index.healing(self.index.total)
        since = self.index.healing(self._position.peek)
        new = 0 if since == self._store.seq() else len(set(self._store.changed_since(since)))
        missing, total = self._count_indexed() if since else (0, 0)
        return new + missing, new + total

    def _count_indexed(self) -> tuple[int, int]:
        """Return how many documents of the index have no vector, and how many it has."""
        return self.index.healing(lambda: (self.index.count_without(self.model), self.index.total()))

    def close(self) -> None:
        """Stop computing vectors in the background."""
        if self._background is not None:
            self._background.close()

    def follow(self) -> None:
        """Index what changed in the store, and compute missing vectors. A damaged index is built again."""
        self.index.healing(self._run)

    def try_follow(self, vectors: Mapping[str, Matrix] | None = None, *, embed: bool = True) -> None:
        """Index what changed, unless another process writes the index at this moment.

        A caller that stored something does not wait for the index: the change is on disk, and the process that writes,
        the next caller or the next search indexes it. ``vectors`` are vectors that the caller already has, by chunk
        hash. Without ``embed``, missing vectors are left to the next search.
        """
        try:
            self.index.healing(lambda: self._run(vectors or {}, embed=embed, wait_s=0.0))
        except StoreLocked:
            return
        except StoreError as error:
            log.warning("the index of %s is not up to date: %s", self._name, error)

    def indexed_seq(self) -> int:
        """Return the number of a change up to which the index contains everything. It may contain later changes."""
        return self._position.peek()

    def healing(self, work: Callable[[], T]) -> T:
        """Do work that reads the index. If the index is damaged, build it again and repeat the work."""
        return self.index.healing(work, self.follow)

    def repair(self, *, rebuild: bool = False) -> str | None:
        """Check the index and build it again if it is damaged. Return what was wrong, if anything.

        ``rebuild`` builds it again in any case. Vectors in the cache are used again.
        """
        if damage := self.index.check():
            self.index.heal("; ".join(damage))
        elif rebuild:
            self.index.healing(self._position.restart)
        self.follow()
        return self.index.healed

    def vector(self, text: str) -> Matrix | None:
        """Return the vector of a text; None without an embedder, or when it fails."""
        return self._embed({"": text}).get("")

    def _run(
        self,
        vectors: Mapping[str, Matrix] = MappingProxyType({}),
        *,
        embed: bool = True,
        wait_s: float | None = None,
    ) -> None:
        for _ in self._steps(vectors, wait_s):
            pass
        if embed:
            self._embed_missing(wait_s)

    def _steps(self, vectors: Mapping[str, Matrix], wait_s: float | None = None) -> Iterator[None]:
        """Index the keywords of what changed, one block per step. The work may end after any step."""
        since, now = self._position.start(wait_s), self._store.seq()
        yield
        paths = [] if since == now else sorted(set(self._store.changed_since(since)))
        for start in range(0, len(paths), self._block):
            with self.index.transaction(wait_s):
                self._write_block(paths[start : start + self._block], vectors)
                if start + self._block >= len(paths):
                    self._position.advance(since, now)
            yield

    def _embed_missing(self, wait_s: float | None) -> None:
        """Compute missing vectors for a moment, and leave the others to the background.

        If there are many, as after an import, the background computes all of them, and the caller need not wait.
        """
        missing = self.index.count_without(self.model) if self.embedder else 0
        if not missing or (self._failure is not None and self._clock() - self._failure[1] < RETRY_S):
            return
        if self._background is None or (missing <= self._block and not self._background.running):
            self._embed_rows(Pace(EMBED_S, self._block, self._clock), wait_s=wait_s)
        if self._background is not None and self.index.count_without(self.model):
            self._background.start()

    def _embed_all(self, stop: Callable[[], None]) -> bool:
        self._embed_rows(Pace(None, self._block), stop)
        return self._failure is None

    def _embed_rows(
        self, pace: Pace, stop: Callable[[], None] = lambda: None, wait_s: float | None = None
    ) -> None:
        """Compute the vectors of rows without one, and commit them after each batch."""
        assert self.embedder is not None
        rows, start = self.index.rows_without(self.model), 0
        while start < len(rows) and (size := pace.next()):
            stop()
            group = rows[start : start + size]
            texts = {chunk.hash: chunk.embedding_text for chunk in self._chunks(group)}
            known = self.index.known(self.embedder.identity, texts)
            vectors = self._embed({hash_: text for hash_, text in texts.items() if hash_ not in known})
            with self.index.transaction(wait_s):
                # Read again under the index's lock: what was deleted while it was embedded must leave nothing here.
                hashes = {chunk.hash for chunk in self._chunks(group)}
                left = {hash_: vector for hash_, vector in vectors.items() if hash_ in hashes}
                self.index.save(self.embedder.identity, left)
                self.index.assign(group, self.embedder.identity)
            if self._failure is not None:
                return
            start += size

    def _chunks(self, rows: Sequence[int]) -> list[Chunk]:
        return [stored.chunk for stored in self.index.chunks(rows).values()]

    def _write_block(self, paths: Sequence[str], vectors: Mapping[str, Matrix]) -> None:
        identity = self.embedder.identity if self.embedder else None
        with self.index.transaction():
            # Read again under the index's lock: a document deleted while it was embedded must leave nothing here.
            documents = self._store.documents(paths)
            self.index.remove([path for path in paths if path not in documents])
            for document, chunks in documents.values():
                if identity is not None:
                    new = {chunk.hash: vectors[chunk.hash] for chunk in chunks if chunk.hash in vectors}
                    self.index.save(identity, new)
                self.index.replace(document, chunks, identity=identity)

    def _embed(self, texts: Mapping[str, str]) -> dict[str, Matrix]:
        if self.embedder is None or not texts:
            return {}
        try:
            rows = self.embedder.embed(list(texts.values()))
        except EmbeddingError as error:
            if self._failure is None:
                log.warning("new %s can be found by keyword only: %s", self._name, error)
            self._failure = (error, self._clock())
            return {}
        self._failure = None
        return dict(zip(texts, rows, strict=True))
