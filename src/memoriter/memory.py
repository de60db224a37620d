"""Memory: the public object of the package. It joins the engine, the entries and the notes of one agent.

Programs that run an event loop use `AsyncMemory`, which forwards to this class.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack

from memoriter.build import (
    build_engine,
    build_store,
    gateway_files,
    load_settings,
    share_files,
    transcripts_of,
)
from memoriter.engines import Engine
from memoriter.entries.forgetting import cleanup_if_due
from memoriter.errors import BadArgument, StoreError
from memoriter.extension import added_method
from memoriter.memory_parts import MemoryParts
from memoriter.notes.collection import Notes, forward
from memoriter.recall.render import Language, memory_section
from memoriter.records import (
    Answer,
    Entry,
    Excerpt,
    ProgressCallback,
    Query,
    Receipt,
    Remembered,
    Saved,
    Selection,
    Source,
    Status,
    SyncReport,
    Trust,
    Turn,
    least_trusted,
)
from memoriter.sentences import join, sentence

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.embedding import Embedder
    from memoriter.entries import Entries
    from memoriter.entries.drafts import DraftFields
    from memoriter.recall.inject import Check, Recalled
    from memoriter.recall.profile import Profile
    from memoriter.sessions.transcript_writer import TranscriptWriter

__all__ = ["Memory", "gateway_files", "parts_of"]

#: Messages as chat APIs have them, with ``role`` and ``content``.
Messages = Iterable[Mapping[str, object]]


class Memory:
    """The memory of one agent over one workspace. Open it with `memoriter.open`, and close it when done.

    Every method may be called from several threads. After `close`, every method raises `MemoryClosed`.
    """

    def __init__(
        self, settings: Settings, engine: Engine, *, release_files: Callable[[], None] = lambda: None
    ) -> None:
        #: The settings that this memory was opened with.
        self.settings = settings
        self._parts = MemoryParts(settings, engine, release_files)

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
        replaces the configured one. If ``settings`` are given, all other arguments except ``embedder`` are
        ignored.
        """
        if settings is None:
            settings = load_settings(workspace, home=home, agent=agent, config=config, overrides=overrides)
        release_files = share_files(settings, build_store(settings))
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

    def __exit__(self, *error: object) -> None:
        self.close()

    if not TYPE_CHECKING:
        __getattr__ = added_method

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
        session: str | None = None,
        as_of: date | str | None = None,
        masked: bool = False,
    ) -> Answer:
        """Return the few lines that answer the query, best first, each with its citation and its score.

        Notes, sessions and entries are searched together, unless ``source`` names one of them, or ``collection``
        the notes of one collection, which raises `NotFound` if there is no such collection. Keyword arguments
        replace fields of a `Query`. Failures do not raise: the answer's ``degraded`` says what is missing. An
        answer for an agent is ``masked``: secrets in it are replaced by their kind. ``as_of`` is a day, such as
        "2026-03-01": the answer is what was valid then, from entries and from notes and sessions up to that day.

        Each hit has a ``confidence``. If none is likely to answer, ``relevant`` is false and the hits are the nearest
        lines. Without ``min_score``, hits that are far less likely to answer than the best are left out.
        """
        if not isinstance(query, str | Query):
            raise BadArgument("`query` must be a text or a `Query`.", "query")
        query = Query.of(
            query,
            max_results=max_results,
            min_score=min_score,
            source=source,
            path_prefix=path_prefix,
            collection=collection,
            session=session,
            as_of=as_of.isoformat()[:10] if isinstance(as_of, date) else as_of,
        )
        return self._parts.search.search(query, masked=masked)

    def read(self, path: str, start: int = 1, lines: int | None = None, *, masked: bool = False) -> Excerpt:
        """Return some lines of a note, a transcript or an entry, for an agent ``masked``: without secrets.

        ``path`` may also be a citation, such as ``memory/2026-02-08.md#L10-L25`` or ``entry:1f0c2a9e``.
        """
        return self._parts.search.read(path, start, lines, masked=masked)

    def sync(
        self,
        *,
        force: bool = False,
        verify: bool = False,
        batch: bool = False,
        vectors_s: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> SyncReport:
        """Bring the index up to date with the files.

        ``force`` builds a new index and replaces the old one. ``verify`` checks the index for damage first. Both
        include the index of entries. ``batch`` embeds through the provider's batch API, where there is one: cheaper,
        but slower. ``vectors_s`` is how many seconds vectors may take (default: until none is missing).
        """
        report = self._parts.engine.sync(
            force=force, verify=verify, batch=batch, vectors_s=vectors_s, progress=progress
        )
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
        return self._parts.has_entries

    def remember(self, text: str, type: str | None = None, **fields: Unpack[DraftFields]) -> Remembered:  # noqa: A002
        """Remember one statement and return the outcome. The same as `Entries.add`."""
        return self.entries.add(text, type, **fields)

    def forget(self, what: str | Selection, *, dry_run: bool = False, trust: Trust = "owner") -> Receipt:
        """Hide entries at once and return a receipt. `Entries.undo` restores them until a cleanup erases them.

        ``what`` is an id or a `Selection`, as for `Entries.forget`. No note is changed: the receipt names the notes and
        sessions that still say it.
        """
        return self.entries.forget(what, dry_run=dry_run, actor=trust, copies=self._parts.copies(trust))

    def erase(self, what: str | Selection, *, dry_run: bool = False, trust: Trust = "owner") -> Receipt:
        """Erase entries and the lines of daily logs that say exactly the same; return a receipt.

        This cannot be undone. With ``dry_run`` the receipt lists what would be erased, with the lines. With
        ``trust="agent"`` only lines in agents' logs are erased, and no entry of the owner.
        """
        return self.entries.erase(what, dry_run=dry_run, actor=trust, copies=self._parts.copies(trust))

    def recall(
        self,
        query: str,
        *,
        session: str | None = None,
        interface: str = "recall",
        tokens: int | None = None,
        entries: int | None = None,
        notes: int | None = None,
    ) -> Recalled:
        """Return the block of memories about the query for the prompt of an agent; empty if there are none.

        The block is marked as data, not instructions. ``entries`` and ``notes`` are the maximum number of each, and
        ``tokens`` limits the whole. ``session`` is the session that asks. The ledger records it and ``interface``.
        """
        return self._parts.search.recall(
            query,
            key=session,
            session=session,
            interface=interface,
            tokens=tokens,
            entries=entries,
            notes=notes,
        )

    def brief(
        self,
        about: str,
        *,
        sessions: Sequence[str] = (),
        also: Sequence[Entry] = (),
        session: str | None = None,
        interface: str = "brief",
        check: Check | None = None,
    ) -> Recalled:
        """Return the block of text for an agent that starts, before anything was asked.

        ``about`` names the project, ``sessions`` are earlier ones in it, ``also`` are staged entries to use in it.
        ``check`` labels lines that are no longer true.
        """
        from memoriter.recall.inject import Budget, Recalled

        if not self.allows(session):
            return Recalled("", "")
        limit, characters = self.settings.retrieval.max_memories, self.settings.memory.max_injected_chars
        return self._parts.injector.brief(
            about,
            sessions=sessions,
            also=also,
            budget=Budget(max_entries=limit, characters=characters),
            interface=interface,
            session=session,
            show_places=self._parts.shows_citations(session),
            check=check,
        )

    def profile(self, *, project: bool = False, tokens: int = 400, session: str | None = None) -> Profile:
        """Return who the owner is: exact statements about the owner, preferences, people, projects and plans.

        Only the newest statements in force are in it, as many as fit into ``tokens``. ``project`` returns what is
        known about the project of this workspace instead.
        """
        from memoriter.recall.profile import Profile, read_profile

        if not self.has_entries or not self.allows(session):
            return Profile()
        workspace = self.settings.workspace_name if project else None
        return read_profile(self.entries, workspace, tokens=tokens, project=project)

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

        An outcome without an entry says how many turns do not count as the owner's or are left out, and why.
        """
        from memoriter.sessions.messages import MAX_MESSAGE_CHARS, Conversation

        read = [turn for turn in turns if len(turn.text) <= MAX_MESSAGE_CHARS]
        found = Conversation(read, left_out=len(turns) - len(read))
        return self._parts.capture(found, session=session, record=record, wait=wait)

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
        from memoriter.sessions.messages import read_messages

        found = read_messages(messages, self._parts.trust_rules)
        self._parts.mark_relayed(found.relayed)
        found.turns = [replace(turn, trust=least_trusted(turn.trust, trust)) for turn in found.turns]
        return self._parts.capture(found, session=session, record=record, wait=wait)

    def session_ended(self, session: str) -> list[Remembered]:
        """Note that a session is over. The language model reads the turns that it has not read yet."""
        return self._parts.end_session(session)

    def transcript_writer(self, session: str) -> TranscriptWriter:
        """Return the transcript of a session that this program keeps."""
        return self._parts.transcript_writer(session)

    @property
    def notes(self) -> Notes:
        """The notes and transcripts of the workspace."""
        return self._parts.notes

    save = forward(lambda memory: memory.notes, Notes.save)

    def summarise(self, messages: Messages, session: str) -> Saved | None:
        """Write the summary of a session that has ended; None if nothing was said."""
        return self._parts.summaries.write(self._turns(messages), session)

    def summarise_transcript(self, transcript: Path | str) -> Saved | None:
        """Write the summary of a session from its transcript, named by its file or its citation."""
        summaries, sessions = self._parts.summaries, transcripts_of(self.settings)
        found = sessions.locate(transcript)
        return summaries.write(list(sessions.turns(found)), sessions.session(found))

    def flush(
        self, messages: Messages, session: str, *, window: int | None, tokens: int | None = None
    ) -> Saved | None:
        """Before a conversation is shortened, write down what it would lose, once for each overflow.

        ``window`` is the model's context window in tokens, from which this method judges whether it is time; with
        None the caller has decided that it is.
        """
        self._parts.check_open()
        if not self.settings.writing.flush:
            return None
        return self._parts.flushes.write_if_due(self._turns(messages), session, window=window, tokens=tokens)

    def _turns(self, messages: Messages) -> list[Turn]:
        from memoriter.sessions.messages import turns_of_messages

        return turns_of_messages(messages, self._parts.trust_rules)

    def mark_changed(self) -> None:
        """Record that files were just written, so that the next search indexes them first."""
        self._parts.engine.mark_changed()

    def status(self, *, deep: bool = False) -> Status:
        """Describe what is indexed, by which embedder, and what is wrong. ``deep`` also tries the embedder."""
        return self._parts.engine.status(deep=deep)

    def count_stale(self) -> int | None:
        """Count the files that differ from the index, or None if an external engine does not say."""
        return self._parts.engine.count_stale()

    def maintain(self) -> None:
        """Do the maintenance that is due: expire entries, and erase those that expired long ago."""
        self._parts.flushes.prune(time.time() - self.settings.cleanup.ledger_days * 86_400)
        if self.has_entries:
            cleanup_if_due(self._parts.entry_context)

    def allows(self, session: str | None) -> bool:
        """Return whether this session may use the memory (`memory.scope`)."""
        return self._parts.allows(session)

    def prompt_section(
        self, hints: Mapping[str, str], *, language: Language = "en", session: str | None = None
    ) -> str:
        """Return the section of the system prompt about the memory, for an agent with these tools.

        ``hints`` are the names of the tools with one line each. Empty for a session that may not use the memory.
        """
        if not self.allows(session):
            return ""
        return memory_section(hints, language=language, citations=self._parts.shows_citations(session))


def parts_of(memory: Memory) -> MemoryParts:
    """Return the parts of a memory, for the interfaces of this package."""
    return memory._parts
