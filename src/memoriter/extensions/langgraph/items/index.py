"""The derived index of items: keywords and vectors that follow ``items.db``.

It proposes items for a query. The values themselves are read from ``items.db``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from memoriter.embedding import Batched, Embedder
from memoriter.extensions.langgraph.items.store import Item, ItemStore
from memoriter.index.follow import Follower, Indexed
from memoriter.notes.chunking import chunk_passages
from memoriter.records import Chunk, Document, Passage
from memoriter.search.rank import Weights, complete, keyword_leg, total_scores, vector_leg
from memoriter.search.search import MAX_QUERY_CHARS
from memoriter.store import Filter, Index
from memoriter.text import query_terms
from memoriter.text.encoding import encodable

#: Minimum number of rows that each leg proposes.
CANDIDATES = 64


class ItemDocuments:
    """The items of one store as documents of an index."""

    def __init__(self, store: ItemStore, clock: Callable[[], float]) -> None:
        self.store_id = store.store_id
        self.seq = store.seq
        self.mark = store.mark
        self._store = store
        self._clock = clock

    def changed_since(self, seq: int) -> list[str]:
        """Return the paths of the items that changed after this change."""
        return [_path(namespace, id_) for id_, namespace in self._store.changed_since(seq).items()]

    def documents(self, paths: Sequence[str]) -> dict[str, Indexed]:
        """Return the items under these paths that have not expired, as the index stores them."""
        ids = {path.rpartition("/")[2]: path for path in paths}
        items = self._store.load(ids, now=self._clock())
        return {ids[id_]: (_document(item), chunks_of(item)) for id_, item in items.items()}


class ItemIndex:
    """The index over one ``items.db``."""

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
        self._weights = Weights()
        self.follower = Follower(ItemDocuments(store, clock), index, batched, name="items")

    def scores(self, query: str, prefix: Sequence[str], ids: set[str], wanted: int) -> dict[str, float]:
        """Return the scores of items for a query, by id: at least as many as requested, if that many match."""
        self.follower.follow()
        return self.follower.healing(lambda: self._scores(query, prefix, ids, wanted))

    def _scores(self, query: str, prefix: Sequence[str], ids: set[str], wanted: int) -> dict[str, float]:
        text, where = query[:MAX_QUERY_CHARS], Filter(path_prefix=_folder(prefix) or None)
        terms, width = query_terms(text), max(CANDIDATES, 4 * wanted)
        while True:
            meaning = vector_leg(self.index, self.embedder, text, limit=width, where=where)
            words = keyword_leg(self.index, terms, limit=width, where=where)
            cosines = complete(meaning, self.index, self.embedder, set(words.values), words.values)
            by_row = total_scores(self._weights.legs(cosines, words))
            scores: dict[str, float] = {}
            for row, stored in self.index.chunks(sorted(by_row)).items():
                item_id = stored.chunk.path.rpartition("/")[2]
                if item_id in ids:  # the best of an item's texts counts
                    scores[item_id] = max(by_row[row], scores.get(item_id, 0.0))
            exhausted = max(len(meaning.values), len(words.values)) < width
            if len(scores) >= min(wanted, len(ids)) or exhausted:
                return scores
            width *= 8  # the filter dropped many: search wider

    def erase(self) -> bool:
        """Remove deleted texts from the index and from both logs.

        Return False if another process reads at this moment, so that this has to be repeated.
        """
        names, seq = self.store.unfinished(), self.store.seq()
        self.follower.follow()
        hashes = {name.partition(" ")[0] for name in names}
        batched = self.follower.embedder
        identity = batched.identity if batched else None
        emptied = self.follower.healing(lambda: self.index.erase(hashes, identity))
        return emptied and self.store.finish(names, seq)


def chunks_of(item: Item) -> list[Chunk]:
    """Return the searchable chunks of an item: each of its texts, split if it is long."""
    return chunk_passages(_document(item))


def _document(item: Item) -> Document:
    texts = [encodable(text) for text in item.texts]
    passages = tuple(Passage(line, line, text, None, "agent") for line, text in enumerate(texts, 1))
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    return Document(_path(item.namespace, item.id), "entries", "", digest, 0, 0, passages=passages)


def _folder(namespace: Sequence[str]) -> str:
    """Return the path prefix of a namespace. Other namespaces may share it if labels contain "/"; callers filter."""
    return "".join(f"{label}/" for label in namespace)


def _path(namespace: Sequence[str], item_id: str) -> str:
    return _folder(namespace) + item_id
