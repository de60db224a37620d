"""`Follower`: keeps a derived index in step with a store of record whose changes are numbered.

The index remembers the number of the last change it contains. When it is behind, the follower indexes what changed
since. When it is missing, damaged, or belongs to another store, the follower builds it again. The store is the source
of truth; everything in the index can be derived from it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from memoriter import logs
from memoriter.errors import EmbeddingError, StoreBroken
from memoriter.records import Chunk, Document
from memoriter.sentences import sentence
from memoriter.store.index import Index
from memoriter.text import TOKENIZER_VERSION

if TYPE_CHECKING:
    from memoriter.embedding import Batched
    from memoriter.embedding.protocol import Matrix

log = logs.get("index")

#: Number of documents that are embedded and written together.
BLOCK = 256
#: Seconds between two searches for documents that have no vector because the embedder failed.
RETRY_S = 60.0

_TOKENIZER = "tokenizer"

Indexed = tuple[Document, Sequence[Chunk]]
"""A document as the index stores it."""


class NumberedStore(Protocol):
    """A store of record that an index can follow."""

    @property
    def store_id(self) -> str:
        """An id that no other store has."""

    def seq(self) -> int:
        """Return the number of the newest change; 0 before the first."""

    def changed_since(self, seq: int) -> Iterable[str]:
        """Return the paths of the documents that changed after this change, including deleted ones."""

    def documents(self, paths: Sequence[str]) -> Mapping[str, Indexed]:
        """Return the documents under these paths that should be in the index, by path."""


class Position:
    """The last change that an index contains, stored in the index itself as "<store> <number>".

    Several processes may follow at the same time, and each may be killed at any point. The index always contains every
    change up to the stored number. It may contain later ones. Rows made by another tokenizer do not count.
    """

    def __init__(self, index: Index, key: str, store: NumberedStore) -> None:
        self._index = index
        self._key = key
        self._store = store

    def start(self) -> int:
        """Return the change to continue after. An index that cannot be continued is cleared and starts at 0."""
        # Read before the store's number, which is never smaller than a number stored earlier.
        known = self._stored_seq()
        if known is not None and known <= self._store.seq():
            return known
        with self._index.transaction():
            known = self._stored_seq()
            if known is not None and known <= self._store.seq():
                return known  # another process was faster
            # In one transaction: clearing the index under an old number would lose what that number covers.
            self._index.clear()
            self._set(0)
        return 0

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
        if self._index.meta(_TOKENIZER) != str(TOKENIZER_VERSION):
            return None
        store, _, number = (self._index.meta(self._key) or "").partition(" ")
        return int(number) if store == self._store.store_id and number.isdecimal() else None

    def _set(self, number: int) -> None:
        mark = f"{self._store.store_id} {number}"
        self._index.set_meta(**{self._key: mark, _TOKENIZER: str(TOKENIZER_VERSION)})


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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.index = index
        self.embedder = embedder
        #: What is missing while the embedder fails, in a sentence.
        self.degraded: str | None = None
        self._store = store
        self._name = name
        self._block = block
        self._position = Position(index, name, store)
        self._clock = clock
        self._checked_at: float | None = None

    @property
    def model(self) -> str:
        """The identity of the vectors that documents should have; empty without an embedder."""
        return str(self.embedder.identity) if self.embedder else ""

    def follow(self, vectors: Mapping[str, Matrix] | None = None) -> None:
        """Index what changed in the store. A damaged index is set aside and built again.

        ``vectors`` are vectors that the caller already has, by chunk hash.
        """
        try:
            self._run(vectors or {})
        except StoreBroken as broken:
            self._heal(broken)
            self._run({})

    def prepare(self, paths: Iterable[str]) -> None:
        """Index some documents before their turn, for a caller that cannot wait for all of them."""
        try:
            self._index_block(list(paths), {})
        except StoreBroken as broken:
            self._heal(broken)

    def vector(self, text: str) -> Matrix | None:
        """Return the vector of a text; None without an embedder, or when it fails."""
        return self._embed({"": text}).get("")

    def _heal(self, broken: StoreBroken) -> None:
        log.warning("the index of %s is damaged and is built again: %s", self._name, broken)
        self.index.heal(str(broken))

    def _run(self, vectors: Mapping[str, Matrix]) -> None:
        for _ in self._steps(vectors):
            pass

    def _steps(self, vectors: Mapping[str, Matrix]) -> Iterator[None]:
        """Index what changed, one block per step. The work may end after any step."""
        since, now = self._position.start(), self._store.seq()
        yield
        paths = set() if since == now else set(self._store.changed_since(since))
        paths |= self._without_vectors()
        remaining = iter(sorted(paths))
        while block := list(islice(remaining, self._block)):
            self._index_block(block, vectors)
            yield
        self._position.advance(since, now)

    def _without_vectors(self) -> set[str]:
        """Return paths that have no vector yet. This reads the whole index, so it runs only now and then."""
        now = self._clock()
        if self.embedder is None or (self._checked_at is not None and now - self._checked_at < RETRY_S):
            return set()
        self._checked_at = now
        return self.index.stale(self.model)

    def _index_block(self, paths: Sequence[str], vectors: Mapping[str, Matrix]) -> None:
        identity = self.embedder.identity if self.embedder else None
        vectors = {**vectors, **self._embed(self._missing_texts(paths, vectors))}
        with self.index.transaction():
            # Read again under the index's lock: a document deleted while it was embedded must leave nothing here.
            documents = self._store.documents(paths)
            self.index.remove([path for path in paths if path not in documents])
            for document, chunks in documents.values():
                if identity is not None:
                    new = {chunk.hash: vectors[chunk.hash] for chunk in chunks if chunk.hash in vectors}
                    self.index.save(identity, new)
                self.index.replace(document, chunks, identity=identity)

    def _missing_texts(self, paths: Sequence[str], vectors: Mapping[str, Matrix]) -> dict[str, str]:
        """Return the texts that have no vector yet, by hash."""
        if self.embedder is None:
            return {}
        documents = self._store.documents(paths).values()
        texts = {chunk.hash: chunk.embedding_text for _, chunks in documents for chunk in chunks}
        known = self.index.known(self.embedder.identity, texts)
        return {hash_: text for hash_, text in texts.items() if hash_ not in known and hash_ not in vectors}

    def _embed(self, texts: Mapping[str, str]) -> dict[str, Matrix]:
        if self.embedder is None or not texts:
            return {}
        try:
            rows = self.embedder.embed(list(texts.values()))
        except EmbeddingError as error:
            if self.degraded is None:
                log.warning("new %s can be found by keyword only: %s", self._name, error)
            self.degraded = sentence(f"{self._name}.keywords_only", why=error)
            return {}
        self.degraded = None
        return dict(zip(texts, rows, strict=True))
