"""The parts of a memory, and one search over notes, sessions and entries.

`MemoryParts` opens the parts at first use and closes them together. The interfaces of this package get it from
`memoriter.memory.parts_of`, and ask it what programs do not need. `MemorySearch` searches and reads everything: the
engine finds notes and sessions, the entries are added to its answer, and a second search looks for statements that
replaced the first hit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args

from memoriter import logs
from memoriter.build import (
    build_chat,
    build_entries,
    build_extractor,
    build_judge,
    build_notebook,
    build_notes,
    build_store,
    build_workspace,
    scope_of,
    shared_embedder,
    trust_rules,
    was_there,
)
from memoriter.engines import Engine
from memoriter.engines.builtin import NoteCopies
from memoriter.entries.collection import context_of
from memoriter.entries.editing import mark_relayed
from memoriter.entries.relation import contradicts
from memoriter.errors import BadArgument, MemoriterError, MemoryClosed, NotFound, SourceError
from memoriter.records import Answer, Excerpt, Hit, Query, Recall, Source, Trust, referenced_id
from memoriter.search import shape
from memoriter.search.freshness import SIMILAR, Lookup, refresh
from memoriter.search.when import label_plans, past_question
from memoriter.sentences import join, sentence
from memoriter.sessions.scope import ScopeCheck
from memoriter.text.dates import end_of_day, local_day, read_day

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.embedding import Embedder
    from memoriter.entries import Entries
    from memoriter.entries.context import EntryContext
    from memoriter.entries.extract import Extractor
    from memoriter.llm import Chat
    from memoriter.notes.collection import Notes
    from memoriter.notes.notebook import Notebook
    from memoriter.notes.summary import Flush, Summaries
    from memoriter.recall.inject import Check, Injector, Recalled
    from memoriter.sessions.outside_text import TrustRules
    from memoriter.sessions.seen_turns import SeenTurns

log = logs.get("memory")

SOURCES: tuple[Source, ...] = get_args(Source)
#: A search of all notes, sessions and entries.
EVERYTHING = Query("")
T = TypeVar("T")


class _Part(Generic[T]):
    """A part that is opened at first use, once, and closed with the memory."""

    def __init__(self, open_part: Callable[[MemoryParts], T]) -> None:
        self._open_part = open_part

    def __get__(self, parts: MemoryParts, owner: object) -> T:
        return parts.open_once(self._open_part.__name__, lambda: self._open_part(parts))


class MemoryParts:
    """The parts of one memory. After `close`, each of them raises `MemoryClosed`."""

    def __init__(self, settings: Settings, engine: Engine, release_files: Callable[[], None]) -> None:
        self.settings = settings
        self._engine = engine
        self._release_files = release_files
        self.store = build_store(settings)
        self._scope = ScopeCheck(scope_of(settings))
        self._opened: dict[Hashable, Any] = {}
        self._closed = False
        # Parts are opened at first use, possibly by several threads at the same time.
        self._lock = threading.RLock()
        self.search = MemorySearch(self)
        #: How a running `MemoryService` detects file changes, as text.
        self.watch_state: Callable[[], str] | None = None

    def close(self) -> None:
        """Close files and stop threads. Closing closed parts does nothing."""
        with self._lock:  # waits for parts that are being opened; none is opened afterwards
            if self._closed:
                return
            self._closed = True
        for part in reversed(self._opened.values()):
            if hasattr(part, "close"):
                part.close()
        self._engine.close()
        self._release_files()

    def check_open(self) -> None:
        """Raise `MemoryClosed` after `close`."""
        if self._closed:
            raise MemoryClosed("This memory is closed. Open it again with `memoriter.open`.")

    def open_once(self, key: Hashable, open_part: Callable[[], T]) -> T:
        """Return a part, opened at first use, once, and closed with the memory. Other packages may add parts."""
        with self._lock:
            self.check_open()
            if key not in self._opened:
                self._opened[key] = open_part()
            part: T = self._opened[key]
            return part

    @property
    def engine(self) -> Engine:
        """The engine, which searches notes and sessions."""
        self.check_open()
        return self._engine

    @_Part
    def entries(self) -> Entries:
        """The entries that the agent has learned."""
        return build_entries(self.settings, self._engine)

    @property
    def entries_exist(self) -> bool:
        """Whether anything was ever learned. Unlike `entries`, this creates no database."""
        return "entries" in self._opened or self.store.may_hold("entries", self.settings.entries_index)

    @property
    def has_entries(self) -> bool:
        """Whether anything was ever learned that the owner may see."""
        return self.allows(None) and self.entries_exist

    @_Part
    def notes(self) -> Notes:
        """The notes and transcripts of the workspace."""
        return build_notes(self.settings, self._engine, lambda: self.notebook)

    @_Part
    def notebook(self) -> Notebook:
        """The notebook, which writes notes."""
        return build_notebook(self.settings, self._engine)

    @_Part
    def chat(self) -> Chat:
        """The language model."""
        return build_chat(self.settings)

    @_Part
    def summaries(self) -> Summaries:
        """The writer of summaries."""
        from memoriter.notes.summary import Summaries

        return Summaries(self.notebook, self.chat, self.settings.agent_folder)

    @_Part
    def flushes(self) -> Flush:
        """The writer of what a compaction would drop."""
        from memoriter.notes.summary import Flush

        margin_tokens = self.settings.writing.flush_margin_tokens
        return Flush(self.notebook, self.chat, self.settings.agent_folder, margin_tokens)

    @_Part
    def extractor(self) -> Extractor:
        """The extractor, which asks the language model which statements of a conversation to remember."""
        return build_extractor(self.settings, self.entries, self.chat)

    @_Part
    def injector(self) -> Injector:
        """The injector, which selects what enters a prompt."""
        from memoriter.recall.inject import Injector

        return Injector(self.entries, self.search.search_notes, self.search.lookup(masked=True))

    @_Part
    def entry_context(self) -> EntryContext:
        """The store and the index of the entries."""
        return context_of(self.entries)

    @_Part
    def seen_turns(self) -> SeenTurns:
        """The turns that were captured before."""
        from memoriter.sessions.seen_turns import SeenTurns

        return SeenTurns(self.settings.agent_folder, self.entry_context.store.digest)

    @property
    def embedder(self) -> Embedder | None:
        """The embedder that notes and entries share, or None if the memory searches by keywords only."""
        return shared_embedder(self.settings, self.engine)

    @property
    def knows_notes(self) -> bool:
        """Whether the workspace had notes, as far as the index knows."""
        return was_there(self.engine)

    # ---- questions and changes ---------------------------------------------------------------------------------

    def allows(self, session: str | None) -> bool:
        """Return whether this session may use the memory, by its key."""
        self.check_open()
        return self._scope.allows(session)

    def allows_name(self, session: str | None) -> bool:
        """Return whether a session may use the memory whose name may be a session key. Other names are allowed."""
        self.check_open()
        return not any(mark in (session or "") for mark in ":@") or self.allows(session)

    def shows_citations(self, session: str | None) -> bool:
        """Return whether answers for this session show where each hit is from."""
        return shape.shows_citations(self.settings.memory.citations, session)

    @property
    def trust_rules(self) -> TrustRules:
        """The rules that decide whose words the turns of a conversation are."""
        self.check_open()
        return trust_rules(self.settings)

    @property
    def watching(self) -> str | None:
        """The method that detects file changes, as text; None if no `MemoryService` runs."""
        self.check_open()
        return self.watch_state() if self.watch_state else None

    def mark_relayed(self, refs: Sequence[str]) -> None:
        """Lower the trust of what an agent wrote after it had read text from outside to `relayed`.

        ``refs`` are ids of entries and paths of notes, as `relayed_refs` in `sessions.messages` returns them. Those of
        the owner are not changed.
        """
        self.check_open()
        ids = [ref for ref in refs if referenced_id(ref)]
        if ids and self.has_entries:
            mark_relayed(self.entry_context, ids)
        for path in dict.fromkeys(ref for ref in refs if not referenced_id(ref)):
            self.notes.mark_relayed(path)

    def copies(self, trust: Trust) -> NoteCopies:
        """Return the copies of entries in notes and sessions, as far as this speaker may erase them."""
        aside = sorted(self.settings.home.glob("replaced-*"))
        return NoteCopies(self.engine, self.notes, trust, self.settings.other_indexes(), aside)

    def session_began(self, session: str) -> None:
        """Note that a session starts or continues, so that its first turns show whether it is a new one."""
        if self.has_entries:
            with self.seen_turns.of(session) as seen:
                seen.mark_ended()

    def count_waiting_turns(self, session: str) -> int:
        """Count the turns of a session that were captured but that the language model has not seen yet."""
        self.check_open()
        return len(self.extractor.waiting(session)) if self.settings.extraction.auto_extract else 0

    def warm_up(self, *, load_model: bool = False) -> str | None:
        """Start an external engine, so that the first search is fast; return an error message if it does not work.

        ``load_model`` also loads the embedder of the builtin engine.
        """
        if self.settings.memory.backend == "builtin":
            return self.engine.probe_embedding() if load_model else None
        self.engine.start()
        if problem := self.engine.probe_vector():
            log.warning("the memory backend does not work: %s", problem)
        else:
            log.info("the memory backend is ready")
        return problem

    def judge_problem(self) -> str | None:
        """Return why changes are recognised by exact denials only; None if the judge works or is switched off."""
        judge = build_judge(self.settings)
        return judge.problem() if judge else None


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
        """Return how the statements that replaced a hit are found.

        A second search is made only with the builtin engine and the bundled embedder. Others take longer or cost money,
        and their cosines have another scale.
        """

        def find_similar(line: str) -> Sequence[Hit]:
            again = replace(query, text=line, max_results=SIMILAR, min_score=0.0, rerank=False)
            found = self.find(again)
            return shape.mask_answer(found, self._read_whole).hits if masked else found.hits

        engine = self._parts.engine
        is_fitted = (
            engine.index is not None
            and engine.choice is not None
            and engine.choice.model == shape.FITTED_MODEL
        )
        find = find_similar if is_fitted and query.rerank else None
        return Lookup(contradicts, find, self._judge)

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
