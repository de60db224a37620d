"""The parts of a memory, which are opened at first use and closed together.

The interfaces of this package get them from `memoriter.memory.parts_of`, and ask them what programs do not need.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from memoriter import logs
from memoriter.build import (
    build_chat,
    build_entries,
    build_extractor,
    build_judge,
    build_notebook,
    build_notes,
    build_store,
    scope_of,
    shared_embedder,
    trust_rules,
    was_there,
)
from memoriter.engines import Engine
from memoriter.engines.note_copies import NoteCopies
from memoriter.entries.collection import context_of
from memoriter.entries.editing import mark_relayed
from memoriter.errors import MemoryClosed
from memoriter.memory_search import MemorySearch
from memoriter.records import Remembered, Trust, Turn, referenced_id
from memoriter.search import shape
from memoriter.sentences import sentence
from memoriter.sessions.scope import ScopeCheck

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
    from memoriter.recall.inject import Injector
    from memoriter.sessions.messages import Conversation
    from memoriter.sessions.outside_text import TrustRules
    from memoriter.sessions.seen_turns import SeenTurns
    from memoriter.sessions.transcript_writer import TranscriptWriter

log = logs.get("memory")

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

    # ---- conversations -----------------------------------------------------------------------------------------

    def capture(self, said: Conversation, *, session: str, record: bool, wait: bool) -> list[Remembered]:
        """Capture statements from the turns that were not captured before, as `Memory.capture` describes it."""
        from memoriter.sessions.messages import record_of

        extracts = self.settings.extraction.auto_extract
        with self.seen_turns.of(session) as seen:
            waiting = self.extractor.waiting(session) if extracts else []
            new = seen.new(said.turns, also=waiting)
            if extracts:
                remembered = self.extractor.observe(new, session=session, wait=wait)
            else:
                remembered = self.entries.capture(new, session=session)
            if record:
                self.transcript_writer(session).add([record_of(turn) for turn in new])
            if not extracts or not self.extractor.waiting(session):
                # Until the model has seen them, they are lost if this process ends, and must be sent again.
                seen.add([*waiting, *new])
        return [*remembered, *_left_out(said, new)]

    def end_session(self, session: str) -> list[Remembered]:
        """Let the language model read the turns of a session that it has not read yet."""
        with self.seen_turns.of(session) as seen:
            remembered: list[Remembered] = []
            if self.settings.extraction.auto_extract:
                waiting = self.extractor.waiting(session)
                remembered = self.extractor.end(session=session)
                seen.add(waiting)
            seen.mark_ended()
            return remembered

    def transcript_writer(self, session: str) -> TranscriptWriter:
        """Return the transcript of a session that this program keeps."""
        from memoriter.sessions.transcript_writer import TranscriptWriter

        self.check_open()
        return TranscriptWriter(self.settings.agent_folder / "sessions", session)

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
        # A restore that was killed before its moves leaves `.restoring`.
        aside = sorted(
            path for name in ("replaced-*", ".restoring") for path in self.settings.home.glob(name)
        )
        deleted = self.settings.agent_folder / "deleted"
        return NoteCopies(self.engine, self.notes, trust, self.settings.other_indexes(), aside, deleted)

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


def _left_out(said: Conversation, new: Sequence[Turn]) -> Iterator[Remembered]:
    """Yield which turns do not count as the owner's, and which messages are left out, with the reason."""
    unknown = [said.unknown[turn.line] for turn in new if turn.line in said.unknown]
    if unknown:
        fields = ", ".join(sorted({name for names in unknown for name in names}))
        yield Remembered(None, "refused", note=sentence("capture.unknown", n=len(unknown), fields=fields))
    if said.left_out:
        yield Remembered(None, "refused", note=sentence("capture.too_long", n=said.left_out))
