"""One search over everything that an agent remembers: notes, sessions and entries.

The engine finds notes and sessions, the entries are added to its answer, and newer lines are looked for near its hits.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from memoriter.build import build_judge, build_workspace
from memoriter.entries.relation import contradicts
from memoriter.errors import BadArgument, MemoriterError, NotFound, SourceError
from memoriter.records import Answer, Excerpt, Query, Recall, Source, referenced_id
from memoriter.search import shape
from memoriter.search.freshness import Lookup, refresh
from memoriter.search.rerank import answer
from memoriter.search.search import MAX_QUERY_CHARS
from memoriter.search.when import label_plans, past_question
from memoriter.sentences import join, sentence
from memoriter.text.dates import end_of_day, local_day, read_day

if TYPE_CHECKING:
    from memoriter.entries.context import EntryContext
    from memoriter.memory_parts import MemoryParts
    from memoriter.recall.inject import Check, Recalled

SOURCES: tuple[Source, ...] = get_args(Source)
#: A search of all notes, sessions and entries.
EVERYTHING = Query("")


class MemorySearch:
    """Searches and reads everything that one agent remembers."""

    def __init__(self, parts: MemoryParts) -> None:
        self._parts = parts
        self._settings = parts.settings
        self._judge = build_judge(parts.settings)

    def search(self, query: Query, *, masked: bool) -> Answer:
        """Return the lines that answer the query. The notes of a collection are searched if the query names one."""
        if query.source not in (None, *SOURCES):
            message = f"There is no source {query.source!r}. The sources are: {', '.join(SOURCES)}."
            raise BadArgument(message, "source")
        if len(query.text) > MAX_QUERY_CHARS:  # people ask before or behind what they paste
            half = MAX_QUERY_CHARS // 2 - 1
            query = replace(query, text=f"{query.text[:half]}\n{query.text[-half:]}")
        if query.as_of is not None:
            query = replace(query, as_of=read_day(query.as_of).isoformat())
        if query.collection is None:
            return self._search(query, masked=masked)
        # The index holds the notes of all folders.
        folder = build_workspace(self._settings, documents=True).collection(query.collection)
        if query.source not in (None, "memory"):
            raise SourceError(sentence("collection.notes", source=query.source))
        prefix = folder.shown if query.path_prefix is None else query.path_prefix
        notes = replace(query, collection=None, source="memory", path_prefix=prefix)
        answer = self._search(notes, masked=masked)
        return replace(answer, hits=tuple(hit for hit in answer.hits if folder.contains(hit.path)))

    def for_prompt(self, query: Query) -> Answer:
        """Search for a model to read: masked, citations below the snippets, within `memory.max_injected_chars`."""
        return shape.for_prompt(self.search(query, masked=True), self._settings.memory.max_injected_chars)

    def _search(self, query: Query, *, masked: bool) -> Answer:
        answer = shape.judge(self.find(query), query.text)
        if query.as_of is None and (asked := past_question(query.text, local_day())):
            then = self.find(replace(query, text=asked.text, as_of=asked.day.isoformat()))
            answer = shape.add_earlier(answer, shape.judge(then, asked.text))
        hits = refresh(query.text, answer.hits, self.lookup(query))[: self._limit(query)]
        answer = replace(answer, hits=label_plans(hits, local_day()))
        answer = shape.conclude(answer, cut=query.min_score is None)
        return shape.mask_answer(answer, self._read_whole) if masked else answer

    def _limit(self, query: Query) -> int:
        return self._settings.search.max_results if query.max_results is None else query.max_results

    def find(self, query: Query) -> Answer:
        """Return the notes, sessions and entries that match a query, best first."""
        if query.source == "entries":
            cited = self._parts.shows_citations(query.session)
            answer = Answer((), "none", "", citations=cited, unknown=shape.identifiers(query.text))
        else:
            answer = self._parts.engine.search(query)
        if query.as_of:  # an external engine may know no days
            dated = tuple(hit for hit in answer.hits if hit.date and hit.date <= query.as_of)
            answer = replace(answer, hits=dated)
        if query.source in (None, "entries") and query.path_prefix is None:
            return self._with_entries(answer, query)
        return answer

    def _with_entries(self, answer: Answer, query: Query) -> Answer:
        if not self._parts.entries_exist or not self._parts.allows(query.session):
            return answer
        from memoriter.entries import search as entry_search

        limit = self._limit(query)
        try:
            found = entry_search.search(
                self._parts.entry_context,
                query.text,
                limit=limit,
                threshold=query.min_score,
                rerank=query.rerank,
                beside=answer.hits,
                as_of=end_of_day(read_day(query.as_of)) if query.as_of else None,
            )
            return entry_search.add_entries(answer, found, limit)
        except MemoriterError as error:  # memory never breaks the agent: the failure is part of the answer
            return replace(answer, degraded=join(answer.degraded, sentence("search.no_entries", why=error)))

    def lookup(self, query: Query = EVERYTHING, *, masked: bool = False) -> Lookup:
        """Return how newer lines near a hit are found.

        Lines near a hit are looked for only with the builtin engine and the bundled embedder: the cosines of others
        have another scale.
        """
        parts, engine, session = self._parts, self._parts.engine, query.session
        choice, index = engine.choice, engine.index
        embedder = choice.embedder if choice and choice.model == shape.FITTED_MODEL else None
        if embedder is None or index is None or not query.rerank or query.as_of is not None:
            return Lookup(contradicts, judge=self._judge)

        def entries() -> EntryContext | None:
            is_asked = query.source in (None, "entries") and query.path_prefix is None
            return parts.entry_context if is_asked and parts.entries_exist and parts.allows(session) else None

        from memoriter.entries.near import NearLines

        read_whole = self._read_whole if masked else None
        find_similar = NearLines(
            engine.near, query, index, embedder, entries, read_whole, parts.shows_citations(session)
        )
        return Lookup(contradicts, find_similar, self._judge, answer)

    def search_notes(self, query: str, limit: int) -> Answer:
        """Return the notes and sessions that match a query, without secrets, as the engine ranks them."""
        found = self._parts.engine.search(Query(query, max_results=limit))
        return shape.mask_answer(found, self._read_whole)

    def recall(
        self,
        query: str,
        *,
        key: str | None,
        session: str | None,
        interface: str,
        tokens: int | None = None,
        entries: int | None = None,
        notes: int | None = None,
        check: Check | None = None,
    ) -> Recalled:
        """Return the block of memories about a query. ``key`` decides what is shown, the ledger has ``session``."""
        from memoriter.recall.inject import Budget, Recalled

        if not self._parts.allows(key):
            return Recalled("", "")
        limits = self._settings.retrieval
        budget = Budget(
            max_entries=limits.max_memories if entries is None else entries,
            max_notes=Budget().max_notes if notes is None else notes,
            threshold=limits.similarity_threshold,
            min_confidence=limits.min_confidence,
            characters=self._settings.memory.max_injected_chars,
            tokens=tokens,
        )
        shown = self._parts.shows_citations(key)
        return self._parts.injector.recall(
            query, budget=budget, interface=interface, session=session or key, show_places=shown, check=check
        )

    def read(self, path: str, start: int = 1, lines: int | None = None, *, masked: bool = False) -> Excerpt:
        """Return some lines of a note, a transcript or an entry."""
        self._parts.check_open()
        if referenced_id(path) is not None:
            return self._read_entry(path)
        cited = shape.parse_citation(path)
        if cited and start == 1:
            path, start, shown = cited
            lines = shown if lines is None else min(lines, shown)
        excerpt = self._parts.engine.read_file(path, start, lines)
        if masked:
            excerpt = replace(excerpt, text=shape.mask(excerpt.text, excerpt.path, self._read_whole))
        try:
            return replace(excerpt, trust=self._parts.notes.get(excerpt.path).trust)
        except NotFound:  # an external engine may read files that are not listed here
            return replace(excerpt, trust="untrusted")

    def _read_entry(self, path: str) -> Excerpt:
        if not self._parts.has_entries:
            raise NotFound(sentence("entry.not_found", id=path))
        entry = self._parts.entries.get(path)
        last = entry.text.count("\n") + 1
        return Excerpt(f"entries/{entry.id}", entry.text, 1, last, last, entry.trust)

    def texts_of(self, recall: Recall, *, masked: bool = False) -> dict[str, str]:
        """Return the texts of what a recall considered, by reference, as entries and notes say it now."""
        entries = self._parts.entries.get_many(recall.refs("entry"))
        texts = {id_: entry.text for id_, entry in entries.items()}
        for ref in recall.refs("note"):
            with suppress(MemoriterError):  # the note was removed or has become shorter
                texts[ref] = self.read(ref, masked=masked).text.strip()
        return texts

    def _read_whole(self, path: str) -> str:
        return self._parts.engine.read_file(path, 1, None).text
