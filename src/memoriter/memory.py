"""Memory: the public object of the package. It joins the engine, the entries and the notes of one agent.

Programs that run an event loop use `AsyncMemory`, which forwards to this class.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar, Unpack

from memoriter.build import (
    build_engine,
    build_entries,
    build_exchange,
    build_extractor,
    build_notes,
    build_writer,
    check_server,
    entries_exist,
    scope_of,
    share_files,
    shared_embedder,
    trust_rules,
    was_there,
)
from memoriter.engines import Engine
from memoriter.engines.fallback import warm_up
from memoriter.entries.relation import contradicts
from memoriter.errors import MemoriterError, MemoryClosed, NotFound, SourceError, StoreError
from memoriter.recall.render import Language, memory_section
from memoriter.records import (
    Answer,
    Excerpt,
    Hit,
    ProgressCallback,
    Query,
    Recall,
    Receipt,
    Remembered,
    Saved,
    Source,
    Status,
    SyncReport,
    Trust,
    Turn,
    least_trusted,
    referenced_id,
)
from memoriter.search.citations import for_prompt, parse_citation, shows_citations
from memoriter.search.confidence import FITTED_MODEL, conclude, identifiers, judge
from memoriter.search.freshness import SIMILAR, Lookup, refresh
from memoriter.search.masking import mask, mask_answer
from memoriter.sentences import join, sentence
from memoriter.sessions.scope import ScopeCheck

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.embedding import Embedder
    from memoriter.entries import Entries
    from memoriter.entries.collection import DraftFields
    from memoriter.entries.extract import Extractor
    from memoriter.notes.agent_folder import AgentFolder
    from memoriter.notes.collection import Notes
    from memoriter.notes.exchange import FolderExchange
    from memoriter.notes.writer import NoteWriter
    from memoriter.recall.inject import Injector, Recalled
    from memoriter.sessions.outside_text import TrustRules
    from memoriter.sessions.seen_turns import SeenTurns
    from memoriter.sessions.transcript_writer import TranscriptWriter

Messages = Iterable[Mapping[str, object]]
#: A search of all notes, sessions and entries.
EVERYTHING = Query("")
SavedOrNone = TypeVar("SavedOrNone", Saved, Saved | None)


@contextmanager
def gateway_files(settings: Settings) -> Iterator[Path]:
    """Use the folder with tokens and tickets. Gateways on one Postgres server share it."""
    release = share_files(settings, gateway=True)
    try:
        yield settings.store_folder
    finally:
        release()


class Closable(Protocol):
    """Something that is closed with the memory."""

    def close(self) -> None:
        """Close files and stop threads."""


ExtensionT = TypeVar("ExtensionT", bound=Closable)


class Memory:
    """The memory of one agent over one workspace. Open it with `memoriter.open`, and close it when done.

    Every method may be called from several threads. After `close`, every method raises `MemoryClosed`.
    """

    def __init__(
        self, settings: Settings, engine: Engine, *, release_files: Callable[[], None] = lambda: None
    ) -> None:
        #: The settings that this memory was opened with.
        self.settings = settings
        self._engine = engine
        self._release_files = release_files
        self._entries: Entries | None = None
        self._notes: Notes | None = None
        self._extensions: dict[Callable[[Memory], Any], Any] = {}
        self._injector: Injector | None = None
        self._extractor: Extractor | None = None
        self._writer: NoteWriter | None = None
        self._seen_turns: SeenTurns | None = None
        self._scope: ScopeCheck | None = None
        #: Set by a running `MemoryService`.
        self._watch_state: Callable[[], str] | None = None
        self._closed = False
        # Parts are opened at first use, possibly by several threads at the same time.
        self._lock = threading.RLock()

    @classmethod
    def open(
        cls,
        workspace: Path | str | None = None,
        *,
        home: Path | str | None = None,
        agent: str | None = None,
        config: Path | str | None = None,
        overrides: Mapping[str, object] | None = None,
        embedder: Embedder | None = None,
        settings: Settings | None = None,
    ) -> Memory:
        """Open the memory of a workspace.

        Without ``workspace`` the settings name it. ``home`` is the folder for indexes and entries (default:
        ``~/.memoriter``), ``agent`` the name of the agent (default: ``main``) and ``config`` the settings file.
        ``overrides`` sets single settings by their dotted key, such as ``{"search.max_results": 10}``. ``embedder``
        replaces the configured one. ``settings`` are used as they are; the other arguments but ``embedder`` are then
        ignored.
        """
        if settings is None:
            from memoriter.config import load

            places = {"workspace": workspace, "home": home, "agent": agent}
            named = {key: value for key, value in places.items() if value is not None}
            settings = load(config=Path(config) if config else None, arguments={**named, **(overrides or {})})
        release_files = share_files(settings)
        try:
            return cls(settings, build_engine(settings, embedder), release_files=release_files)
        except BaseException:
            release_files()
            raise

    def close(self) -> None:
        """Close files and stop threads. Closing a closed memory does nothing."""
        with self._lock:  # waits for parts that are being opened; none is opened afterwards
            if self._closed:
                return
            self._closed = True
        for part in (*self._extensions.values(), self._entries, self._writer):
            if part is not None:
                part.close()
        self._engine.close()
        self._release_files()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- searching and reading -------------------------------------------------------------------------------

    def search(
        self,
        query: str | Query,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        source: Source | None = None,
        path_prefix: str | None = None,
        collection: str | None = None,
        session_key: str | None = None,
        masked: bool = False,
    ) -> Answer:
        """Return the few lines that answer the query, best first, each with its citation and its score.

        Notes, sessions and entries are searched together, unless ``source`` names one of them, or ``collection``
        the notes of one collection, which raises `NotFound` if there is no such collection. Keyword arguments
        replace fields of a `Query`. Failures do not raise: the answer's ``degraded`` says what is missing. An
        answer for an agent is ``masked``: secrets in it are replaced by their kind.

        Each hit has a ``confidence``. If none is likely to answer, ``relevant`` is false and the hits are the nearest
        lines. Without ``min_score``, hits that are far less likely to answer than the best are left out.
        """
        self._check_open()
        query = Query.of(
            query,
            max_results=max_results,
            min_score=min_score,
            source=source,
            path_prefix=path_prefix,
            collection=collection,
            session_key=session_key,
        )
        if query.collection is not None:
            return self._search_collection(query, query.collection, masked=masked)
        return self._search(query, masked=masked)

    def _search_collection(self, query: Query, name: str, *, masked: bool) -> Answer:
        """Search the notes of one collection. The index holds them with those of other folders."""
        folder = self.notes.collection(name)
        if query.source not in (None, "memory"):
            raise SourceError(sentence("collection.notes", source=query.source))
        prefix = folder.shown if query.path_prefix is None else query.path_prefix
        answer = self._search(
            replace(query, collection=None, source="memory", path_prefix=prefix), masked=masked
        )
        return replace(answer, hits=tuple(hit for hit in answer.hits if folder.contains(hit.path)))

    def _search(self, query: Query, *, masked: bool) -> Answer:
        answer = judge(self._find(query))
        answer = replace(
            answer, hits=refresh(query.text, answer.hits, self._lookup(query))[: self._limit(query)]
        )
        answer = conclude(answer, cut=query.min_score is None)
        return self._mask_secrets(answer) if masked else answer

    def _limit(self, query: Query) -> int:
        return self.settings.search.max_results if query.max_results is None else query.max_results

    def _find(self, query: Query) -> Answer:
        """Return the notes, sessions and entries that match a query, best first."""
        if query.source == "entries":
            cited = shows_citations(self.settings.memory.citations, query.session_key)
            answer = Answer((), "none", "", citations=cited, unknown=identifiers(query.text))
        else:
            answer = self._engine.search(query)
        if query.source in (None, "entries") and query.path_prefix is None:
            return self._with_entries(answer, query)
        return answer

    def _lookup(self, query: Query = EVERYTHING, *, masked: bool = False) -> Lookup:
        """Return how the statements that replaced a hit are found.

        A second search is made only with the builtin engine and the bundled embedder. Others take longer or cost money,
        and their cosines have another scale.
        """

        def find_similar(line: str) -> tuple[Hit, ...]:
            again = replace(query, text=line, max_results=SIMILAR, min_score=0.0, rerank=False)
            found = self._find(again)
            return self._mask_secrets(found).hits if masked else found.hits

        from memoriter.build import build_reranker

        engine = self._engine
        is_fitted = (
            engine.index is not None and engine.choice is not None and engine.choice.model == FITTED_MODEL
        )
        find = find_similar if is_fitted and query.rerank else None
        return Lookup(contradicts, find, build_reranker(self.settings))

    def _mask_secrets(self, answer: Answer) -> Answer:
        return mask_answer(answer, self._read_whole)

    def _read_whole(self, path: str) -> str:
        return self._engine.read_file(path, 1, None).text

    def _with_entries(self, answer: Answer, query: Query) -> Answer:
        if not self._entries_exist() or not self.allows(query.session_key):
            return answer
        from memoriter.entries.search import add_entries

        limit = self._limit(query)
        try:
            found = self.entries.search(
                query.text, limit=limit, threshold=query.min_score, rerank=query.rerank, beside=answer.hits
            )
            return add_entries(answer, found, limit)
        except MemoriterError as error:  # memory never breaks the agent: the failure is part of the answer
            return replace(answer, degraded=join(answer.degraded, sentence("search.no_entries", why=error)))

    def search_for_prompt(self, query: str | Query) -> Answer:
        """Search for a model to read: masked, citations below the snippets, within `memory.max_injected_chars`."""
        return for_prompt(self.search(query, masked=True), self.settings.memory.max_injected_chars)

    def read(self, path: str, start: int = 1, lines: int | None = None, *, masked: bool = False) -> Excerpt:
        """Return some lines of a note, a transcript or an entry, for an agent ``masked``: without secrets.

        ``path`` may also be a citation, such as ``memory/2026-02-08.md#L10-L25`` or ``entry:1f0c2a9e``.
        """
        self._check_open()
        if referenced_id(path) is not None:
            return self._read_entry(path)
        cited = parse_citation(path)
        if cited and start == 1:
            path, start, shown = cited
            lines = shown if lines is None else min(lines, shown)
        excerpt = self._engine.read_file(path, start, lines)
        if masked:
            excerpt = replace(excerpt, text=mask(excerpt.text, excerpt.path, self._read_whole))
        try:
            return replace(excerpt, trust=self.notes.get(excerpt.path).trust)
        except NotFound:  # an external engine may read files that are not listed here
            return replace(excerpt, trust="untrusted")

    def _read_entry(self, path: str) -> Excerpt:
        if not self.has_entries:
            raise NotFound(sentence("entry.not_found", id=path))
        entry = self.entries.get(path)
        last = entry.text.count("\n") + 1
        return Excerpt(f"entries/{entry.id}", entry.text, 1, last, last, entry.trust)

    def sync(
        self,
        *,
        force: bool = False,
        verify: bool = False,
        batch: bool = False,
        progress: ProgressCallback | None = None,
    ) -> SyncReport:
        """Bring the index up to date with the files.

        ``force`` builds a new index and replaces the old one. ``verify`` checks the index for damage first. Both
        include the index of entries. ``batch`` embeds through the provider's batch API, where there is one: cheaper,
        but slower.
        """
        self._check_open()
        report = self._engine.sync(force=force, verify=verify, batch=batch, progress=progress)
        if not (force or verify) or not self._entries_exist():
            return report
        try:
            healed = self.entries.repair_index(rebuild=force)
        except StoreError as error:
            return replace(report, degraded=join(report.degraded, sentence("search.no_entries", why=error)))
        return replace(report, healed=join(report.healed, healed))

    # ---- what was learned ------------------------------------------------------------------------------------

    @property
    def entries(self) -> Entries:
        """The entries that the agent has learned: add, get, list, search, update, undo, approve, export and more."""
        with self._opening():
            if self._entries is None:
                self._entries = build_entries(self.settings, self._engine)
            return self._entries

    @property
    def has_entries(self) -> bool:
        """Whether anything was ever learned that the owner may see. Unlike `entries`, this creates no database."""
        return self.allows(None) and self._entries_exist()

    def _entries_exist(self) -> bool:
        return self._entries is not None or entries_exist(self.settings)

    def remember(self, text: str, type: str | None = None, **fields: Unpack[DraftFields]) -> Remembered:  # noqa: A002
        """Remember one statement and return the outcome. The same as `Entries.add`."""
        return self.entries.add(text, type, **fields)

    def forget(
        self,
        entry_id: str | None = None,
        *,
        query: str | None = None,
        session: str | None = None,
        source: str | None = None,
        since: float | None = None,
        until: float | None = None,
        erase: bool = True,
        dry_run: bool = False,
        trust: Trust = "owner",
    ) -> Receipt:
        """Erase entries, and the lines of the daily logs that say exactly the same; return a receipt.

        Without ``erase`` the entries are only hidden, and `Entries.undo` restores them for a while.

        Name the entries in exactly one way, as for `Entries.forget`. With ``trust="agent"`` only lines in
        agents' logs are erased.
        """
        return self.entries.forget(
            entry_id,
            query=query,
            session=session,
            source=source,
            since=since,
            until=until,
            erase=erase,
            dry_run=dry_run,
            actor=trust,
            remove_copies=lambda texts: self._erase_lines(texts, trust),
        )

    def _erase_lines(self, texts: Sequence[str], trust: Trust) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Erase lines from the daily logs; return what was erased and what could not be, as text."""
        result = self.notes.erase_lines(texts, trust=trust)
        # Always: an erasure that was killed here, or a note that was deleted earlier, leaves the same words.
        self.sync()
        self._engine.purge()
        erased = sentence("forget.lines", files=", ".join(result.changed))
        others = sorted(folder.name.rpartition("-")[0] for folder in self.settings.other_indexes())
        left = (sentence("forget.workspaces", names=", ".join(others)),) if others else ()
        return (erased,) if result.changed else (), (*result.left, *left)

    def recall(
        self,
        query: str,
        *,
        session_key: str | None = None,
        interface: str = "recall",
        tokens: int | None = None,
        entries: int | None = None,
        notes: int | None = None,
        given_up: Callable[[], bool] = lambda: False,
        session: str | None = None,
    ) -> Recalled:
        """Return the block of memories about the query for the prompt of an agent; empty if there are none.

        The block is marked as data, not instructions. ``entries`` and ``notes`` are the maximum number of each, and
        ``tokens`` limits the whole. The ledger records ``interface``, and ``session`` if
        that differs from its key. If ``given_up`` returns true, the caller no longer waits: the block is empty and
        the ledger has no record of it.
        """
        from memoriter.recall.inject import Budget, Recalled

        if not self.allows(session_key):
            return Recalled("", "")
        limits = self.settings.retrieval
        budget = Budget(
            max_entries=limits.max_memories if entries is None else entries,
            max_notes=Budget().max_notes if notes is None else notes,
            threshold=limits.similarity_threshold,
            min_confidence=limits.min_confidence,
            characters=self.settings.memory.max_injected_chars,
            tokens=tokens,
        )
        return self._open_injector().recall(
            query,
            budget=budget,
            interface=interface,
            session=session or session_key,
            show_places=shows_citations(self.settings.memory.citations, session_key),
            given_up=given_up,
        )

    def brief(
        self,
        about: str,
        *,
        sessions: Sequence[str] = (),
        session_key: str | None = None,
        interface: str = "brief",
        session: str | None = None,
    ) -> Recalled:
        """Return the block of text for an agent that starts, before anything was asked.

        ``about`` names the current project, and ``sessions`` are earlier sessions in it.
        """
        from memoriter.recall.inject import Budget, Recalled

        if not self.allows(session_key):
            return Recalled("", "")
        budget = Budget(
            max_entries=self.settings.retrieval.max_memories,
            characters=self.settings.memory.max_injected_chars,
        )
        return self._open_injector().brief(
            about,
            sessions=sessions,
            budget=budget,
            interface=interface,
            session=session or session_key,
            show_places=shows_citations(self.settings.memory.citations, session_key),
        )

    def texts_of(self, recall: Recall, *, masked: bool = False) -> dict[str, str]:
        """Return the texts of what a recall considered, by reference, as entries and notes say it now."""
        self._check_open()
        texts = {id_: entry.text for id_, entry in self.entries.get_many(recall.refs("entry")).items()}
        for ref in recall.refs("note"):
            with suppress(MemoriterError):  # the note was removed or has become shorter
                texts[ref] = self.read(ref, masked=masked).text.strip()
        return texts

    def _open_injector(self) -> Injector:
        with self._opening():
            if self._injector is None:
                from memoriter.recall.inject import Injector

                def search_notes(query: str, limit: int) -> Answer:
                    return self._mask_secrets(self._engine.search(Query(query, max_results=limit)))

                self._injector = Injector(self.entries, search_notes, self._lookup(masked=True))
            return self._injector

    # ---- conversations ---------------------------------------------------------------------------------------

    def capture(
        self, turns: Sequence[Turn], *, session: str, record: bool = False, wait: bool = False
    ) -> list[Remembered]:
        """Capture statements from a conversation. Return the outcome for each statement.

        A language model decides where `extraction.auto_extract` is on, otherwise rules do. ``turns`` may be the whole
        conversation each time: turns that were processed before do not count again. ``record`` also adds the new
        turns to the transcript of the session, so that they can be searched. With ``wait``, the model is asked only
        once `extraction.trigger.message_interval` new turns have come together, or when the session ends. This is for
        callers that capture after every turn.
        """
        with self._open_seen_turns().of(session) as seen:
            if not self.settings.extraction.auto_extract:
                new = seen.new(turns)
                remembered = self.entries.capture(new, session=session)
                self._record(new if record else (), session)
                seen.add(new)
                return remembered
            extractor = self._open_extractor()
            waiting = extractor.waiting(session)
            new = seen.new(turns, also=waiting)
            remembered = extractor.observe(new, session=session, wait=wait)
            self._record(new if record else (), session)
            if not extractor.waiting(session):
                # Until the model has seen them, they are lost if this process ends, and must be sent again.
                seen.add([*waiting, *new])
            return remembered

    def _record(self, turns: Sequence[Turn], session: str) -> None:
        from memoriter.sessions.messages import record_of

        self.transcript_writer(session).add([record_of(turn) for turn in turns])

    def capture_messages(
        self,
        messages: Messages,
        *,
        session: str,
        trust: Trust = "owner",
        record: bool = False,
        wait: bool = False,
    ) -> list[Remembered]:
        """Do the same as `capture` with messages as chat APIs have them (``role`` and ``content``).

        ``trust="agent"``: the caller does not speak for the owner, so nothing is remembered as the owner's words.
        """
        from memoriter.sessions.messages import relayed_refs, turns_of_messages

        messages = list(messages)
        self.mark_relayed(relayed_refs(messages, self.trust_rules))
        turns = turns_of_messages(messages, self.trust_rules)
        limited = [replace(turn, trust=least_trusted(turn.trust, trust)) for turn in turns]
        return self.capture(limited, session=session, record=record, wait=wait)

    def mark_relayed(self, refs: Sequence[str]) -> None:
        """Lower the trust of what an agent wrote after it had read text from outside to `relayed`.

        ``refs`` are ids of entries and paths of notes, as `relayed_refs` in `sessions.messages` returns them. Those of
        the owner are not changed.
        """
        self._check_open()
        ids = [ref for ref in refs if referenced_id(ref)]
        if ids and self.has_entries:
            self.entries.mark_relayed(ids)
        for path in dict.fromkeys(ref for ref in refs if not referenced_id(ref)):
            self.notes.mark_relayed(path)

    @property
    def trust_rules(self) -> TrustRules:
        """The rules that decide whose words the turns of a conversation are."""
        self._check_open()
        return trust_rules(self.settings)

    def session_began(self, session: str) -> None:
        """Note that a session starts or continues, so that its first turns show whether it is a new one."""
        if self.has_entries:
            with self._open_seen_turns().of(session) as seen:
                seen.mark_ended()

    def session_ended(self, session: str) -> list[Remembered]:
        """Note that a session is over, and show the turns that still wait for the language model to it."""
        with self._open_seen_turns().of(session) as seen:
            remembered: list[Remembered] = []
            if self.settings.extraction.auto_extract:
                waiting = self._open_extractor().waiting(session)
                remembered = self._open_extractor().end(session=session)
                seen.add(waiting)
            seen.mark_ended()
            return remembered

    def count_waiting_turns(self, session: str) -> int:
        """Count the turns of a session that were captured but that the language model has not seen yet."""
        self._check_open()
        return len(self._open_extractor().waiting(session)) if self.settings.extraction.auto_extract else 0

    def _open_seen_turns(self) -> SeenTurns:
        with self._opening():
            if self._seen_turns is None:
                from memoriter.sessions.seen_turns import SeenTurns

                self._seen_turns = SeenTurns(self.settings.agent_folder, self.entries.digest)
            return self._seen_turns

    def _open_extractor(self) -> Extractor:
        with self._opening():
            if self._extractor is None:
                self._extractor = build_extractor(self.settings, self.entries, self._open_writer().chat)
            return self._extractor

    # ---- notes -----------------------------------------------------------------------------------------------

    @property
    def notes(self) -> Notes:
        """The notes and transcripts of the workspace."""
        with self._opening():
            if self._notes is None:
                self._notes = build_notes(self.settings, self._engine, self.save)
            return self._notes

    def save(
        self,
        content: str,
        title: str = "",
        tags: Sequence[str] = (),
        category: str | None = None,
        *,
        trust: Trust = "owner",
    ) -> Saved:
        """Write a note: into the author's log of the day, or with a category into `memory/<category>/<title>.md`."""
        return self._mark_if_saved(self._open_writer().save(content, title, tags, category, trust=trust))

    def summarise(self, messages: Messages, session: str) -> Saved | None:
        """Write the summary of a session that has ended; None if nothing was said."""
        return self._mark_if_saved(self._open_writer().summarise(messages, session))

    def summarise_transcript(self, transcript: Path | str) -> Saved | None:
        """Write the summary of a session from its transcript, named by its file or its citation."""
        return self._mark_if_saved(self._open_writer().summarise_transcript(transcript))

    def flush(
        self,
        messages: Messages,
        session: str,
        *,
        window: int | None,
        tokens: int | None = None,
    ) -> Saved | None:
        """Before a conversation is shortened, write down what it would lose, once for each overflow.

        ``window`` is the model's context window in tokens, from which this method judges whether it is time; with
        None the caller has decided that it is.
        """
        self._check_open()
        if not self.settings.writing.flush:
            return None
        return self._mark_if_saved(self._open_writer().flush(messages, session, window=window, tokens=tokens))

    def transcript_writer(self, session: str) -> TranscriptWriter:
        """Return the transcript of a session that this program keeps."""
        from memoriter.sessions.transcript_writer import TranscriptWriter

        self._check_open()
        return TranscriptWriter(self.settings.agent_folder / "sessions", session)

    def agent_folder(self, folder: str | None = None, *, shown: str = "") -> AgentFolder:
        """Return a folder of the workspace in which an agent reads every note and changes its own.

        Without a name it is the folder that notes are written to (`files.folder`).
        """
        from memoriter.notes.agent_folder import AgentFolder

        self._check_open()
        known = partial(was_there, self._engine)
        name = folder or self.settings.files.folder
        name = "" if name == "." else name
        return AgentFolder(self.settings.workspace, name, shown=shown, was_there=known)

    def exchange(self, folder: Path | str) -> FolderExchange:
        """Return what keeps a folder of Markdown files in step with the notes of the workspace."""
        self._check_open()
        return build_exchange(self.settings, self._engine, Path(folder).expanduser().absolute())

    def check_workspace(self) -> None:
        """Raise `WriteError` if the workspace is missing although its notes are indexed, as when it is unmounted."""
        self._open_writer().notebook.check_writable()

    def mark_changed(self) -> None:
        """Record that files were just written, so that the next search indexes them first."""
        self._check_open()
        self._engine.mark_changed()

    def _mark_if_saved(self, saved: SavedOrNone) -> SavedOrNone:
        if saved is not None and not saved.already:
            self._engine.mark_changed()
        return saved

    def _open_writer(self) -> NoteWriter:
        with self._opening():
            if self._writer is None:
                self._writer = build_writer(self.settings, self._engine)
            return self._writer

    # ---- state and maintenance -------------------------------------------------------------------------------

    def status(self, *, deep: bool = False) -> Status:
        """Describe what is indexed, by which embedder, and what is wrong. ``deep`` also tries the embedder."""
        self._check_open()
        return self._engine.status(deep=deep)

    def count_stale(self) -> int | None:
        """Count the files that differ from the index, or None if an external engine does not say."""
        self._check_open()
        return self._engine.count_stale()

    def probe(self) -> dict[str, str | None]:
        """Try the embedder ("embedding") and a vector search ("vectors"); None for each that works, else an error."""
        self._check_open()
        return {"embedding": self._engine.probe_embedding(), "vectors": self._engine.probe_vector()}

    def warm_up(self, *, load_model: bool = False) -> str | None:
        """Start an external engine, so that the first search is fast; return an error message if it does not work.

        ``load_model`` also loads the embedder of the builtin engine.
        """
        self._check_open()
        if self.settings.memory.backend != "builtin":
            return warm_up(self._engine)
        return self._engine.probe_embedding() if load_model else None

    def maintain(self) -> None:
        """Do the maintenance that is due: expire entries, and erase those that expired long ago.

        A running `MemoryService` calls this after every sync.
        """
        from memoriter.notes.flush import prune_flush_states

        self._check_open()
        oldest = time.time() - self.settings.cleanup.ledger_days * 86_400
        prune_flush_states(self.settings.agent_folder, oldest)
        if self.has_entries:
            self.entries.cleanup_if_due()

    @property
    def watching(self) -> str | None:
        """The method that detects file changes, as text; None if no `MemoryService` runs."""
        self._check_open()
        state = self._watch_state
        return state() if state else None

    def allows(self, session_key: str | None) -> bool:
        """Return whether this session may use the memory (`memory.scope`)."""
        self._check_open()
        if self._scope is None:
            self._scope = ScopeCheck(scope_of(self.settings))
        return self._scope.allows(session_key)

    def allows_name(self, session: str | None) -> bool:
        """Return whether a session may use the memory whose name may be a session key. Other names are allowed."""
        self._check_open()
        return not any(mark in (session or "") for mark in ":@") or self.allows(session)

    def prompt_section(
        self, hints: Mapping[str, str], *, language: Language = "en", session_key: str | None = None
    ) -> str:
        """Return the section of the system prompt about the memory, for an agent with these tools.

        ``hints`` are the names of the tools with one line each. Empty for a session that may not use the memory.
        """
        cited = shows_citations(self.settings.memory.citations, session_key)
        return memory_section(hints, language=language, citations=cited) if self.allows(session_key) else ""

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """Let one thread at a time open a part, and none once the memory is closed."""
        with self._lock:
            self._check_open()
            yield

    def _check_open(self) -> None:
        if self._closed:
            raise MemoryClosed("This memory is closed. Open it again with `memoriter.open`.")

    # ---- for integrations ------------------------------------------------------------------------------------

    @property
    def embedder(self) -> Embedder | None:
        """The embedder that this memory uses, or None if it searches by keywords only."""
        with self._opening():
            return shared_embedder(self.settings, self._engine)

    def check_server(self) -> list[tuple[str, Literal["ok", "note", "wrong"], str, str]]:
        """Check the Postgres server, if there is one: for each check its name, state, text and fix."""
        self._check_open()
        return check_server(self.settings)

    def extension(self, open_part: Callable[[Memory], ExtensionT]) -> ExtensionT:
        """Return what a function opens for this memory: opened at first use, once, and closed with the memory."""
        with self._opening():
            if open_part not in self._extensions:
                self._extensions[open_part] = open_part(self)
            part: ExtensionT = self._extensions[open_part]
            return part
