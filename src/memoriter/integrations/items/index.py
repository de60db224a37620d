"""The derived index of items: keywords and vectors that follow ``items.db`` by its sequence numbers.

Behind, it takes in what changed; gone, damaged, or of another store, it is made again. Nothing here is truth, and what
it proposes is looked up there.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.errors import EmbeddingError, StoreBroken
from memoriter.index.progress import Reached
from memoriter.integrations.items.store import ItemStore
from memoriter.notes.chunking import chunk_passages
from memoriter.records import Chunk, Document, Item, Passage
from memoriter.search.legs import complete, keyword_leg, vector_leg
from memoriter.store import Filter
from memoriter.store.index import Index
from memoriter.text import query_terms
from memoriter.text.encoding import encodable

if TYPE_CHECKING:
    from memoriter.embedding import Batched, Embedder
    from memoriter.embedding.protocol import Matrix

log = logs.get("items")

MARK = "items"  #: under which the index notes how far it has come
BLOCK = 256  #: items that are embedded and written together
RETRY_S = 60.0  #: items without a vector, because the embedder failed, wait so long at most
CANDIDATES = 64  #: rows that each leg proposes at least
KEYWORD_SHARE = 0.3  #: of what the cosine leaves open, that matching words may fill
MAX_QUERY_CHARS = 8_000


class ItemIndex:
    """Keeps one index in step with one ``items.db``, and says how well items fit a query."""

    def __init__(
        self,
        store: ItemStore,
        index: Index,
        embedder: Embedder | None = None,
        batched: Batched | None = None,
        *,
        clock: Callable[[], float],
    ) -> None:
        self.store = store
        self.index = index
        self.embedder = embedder
        self.batched = batched
        self._reached = Reached(index, MARK, store)
        self._clock = clock
        self._looked: float | None = None  # when items without a vector were last looked for

    # ---- asking ----------------------------------------------------------------------------------------------

    def scores(self, query: str, prefix: Sequence[str], ids: set[str], wanted: int) -> dict[str, float]:
        """How well items fit a query, by id: at least as many as are wanted, where so many fit at all."""
        self.follow()
        text, where = query[:MAX_QUERY_CHARS], Filter(path_prefix=_folder(prefix) or None)
        terms, width = query_terms(text), max(CANDIDATES, 4 * wanted)
        while True:
            meaning = vector_leg(self.index, self.embedder, text, limit=width, where=where)
            words = keyword_leg(self.index, terms, limit=width, where=where)
            cosines = complete(meaning, self.index, self.embedder, set(words.values))
            scores: dict[str, float] = {}
            for row, stored in self.index.chunks(sorted({*words.values, *cosines})).items():
                item_id = stored.chunk.path.rpartition("/")[2]
                if item_id in ids:  # the best of an item's texts counts
                    score = _similarity(cosines.get(row, 0.0), words.values.get(row, 0.0))
                    scores[item_id] = max(score, scores.get(item_id, 0.0))
            exhausted = max(len(meaning.values), len(words.values)) < width
            if len(scores) >= min(wanted, len(ids)) or exhausted:
                return scores
            width *= 8  # the filter dropped many: look further

    # ---- following -------------------------------------------------------------------------------------------

    def erase(self) -> bool:
        """Take out of the index, and out of both logs, what is gone from the truth.

        False when another process reads at this moment, so that it has to be done once more.
        """
        names, seq = self.store.unfinished(), self.store.seq()
        self.follow()
        hashes = {name.partition(" ")[0] for name in names}
        emptied = self.index.erase(hashes, self.batched.identity if self.batched else None)
        return emptied and self.store.finish(names, seq)

    def follow(self) -> None:
        """Take in what has changed; a damaged index is set aside and made again."""
        try:
            self._follow()
        except StoreBroken as broken:
            log.warning("the index of items is damaged and is made again: %s", broken)
            self.index.heal(str(broken))
            self._follow()

    def _follow(self) -> None:
        since, now = self._reached.begin(), self.store.seq()
        changed = {} if since == now else self.store.changed_since(since)
        paths = {
            _path(namespace, item_id) for item_id, namespace in changed.items()
        } | self._without_vectors()
        waiting = iter(sorted(paths))
        while block := list(islice(waiting, BLOCK)):
            self._take_in({path.rpartition("/")[2]: path for path in block})
        self._reached.note(since, now)

    def _without_vectors(self) -> set[str]:
        """Items that the embedder has still to see; looked for now and then, since that reads the whole index."""
        now = time.monotonic()
        if self.batched is None or (self._looked is not None and now - self._looked < RETRY_S):
            return set()
        self._looked = now
        return self.index.stale(str(self.batched.identity))

    def _take_in(self, paths: Mapping[str, str]) -> None:
        """Index the items of these ids, and drop the paths of those that are gone."""
        identity = self.batched.identity if self.batched else None
        vectors = self._embedded(self.store.load(paths, now=self._clock()))
        with self.index.transaction():
            # Read again under the index's lock: what was deleted while it was embedded leaves nothing here.
            alive = self.store.load(paths, now=self._clock())
            self.index.remove([path for item_id, path in paths.items() if item_id not in alive])
            for item in alive.values():
                chunks = chunks_of(item)
                if identity is not None:
                    known = {chunk.hash: vectors[chunk.hash] for chunk in chunks if chunk.hash in vectors}
                    self.index.save(identity, known)
                self.index.replace(_document(item), chunks, identity=identity)

    def _embedded(self, items: Mapping[str, Item]) -> dict[str, Matrix]:
        """The vectors of texts that have none yet; none when the embedder fails, and keywords must do."""
        if self.batched is None:
            return {}
        texts = {chunk.hash: chunk.embedding_text for item in items.values() for chunk in chunks_of(item)}
        having = self.index.known(self.batched.identity, texts)
        missing = {hash_: text for hash_, text in texts.items() if hash_ not in having}
        try:
            return (
                dict(zip(missing, self.batched.embed(list(missing.values())), strict=True)) if missing else {}
            )
        except EmbeddingError as error:
            log.warning("items can be found by keyword only: %s", error)
            return {}


def chunks_of(item: Item) -> list[Chunk]:
    """What is searched of an item: each of its texts, cut where one is long."""
    return chunk_passages(_document(item))


def _document(item: Item) -> Document:
    texts = [encodable(text) for text in item.texts]
    passages = tuple(Passage(line, line, text, None, "agent") for line, text in enumerate(texts, 1))
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    return Document(_path(item.namespace, item.id), "entries", "", digest, 0, 0, passages=passages)


def _folder(namespace: Sequence[str]) -> str:
    """What the paths of a namespace's items begin with. Others' may too, where labels hold "/": they are sifted out."""
    return "".join(f"{label}/" for label in namespace)


def _path(namespace: Sequence[str], item_id: str) -> str:
    return _folder(namespace) + item_id


def _similarity(cosine: float, words: float) -> float:
    """The cosine; words that fit as well add to it and never take away. Without a vector, the words alone."""
    cosine = min(1.0, cosine)
    return cosine + (KEYWORD_SHARE * (1 - cosine) if cosine else 1.0) * words
