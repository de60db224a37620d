"""Memory: the public object of the package. It joins the engine, the entries and the notes of one agent.

Programs that run an event loop use `AsyncMemory`, which forwards to this class.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, Unpack

from memoriter.build import build_engine, build_exchange, check_server, share_files, trust_rules, was_there
from memoriter.engines import Engine
from memoriter.engines.fallback import warm_up
from memoriter.errors import StoreError
from memoriter.memory.conversations import Conversations, Messages
from memoriter.memory.parts import ClosableT, Parts
from memoriter.memory.prompts import Prompts
from memoriter.memory.search import MemorySearch
from memoriter.recall.render import Language
from memoriter.records import (
    Answer,
    Excerpt,
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
)
from memoriter.search.citations import for_prompt
from memoriter.sentences import join, sentence

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.embedding import Embedder
    from memoriter.entries import Entries
    from memoriter.entries.drafts import DraftFields
    from memoriter.notes.agent_folder import AgentFolder
    from memoriter.notes.collection import Notes
    from memoriter.notes.exchange import FolderExchange
    from memoriter.recall.inject import Recalled
    from memoriter.sessions.outside_text import TrustRules
    from memoriter.sessions.transcript_writer import TranscriptWriter


class Memory:
    """The memory of one agent over one workspace. Open it with `memoriter.open`, and close it when done.

    Every method may be called from several threads. After `close`, every method raises `MemoryClosed`.
    """

    def __init__(
        self, settings: Settings, engine: Engine, *, release_files: Callable[[], None] = lambda: None
    ) -> None:
        #: The settings that this memory was opened with.
        self.settings = settings
        self._parts = Parts(settings, engine, release_files)
        self._search = MemorySearch(self._parts)
        self._conversations = Conversations(self._parts)
        self._prompts = Prompts(self._parts, self._search)
        #: Set by a running `MemoryService`.
        self._watch_state: Callable[[], str] | None = None

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
        self._parts.close()

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
        query = Query.of(
            query,
            max_results=max_results,
            min_score=min_score,
            source=source,
            path_prefix=path_prefix,
            collection=collection,
            session_key=session_key,
        )
        return self._search.search(query, masked=masked)

    def search_for_prompt(self, query: str | Query) -> Answer:
        """Search for a model to read: masked, citations below the snippets, within `memory.max_injected_chars`."""
        return for_prompt(self.search(query, masked=True), self.settings.memory.max_injected_chars)

    def read(self, path: str, start: int = 1, lines: int | None = None, *, masked: bool = False) -> Excerpt:
        """Return some lines of a note, a transcript or an entry, for an agent ``masked``: without secrets.

        ``path`` may also be a citation, such as ``memory/2026-02-08.md#L10-L25`` or ``entry:1f0c2a9e``.
        """
        return self._search.read(path, start, lines, masked=masked)

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
        report = self._engine.sync(force=force, verify=verify, batch=batch, progress=progress)
        if not (force or verify) or not self._parts.entries_exist:
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
        return self._parts.entries

    @property
    def has_entries(self) -> bool:
        """Whether anything was ever learned that the owner may see. Unlike `entries`, this creates no database."""
        return self.allows(None) and self._parts.entries_exist

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
        is_cancelled: Callable[[], bool] = lambda: False,
        session: str | None = None,
    ) -> Recalled:
        """Return the block of memories about the query for the prompt of an agent; empty if there are none.

        The block is marked as data, not instructions. ``entries`` and ``notes`` are the maximum number of each, and
        ``tokens`` limits the whole. The ledger records ``interface``, and ``session`` if
        that differs from its key. If ``is_cancelled`` returns true, the caller no longer waits: the block is empty and
        the ledger has no record of it.
        """
        return self._prompts.recall(
            query,
            session_key=session_key,
            interface=interface,
            tokens=tokens,
            entries=entries,
            notes=notes,
            is_cancelled=is_cancelled,
            session=session,
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
        return self._prompts.brief(
            about, sessions=sessions, session_key=session_key, interface=interface, session=session
        )

    def texts_of(self, recall: Recall, *, masked: bool = False) -> dict[str, str]:
        """Return the texts of what a recall considered, by reference, as entries and notes say it now."""
        return self._prompts.texts_of(recall, masked=masked)

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
        return self._conversations.capture(turns, session=session, record=record, wait=wait)

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
        return self._conversations.capture_messages(
            messages, session=session, trust=trust, record=record, wait=wait
        )

    def mark_relayed(self, refs: Sequence[str]) -> None:
        """Lower the trust of what an agent wrote after it had read text from outside to `relayed`.

        ``refs`` are ids of entries and paths of notes, as `relayed_refs` in `sessions.messages` returns them. Those of
        the owner are not changed.
        """
        self._conversations.mark_relayed(refs)

    @property
    def trust_rules(self) -> TrustRules:
        """The rules that decide whose words the turns of a conversation are."""
        self._parts.check_open()
        return trust_rules(self.settings)

    def session_began(self, session: str) -> None:
        """Note that a session starts or continues, so that its first turns show whether it is a new one."""
        self._conversations.session_began(session)

    def session_ended(self, session: str) -> list[Remembered]:
        """Note that a session is over, and show the turns that still wait for the language model to it."""
        return self._conversations.session_ended(session)

    def count_waiting_turns(self, session: str) -> int:
        """Count the turns of a session that were captured but that the language model has not seen yet."""
        return self._conversations.count_waiting_turns(session)

    # ---- notes -----------------------------------------------------------------------------------------------

    @property
    def notes(self) -> Notes:
        """The notes and transcripts of the workspace."""
        return self._parts.notes

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
        return self._parts.save_note(content, title, tags, category, trust=trust)

    def summarise(self, messages: Messages, session: str) -> Saved | None:
        """Write the summary of a session that has ended; None if nothing was said."""
        return self._parts.mark_if_saved(self._parts.writer.summarise(messages, session))

    def summarise_transcript(self, transcript: Path | str) -> Saved | None:
        """Write the summary of a session from its transcript, named by its file or its citation."""
        return self._parts.mark_if_saved(self._parts.writer.summarise_transcript(transcript))

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
        self._parts.check_open()
        if not self.settings.writing.flush:
            return None
        return self._parts.mark_if_saved(
            self._parts.writer.flush(messages, session, window=window, tokens=tokens)
        )

    def transcript_writer(self, session: str) -> TranscriptWriter:
        """Return the transcript of a session that this program keeps."""
        return self._conversations.transcript_writer(session)

    def agent_folder(self, folder: str | None = None, *, shown: str = "") -> AgentFolder:
        """Return a folder of the workspace in which an agent reads every note and changes its own.

        Without a name it is the folder that notes are written to (`files.folder`).
        """
        from memoriter.notes.agent_folder import AgentFolder

        self._parts.check_open()
        known = partial(was_there, self._engine)
        name = folder or self.settings.files.folder
        name = "" if name == "." else name
        return AgentFolder(self.settings.workspace, name, shown=shown, was_there=known)

    def exchange(self, folder: Path | str) -> FolderExchange:
        """Return what keeps a folder of Markdown files in step with the notes of the workspace."""
        self._parts.check_open()
        return build_exchange(self.settings, self._engine, Path(folder).expanduser().absolute())

    def check_workspace(self) -> None:
        """Raise `WriteError` if the workspace is missing although its notes are indexed, as when it is unmounted."""
        self._parts.writer.notebook.check_writable()

    def mark_changed(self) -> None:
        """Record that files were just written, so that the next search indexes them first."""
        self._engine.mark_changed()

    # ---- state and maintenance -------------------------------------------------------------------------------

    def status(self, *, deep: bool = False) -> Status:
        """Describe what is indexed, by which embedder, and what is wrong. ``deep`` also tries the embedder."""
        return self._engine.status(deep=deep)

    def count_stale(self) -> int | None:
        """Count the files that differ from the index, or None if an external engine does not say."""
        return self._engine.count_stale()

    def probe(self) -> dict[str, str | None]:
        """Try the embedder ("embedding") and a vector search ("vectors"); None for each that works, else an error."""
        return {"embedding": self._engine.probe_embedding(), "vectors": self._engine.probe_vector()}

    def warm_up(self, *, load_model: bool = False) -> str | None:
        """Start an external engine, so that the first search is fast; return an error message if it does not work.

        ``load_model`` also loads the embedder of the builtin engine.
        """
        self._parts.check_open()
        if self.settings.memory.backend != "builtin":
            return warm_up(self._engine)
        return self._engine.probe_embedding() if load_model else None

    def maintain(self) -> None:
        """Do the maintenance that is due: expire entries, and erase those that expired long ago.

        A running `MemoryService` calls this after every sync.
        """
        from memoriter.notes.flush import prune_flush_states

        self._parts.check_open()
        oldest = time.time() - self.settings.cleanup.ledger_days * 86_400
        prune_flush_states(self.settings.agent_folder, oldest)
        if self.has_entries:
            self.entries.cleanup_if_due()

    @property
    def watching(self) -> str | None:
        """The method that detects file changes, as text; None if no `MemoryService` runs."""
        self._parts.check_open()
        state = self._watch_state
        return state() if state else None

    def allows(self, session_key: str | None) -> bool:
        """Return whether this session may use the memory (`memory.scope`)."""
        return self._parts.allows(session_key)

    def allows_name(self, session: str | None) -> bool:
        """Return whether a session may use the memory whose name may be a session key. Other names are allowed."""
        self._parts.check_open()
        return not any(mark in (session or "") for mark in ":@") or self.allows(session)

    def prompt_section(
        self, hints: Mapping[str, str], *, language: Language = "en", session_key: str | None = None
    ) -> str:
        """Return the section of the system prompt about the memory, for an agent with these tools.

        ``hints`` are the names of the tools with one line each. Empty for a session that may not use the memory.
        """
        return self._prompts.section(hints, language=language, session_key=session_key)

    @property
    def _engine(self) -> Engine:
        return self._parts.engine

    # ---- for integrations ------------------------------------------------------------------------------------

    @property
    def embedder(self) -> Embedder | None:
        """The embedder that this memory uses, or None if it searches by keywords only."""
        return self._parts.embedder

    def check_server(self) -> list[tuple[str, Literal["ok", "note", "wrong"], str, str]]:
        """Check the Postgres server, if there is one: for each check its name, state, text and fix."""
        self._parts.check_open()
        return check_server(self.settings)

    def extension(self, open_part: Callable[[Memory], ClosableT]) -> ClosableT:
        """Return what a function opens for this memory: opened at first use, once, and closed with the memory."""
        return self._parts.extension(open_part, partial(open_part, self))
