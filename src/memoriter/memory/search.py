"""One search and one way to read over notes, sessions and entries.

The engine finds notes and sessions, and the entries are added to its answer. Then a second search looks for statements
that replaced the first hit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from memoriter.build import build_reranker
from memoriter.entries.relation import contradicts
from memoriter.errors import BadArgument, MemoriterError, NotFound, SourceError
from memoriter.memory.parts import Parts
from memoriter.records import Answer, Excerpt, Hit, Query, Source, referenced_id
from memoriter.search.citations import parse_citation, shows_citations
from memoriter.search.confidence import FITTED_MODEL, conclude, identifiers, judge
from memoriter.search.freshness import SIMILAR, Lookup, refresh
from memoriter.search.masking import mask, mask_answer
from memoriter.sentences import join, sentence

SOURCES: tuple[Source, ...] = get_args(Source)
#: A search of all notes, sessions and entries.
EVERYTHING = Query("")


class MemorySearch:
    """Searches and reads everything that one agent remembers."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._settings = parts.settings

    def search(self, query: Query, *, masked: bool) -> Answer:
        """Return the lines that answer the query. The notes of a collection are searched if the query names one."""
        if query.source not in (None, *SOURCES):
            message = f"There is no source {query.source!r}. The sources are: {', '.join(SOURCES)}."
            raise BadArgument(message, "source")
        if query.collection is None:
            return self._search(query, masked=masked)
        # The index holds the notes of all folders.
        folder = self._parts.notes.collection(query.collection)
        if query.source not in (None, "memory"):
            raise SourceError(sentence("collection.notes", source=query.source))
        prefix = folder.shown if query.path_prefix is None else query.path_prefix
        answer = self._search(
            replace(query, collection=None, source="memory", path_prefix=prefix), masked=masked
        )
        return replace(answer, hits=tuple(hit for hit in answer.hits if folder.contains(hit.path)))

    def _search(self, query: Query, *, masked: bool) -> Answer:
        answer = judge(self._find(query), query.text)
        answer = replace(
            answer, hits=refresh(query.text, answer.hits, self.lookup(query))[: self._limit(query)]
        )
        answer = conclude(answer, cut=query.min_score is None)
        return self._mask_secrets(answer) if masked else answer

    def _limit(self, query: Query) -> int:
        return self._settings.search.max_results if query.max_results is None else query.max_results

    def _find(self, query: Query) -> Answer:
        """Return the notes, sessions and entries that match a query, best first."""
        if query.source == "entries":
            cited = shows_citations(self._settings.memory.citations, query.session_key)
            answer = Answer((), "none", "", citations=cited, unknown=identifiers(query.text))
        else:
            answer = self._parts.engine.search(query)
        if query.source in (None, "entries") and query.path_prefix is None:
            return self._with_entries(answer, query)
        return answer

    def _with_entries(self, answer: Answer, query: Query) -> Answer:
        if not self._parts.entries_exist or not self._parts.allows(query.session_key):
            return answer
        from memoriter.entries.search import add_entries

        limit = self._limit(query)
        try:
            found = self._parts.entries.search(
                query.text, limit=limit, threshold=query.min_score, rerank=query.rerank, beside=answer.hits
            )
            return add_entries(answer, found, limit)
        except MemoriterError as error:  # memory never breaks the agent: the failure is part of the answer
            return replace(answer, degraded=join(answer.degraded, sentence("search.no_entries", why=error)))

    def lookup(self, query: Query = EVERYTHING, *, masked: bool = False) -> Lookup:
        """Return how the statements that replaced a hit are found.

        A second search is made only with the builtin engine and the bundled embedder. Others take longer or cost money,
        and their cosines have another scale.
        """

        def find_similar(line: str) -> Sequence[Hit]:
            again = replace(query, text=line, max_results=SIMILAR, min_score=0.0, rerank=False)
            found = self._find(again)
            return self._mask_secrets(found).hits if masked else found.hits

        engine = self._parts.engine
        is_fitted = (
            engine.index is not None and engine.choice is not None and engine.choice.model == FITTED_MODEL
        )
        find = find_similar if is_fitted and query.rerank else None
        return Lookup(contradicts, find, build_reranker(self._settings))

    def search_notes(self, query: str, limit: int) -> Answer:
        """Return the notes and sessions that match a query, without secrets, as the engine ranks them."""
        return self._mask_secrets(self._parts.engine.search(Query(query, max_results=limit)))

    def read(self, path: str, start: int = 1, lines: int | None = None, *, masked: bool = False) -> Excerpt:
        """Return some lines of a note, a transcript or an entry."""
        self._parts.check_open()
        if referenced_id(path) is not None:
            return self._read_entry(path)
        cited = parse_citation(path)
        if cited and start == 1:
            path, start, shown = cited
            lines = shown if lines is None else min(lines, shown)
        excerpt = self._parts.engine.read_file(path, start, lines)
        if masked:
            excerpt = replace(excerpt, text=mask(excerpt.text, excerpt.path, self._read_whole))
        try:
            return replace(excerpt, trust=self._parts.notes.get(excerpt.path).trust)
        except NotFound:  # an external engine may read files that are not listed here
            return replace(excerpt, trust="untrusted")

    def _read_entry(self, path: str) -> Excerpt:
        if not (self._parts.allows(None) and self._parts.entries_exist):
            raise NotFound(sentence("entry.not_found", id=path))
        entry = self._parts.entries.get(path)
        last = entry.text.count("\n") + 1
        return Excerpt(f"entries/{entry.id}", entry.text, 1, last, last, entry.trust)

    def _mask_secrets(self, answer: Answer) -> Answer:
        return mask_answer(answer, self._read_whole)

    def _read_whole(self, path: str) -> str:
        return self._parts.engine.read_file(path, 1, None).text
