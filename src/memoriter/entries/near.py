"""The lines nearest to a line: entries, and the vector that notes and entries are compared with.

A line that was recalled leads to the newer lines about the same thing (`memoriter.search.freshness`). Its vector is
stored, so nothing is embedded again, and the words in common are counted instead of searched for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.entries.search import as_hit, is_in_force, limited
from memoriter.errors import EmbeddingError, StoreError
from memoriter.records import EntryHit, Explanation, Hit, Query, text_hash
from memoriter.search.freshness import SIMILAR
from memoriter.search.rank import neighbours, word_weights
from memoriter.search.shape import ReadWhole, mask_hit
from memoriter.store.keywords import contained
from memoriter.text import query_terms

if TYPE_CHECKING:
    from memoriter.embedding import Embedder
    from memoriter.embedding.protocol import Matrix
    from memoriter.entries.context import EntryContext
    from memoriter.store import Index

log = logs.get("search")


@dataclass(frozen=True, slots=True)
class NearLines:
    """Finds the lines nearest to a line of a hit."""

    notes: Callable[[str, Matrix, Query, int], Sequence[Hit]]
    query: Query
    index: Index
    embedder: Embedder
    #: Returns None if there are no entries, or the query is not about them.
    entries: Callable[[], EntryContext | None]
    #: Reads a note, if its secrets are replaced.
    read_whole: ReadWhole | None
    cited: bool

    def __call__(self, line: str, hit: Hit) -> Sequence[Hit]:
        """Return the nearest notes, and the nearest entries in force."""
        try:
            entries = self.entries()
            vector = self._vector_of(
                line, hit, entries.follower.index if entries and hit.entry else self.index
            )
            found = self._near_entries(entries, line, vector) if entries else ()
            return (*self._near_notes(line, vector), *found)
        except (EmbeddingError, StoreError) as error:  # the answer itself does not depend on it
            log.warning("newer lines are not looked for: %s", error)
            return ()

    def _vector_of(self, line: str, hit: Hit, index: Index) -> Matrix:
        """Return the vector of a line: that of its chunk if the chunk says nothing else, or a new one."""
        texts = (line,) if "\n" in hit.snippet else (line, hit.snippet, f"{hit.heading}\n{hit.snippet}")
        known = index.load(self.embedder.identity, map(text_hash, texts))
        return next(iter(known.values())) if known else self.embedder.embed_query(line)

    def _near_notes(self, line: str, vector: Matrix) -> Sequence[Hit]:
        if self.query.source == "entries":
            return ()
        hits = self.notes(line, vector, self.query, SIMILAR)
        hits = hits if self.cited else [replace(hit, citation=None) for hit in hits]
        return [mask_hit(hit, self.read_whole) for hit in hits] if self.read_whole else hits

    def _near_entries(self, context: EntryContext, line: str, vector: Matrix) -> Iterator[Hit]:
        """Yield the entries in force that are nearest to a line, as `Searcher.near` returns notes."""
        index, where = context.follower.index, limited(context, {})
        cosines = dict(index.nearest(vector, self.embedder.identity, limit=SIMILAR))
        words, stored = word_weights(index, query_terms(line)), index.chunks(cosines)
        known = context.store.load(one.chunk.path for one in stored.values())
        held = {row: contained([*words.idf], one.chunk) for row, one in stored.items()}
        for item in neighbours(cosines, {row: words.coverage(held[row]) for row in held}):
            entry = known.get(stored[item.rowid].chunk.path)
            if entry and is_in_force(context, entry, where, None):
                explain = Explanation("similar", item.parts, held[item.rowid])
                yield as_hit(EntryHit(entry, item.score, item.score, explain), cited=self.cited)
