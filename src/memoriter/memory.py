"""Memory: what a program asks of the rooms, in one place. How they are made and joined is `assembly`'s duty.

Programs that run an event loop take `AsyncMemory`, which forwards here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from memoriter.build import (
    build_engine,
    build_entries,
    build_extractor,
    build_items,
    build_notes,
    build_writer,
    scope_of,
    was_there,
)
from memoriter.engines import Engine
from memoriter.engines.fallback import warm_up
from memoriter.errors import MemoriterError
from memoriter.recall.render import Language, memory_section
from memoriter.records import (
    Answer,
    Excerpt,
    ImportReport,
    ProgressCallback,
    Query,
    Receipt,
    Remembered,
    Saved,
    Source,
    Status,
    SyncReport,
    Trust,
    Turn,
    least_trusted,
)
from memoriter.search.citations import for_prompt, parse_citation, shows_citations
from memoriter.sessions.scope import ScopeCheck

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.embedding import Embedder
    from memoriter.entries import Entries
    from memoriter.entries.extract import Extractor
    from memoriter.integrations.items import Items
    from memoriter.notes.agent_folder import AgentFolder
    from memoriter.notes.collection import Notes
    from memoriter.notes.writer import NoteWriter
    from memoriter.recall.inject import Injector, Recalled
    from memoriter.sessions.seen_turns import SeenTurns
    from memoriter.sessions.transcript_writer import TranscriptWriter

SavedOrNone = TypeVar("SavedOrNone", Saved, Saved | None)


class Memory:
    """The memory of one agent over one workspace."""

    def __init__(self, settings: Settings, engine: Engine) -> None:
        self.settings = settings
        self.engine = engine
        self._entries: Entries | None = None
        self._items: Items | None = None
        self._injector: Injector | None = None
        self._extractor: Extractor | None = None
        self._writer: NoteWriter | None = None
        self._hearing: SeenTurns | None = None
        self._guard: ScopeCheck | None = None
        self._shelf: Notes | None = None
        self.watching: Callable[[], str] | None = (
            None  #: how changes are noticed, in words, while a service does
        )
        self._closed = False
        self._lock = threading.RLock()  #: over what is opened at first use: threads may be the first together

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
    ) -> Memory:
        """Open the memory of a workspace.

        ``overrides`` sets single settings by their dotted key, such as ``{"search.max_results": 10}``; ``embedder``
        is used instead of the configured one.
        """
        from memoriter.config import load

        given = {"workspace": workspace, "home": home, "agent": agent}
        arguments = {key: value for key, value in given.items() if value is not None} | dict(overrides or {})
        settings = load(config=Path(config) if config else None, arguments=arguments)
        return cls.of(settings, embedder)

    @classmethod
    def of(cls, settings: Settings, embedder: Embedder | None = None) -> Memory:
        """Open the memory that settings describe which are loaded already."""
        return cls(settings, build_engine(settings, embedder))

    def sync(
        self,
        *,
        force: bool = False,
        verify: bool = False,
        batch: bool = False,
        progress: ProgressCallback | None = None,
    ) -> SyncReport:
        """Make the index say what the files say; ``force`` builds it anew beside the old one.

        ``batch`` embeds through the provider's batch API, where it has one: cheaper, and slower.
        """
        return self.engine.sync(force=force, verify=verify, batch=batch, progress=progress)

    def search(
        self,
        query: str | Query,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        source: Source | None = None,
        path_prefix: str | None = None,
        session_key: str | None = None,
    ) -> Answer:
        """Return the few lines that answer the query, best first, each with its citation and its score.

        Notes, sessions and entries are searched together, unless ``source`` names one of them. Keyword arguments
        replace fields of a `Query`.
        """
        query = Query.of(
            query,
            max_results=max_results,
            min_score=min_score,
            source=source,
            path_prefix=path_prefix,
            session_key=session_key,
        )
        if query.source == "entries":
            cited = shows_citations(self.settings.memory.citations, query.session_key)
            answer = Answer((), "none", "", citations=cited)
        else:
            answer = self.engine.search(query)
        if query.source in (None, "entries") and query.path_prefix is None:
            answer = self._with_entries(answer, query)
        return answer

    def _has_entries(self, session_key: str | None) -> bool:
        """Whether anything was learned that this session may see; asked without opening what is not there."""
        known = self._entries is not None or (self.settings.agent_folder / "memory.db").exists()
        return known and self.admits(session_key)

    def _with_entries(self, answer: Answer, query: Query) -> Answer:
        if not self._has_entries(query.session_key):
            return answer
        from memoriter.entries.search import joined

        limit = self.settings.search.max_results if query.max_results is None else query.max_results
        try:
            found = self.entries.search(query.text, limit=limit, threshold=query.min_score)
            return joined(answer, found, limit)
        except MemoriterError as error:  # memory never breaks the agent: the failure is part of the answer
            return replace(answer, degraded=f"{answer.degraded or ''} Without entries: {error}".strip())

    def search_for_prompt(self, query: str | Query) -> Answer:
        """Search for a model to read: citations below the snippets, all within `memory.max_injected_chars`."""
        return for_prompt(self.search(query), self.settings.memory.max_injected_chars)

    def admits(self, session_key: str | None) -> bool:
        """Whether this session may use the memory at all (`memory.scope`)."""
        if self._guard is None:
            self._guard = ScopeCheck(scope_of(self.settings))
        return self._guard.admits(session_key)

    def prompt_section(
        self, hints: Mapping[str, str], *, language: Language = "en", session_key: str | None = None
    ) -> str:
        """What the system prompt says of the memory to an agent with these tools; nothing to one who may not use it."""
        cited = shows_citations(self.settings.memory.citations, session_key)
        return memory_section(hints, language=language, citations=cited) if self.admits(session_key) else ""

    def changed(self) -> None:
        """Say that a note was just written: the next search takes it in first."""
        self.engine.mark_changed()

    def start(self) -> str | None:
        """Warm up an outside engine; one sentence when it does not work, which `status` repeats."""
        return None if self.settings.memory.backend == "builtin" else warm_up(self.engine)

    def read(self, path: str, start: int = 1, lines: int | None = None) -> Excerpt:
        """Some lines of a file; ``path`` may be a whole citation, such as ``memory/2026-02-08.md#L10-L25``."""
        if path.startswith("entries/") and self._has_entries(None):
            return self._entry(path)
        cited = parse_citation(path)
        if cited and lines is None and start == 1:
            path, start, lines = cited
        return self.engine.read_file(path, start, lines)

    def _entry(self, path: str) -> Excerpt:
        """What was learned, under the path that its hits have."""
        text = self.entries.get(path.removeprefix("entries/")).text
        last = text.count("\n") + 1
        return Excerpt(path, text, 1, last, last)

    def trust_of(self, path: str) -> Trust:
        """Whose words stand under a path that `read` has given; `untrusted` ones come from outside."""
        if path.startswith("entries/") and self._has_entries(None):
            return self.entries.get(path.removeprefix("entries/")).trust
        return self.notes.get(path).trust

    def status(self, *, deep: bool = False) -> Status:
        """What is indexed, by which embedder, and what is wrong."""
        return self.engine.status(deep=deep)

    def behind(self) -> int | None:
        """How many files differ from the index by their stat; None where an outside engine keeps that to itself."""
        return self.engine.count_stale()

    def save(
        self,
        content: str,
        title: str = "",
        tags: Sequence[str] = (),
        category: str | None = None,
        *,
        trust: Trust = "owner",
    ) -> Saved:
        """Write something down for good: into the author's log of the day, or `memory/<category>/<title>.md`."""
        return self._written(self.writer.save(content, title, tags, category, trust=trust))

    def summarise(self, messages: Iterable[Mapping[str, object]], session: str) -> Saved | None:
        """Write the summary of a session that has ended; None when nothing was said."""
        return self._written(self.writer.summarise(messages, session))

    def summarise_transcript(self, transcript: Path | str) -> Saved | None:
        """The same from a transcript: a file, or as it is cited."""
        return self._written(self.writer.summarise_transcript(transcript))

    def flush(
        self,
        messages: Iterable[Mapping[str, object]],
        session: str,
        *,
        window: int | None,
        tokens: int | None = None,
    ) -> Saved | None:
        """Before a conversation is shortened: write down what it would lose, once for each overflow.

        With ``window`` it is judged whether it is time; None: the caller says that it is.
        """
        if not self.settings.writing.flush:
            return None
        return self._written(self.writer.flush(messages, session, window=window, tokens=tokens))

    def _written(self, saved: SavedOrNone) -> SavedOrNone:
        if saved is not None and not saved.already:
            self.changed()
        return saved

    @property
    def writer(self) -> NoteWriter:
        """What is written down; opened at first use."""
        with self._open():
            if self._writer is None:
                self._writer = build_writer(self.settings, self.engine)
            return self._writer

    @property
    def notes(self) -> Notes:
        """The notes and transcripts themselves, to look through."""
        with self._open():
            if self._shelf is None:
                self._shelf = build_notes(self.settings, self.engine, self.save)
            return self._shelf

    @property
    def entries(self) -> Entries:
        """What was learned in conversation; opened at first use."""
        with self._open():
            if self._entries is None:
                self._entries = build_entries(self.settings, self.engine)
            return self._entries

    @property
    def items(self) -> Items:
        """What programs keep by name, apart from what agents remember; opened at first use."""
        with self._open():
            if self._items is None:
                self._items = build_items(self.settings, self.engine)
            return self._items

    def capture(self, turns: Sequence[Turn], *, session: str) -> list[Remembered]:
        """Remember what turns are worth: by a language model where `extraction.auto_extract` is on, else by rules.

        ``turns`` may be the whole conversation each time: what was heard before does not count again.
        """
        with self.hearing.of(session) as heard:
            if not self.settings.extraction.auto_extract:
                new = heard.new(turns)
                done = self.entries.capture(new, session=session)
                heard.add(new)
                return done
            waiting = self.extractor.waiting(session)
            new = heard.new(turns, also=waiting)
            done = self.extractor.observe(new, session=session)
            if not self.extractor.waiting(session):
                # The model has seen them. Until then they may be lost with this process, and are sent again.
                heard.add([*waiting, *new])
            return done

    def journal(self, session: str) -> TranscriptWriter:
        """The transcript of a session that a program keeps through us; say `changed` when it was written."""
        from memoriter.sessions.transcript_writer import TranscriptWriter

        return TranscriptWriter(self.settings.agent_folder / "sessions", session)

    def shelf(self, folder: str = "memory", *, shown: str = "") -> AgentFolder:
        """A folder of the workspace that an agent works in by itself; say `changed` when it was written."""
        from memoriter.notes.agent_folder import AgentFolder

        known = partial(was_there, self.engine)
        return AgentFolder(self.settings.workspace, folder, shown=shown, was_there=known)

    @property
    def hearing(self) -> SeenTurns:
        """What of each session was heard already."""
        with self._open():
            if self._hearing is None:
                from memoriter.sessions.seen_turns import SeenTurns

                self._hearing = SeenTurns(self.settings.agent_folder, self.entries.digest)
            return self._hearing

    def session_ended(self, session: str) -> list[Remembered]:
        """A conversation is over: let the language model see the turns that still wait for it."""
        with self.hearing.of(session) as heard:
            done: list[Remembered] = []
            if self.settings.extraction.auto_extract:
                waiting = self.extractor.waiting(session)
                done = self.extractor.end(session=session)
                heard.add(waiting)
            heard.over()
            return done

    def session_began(self, session: str) -> None:
        """A conversation begins, or goes on: what it begins with will tell whether it is another of the same name."""
        if self._has_entries(None):
            with self.hearing.of(session) as heard:
                heard.over()

    def capture_messages(
        self, messages: Iterable[Mapping[str, object]], *, session: str, trust: Trust = "owner"
    ) -> list[Remembered]:
        """As `capture`, from a conversation's messages as hosts have them.

        ``trust="agent"``: who brings them does not speak for the owner, and neither does what is kept of them.
        """
        from memoriter.sessions.messages import turns_of_messages

        turns = turns_of_messages(messages)
        limited = [replace(turn, trust=least_trusted(turn.trust, trust)) for turn in turns]
        return self.capture(limited, session=session)

    @property
    def extractor(self) -> Extractor:
        """What a language model learns from conversations; opened at first use."""
        with self._open():
            if self._extractor is None:
                self._extractor = build_extractor(self.settings, self.entries, self.writer.chat)
            return self._extractor

    def forget(
        self,
        entry_id: str | None = None,
        *,
        query: str | None = None,
        session: str | None = None,
        source: str | None = None,
        since: float | None = None,
        until: float | None = None,
        dry_run: bool = False,
        trust: Trust = "owner",
    ) -> Receipt:
        """Erase entries, and the lines of the daily logs that say exactly the same; return a receipt.

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
            dry_run=dry_run,
            actor=trust,
            remove_copies=lambda texts: self._strike(texts, trust),
        )

    def _strike(self, texts: Sequence[str], trust: Trust) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What went from the notes, and what stays there, in words."""
        from memoriter.notes.collection import erase_lines

        done = erase_lines(self.settings.workspace, texts, trust=trust)
        if done.changed:
            self.sync()
            self.engine.purge()
        went = f"lines that said just this, in {', '.join(done.changed)}"
        return (went,) if done.changed else (), done.left

    def import_openclaw(self, place: Path | None = None, *, dry_run: bool = False) -> ImportReport:
        """Take in what OpenClaw has kept: notes, sessions and entries; nothing that is here is overwritten."""
        from memoriter.integrations.openclaw.importing import OpenClaw

        found = OpenClaw.find(place, self.settings.agent)
        folder = self.settings.agent_folder / "sessions"
        if not dry_run:
            self.writer.notebook.ready()
        report = found.take_in(self.settings.workspace, folder, self.entries, dry_run=dry_run)
        if not dry_run:
            self.changed()
        return report

    def import_claude_code(self, place: Path | None = None, *, dry_run: bool = False) -> ImportReport:
        """Take in Claude Code's transcripts, before it deletes them; nothing that is here is overwritten."""
        from memoriter.integrations.claude_code import importing

        folder = self.settings.agent_folder / "sessions"
        report = importing.take_in(place, folder, agent=self.settings.agent, dry_run=dry_run)
        if not dry_run:
            self.changed()
        return report

    def tend(self) -> None:
        """Do what is due of itself: old marks of flushes go; expired entries are marked and, in their time, erased."""
        from memoriter.notes.flush import prune_flush_states

        prune_flush_states(
            self.settings.agent_folder, time.time() - self.settings.cleanup.ledger_days * 86_400
        )
        if self._has_entries(None):
            self.entries.cleanup_if_due()

    def entry_stats(self) -> dict[str, object] | None:
        """Counts and averages of what was learned; None when nothing was yet."""
        return self.entries.stats() if self._has_entries(None) else None

    def item_namespaces(self) -> int | None:
        """In how many namespaces programs keep items; None when nothing was ever kept."""
        known = self._items is not None or (self.settings.agent_folder / "items.db").exists()
        return len(self.items.namespaces()) if known else None

    def waiting_entries(self) -> dict[str, int]:
        """Entries that wait for something: for a vector, and for the owner's word."""
        if not self._has_entries(None):
            return {"vectors": 0, "staged": 0}
        return self.entries.count_pending()

    @property
    def injector(self) -> Injector:
        """What is put before the agent by itself; opened at first use."""
        with self._open():
            if self._injector is None:
                from memoriter.recall.inject import Injector

                self._injector = Injector(self.entries, self._notes)
            return self._injector

    def _notes(self, query: str, limit: int) -> Answer:
        return self.engine.search(Query(query, max_results=limit))

    def recall(
        self,
        query: str,
        *,
        session_key: str | None = None,
        door: str = "recall",
        tokens: int | None = None,
        entries: int | None = None,
        notes: int | None = None,
        given_up: Callable[[], bool] = lambda: False,
        session: str | None = None,
    ) -> Recalled:
        """The fenced block that tells the agent what is remembered about this; empty when nothing is.

        ``session`` is the session's name in the ledger, if it is another than its key.
        ``entries`` and ``notes`` are the most of each kind, if not as many as the settings say; 0: none. When nobody
        waits for the block any more (``given_up``), it is empty, and the ledger knows nothing of it.
        """
        from memoriter.recall.inject import Budget, Recalled

        if not self.admits(session_key):
            return Recalled("", "")
        wanted = self.settings.retrieval
        budget = Budget(
            max_entries=wanted.max_memories if entries is None else entries,
            max_notes=Budget().max_notes if notes is None else notes,
            threshold=wanted.similarity_threshold,
            note_threshold=wanted.note_threshold,
            characters=self.settings.memory.max_injected_chars,
            tokens=tokens,
        )
        places = shows_citations(self.settings.memory.citations, session_key)
        return self.injector.recall(
            query,
            budget=budget,
            door=door,
            session=session or session_key,
            show_places=places,
            given_up=given_up,
        )

    def brief(
        self,
        about: str,
        *,
        sessions: Sequence[str] = (),
        session_key: str | None = None,
        door: str = "brief",
        session: str | None = None,
    ) -> Recalled:
        """The fenced block for an agent that begins: what matters before anything was asked, as `recall` would tell it.

        ``about`` names the project at hand, and ``sessions`` are those that were in it.
        """
        from memoriter.recall.inject import Budget, Recalled

        if not self.admits(session_key):
            return Recalled("", "")
        budget = Budget(
            max_entries=self.settings.retrieval.max_memories,
            characters=self.settings.memory.max_injected_chars,
        )
        places = shows_citations(self.settings.memory.citations, session_key)
        return self.injector.brief(
            about,
            sessions=sessions,
            budget=budget,
            door=door,
            session=session or session_key,
            show_places=places,
        )

    def close(self) -> None:
        """Give back files and threads; closing again does nothing, for others may share the engine."""
        with self._lock:  # what is being opened is waited for, and nothing is opened afterwards
            if self._closed:
                return
            self._closed = True
        for room in (self._entries, self._items, self._writer):
            if room is not None:
                room.close()
        self.engine.close()

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Over what is opened at first use: one thread at a time, and none once the memory is closed."""
        with self._lock:
            if self._closed:
                raise MemoriterError("This memory is closed; open it again with `Memory.open`.")
            yield

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
