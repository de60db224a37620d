"""A memory that keeps itself fresh while its host runs: started, stopped, and asked in the host's own words.

It joins a `Memory` with a watcher and a schedule. Nothing that a host calls in the middle of a turn raises: a failure
is part of the result. What a search, a summary or a flush is, is decided elsewhere.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from memoriter import logs
from memoriter.build import transcripts_of
from memoriter.errors import MemoriterError
from memoriter.index.schedule import Delays, Growth, Refresher, Schedule
from memoriter.memory import Memory
from memoriter.notes.watch import Watcher
from memoriter.recall.candidates import question

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.records import Answer, ProgressCallback, Saved, SyncReport

__all__ = ["MemoryService", "Synced", "Written", "question"]

log = logs.get("service")

Message = Mapping[str, object]

#: Seconds without growth before a transcript is indexed. An agent's turn often writes several lines.
SESSION_DEBOUNCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Synced:
    """A sync that happened by itself."""

    reason: str  #: "start", "notes", "sessions", "interval", "session start"
    report: SyncReport | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """What came of an attempt to write something down."""

    saved: Saved | None = None  #: None also when there was nothing to write
    error: str | None = None


class MemoryService:
    """The memory of one agent, kept fresh between `start` and `stop`."""

    def __init__(
        self,
        memory: Memory,
        *,
        on_sync: Callable[[Synced], None] | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> None:
        self.memory = memory
        self._on_sync = on_sync or (lambda _: None)
        self._on_progress = on_progress
        settings = memory.settings
        self._sessions = transcripts_of(settings) if settings.sessions.enabled else None
        self._growth = Growth(settings.sessions.delta_bytes)
        self._refresher = Refresher(Schedule(_delays(settings)), self._sync)
        self._watcher: Watcher | None = None
        self._started = False
        self._ended = False
        self._turning = (
            threading.Lock()
        )  #: a host may end in one thread what it is still beginning in another

    # ---- its life ---------------------------------------------------------------------------------------------

    def start(self) -> Synced:
        """Bring the index up to date, then watch, unless it was stopped meanwhile. A service is started once."""
        self.memory.warm_up()
        self.memory._watch_state = lambda: self.watching
        if self._sessions:
            self._growth.begin((str(found.absolute), found.size) for found in self._sessions.scan().files)
        first = self._synced("start")
        with self._turning:
            if not self._ended:
                self._refresher.start()
                self._started = True
                if self.memory.settings.watch.enabled:
                    self._watcher = self._build_watcher()
                    self._watcher.start()
        return first

    def stop(self) -> None:
        """End watching; a sync that runs is waited for. The memory itself stays open for whoever opened it."""
        with self._turning:
            self._ended = True
        if self._watcher:
            self._watcher.stop()
        self._refresher.stop()
        self._started = False
        self.memory._watch_state = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def watching(self) -> str:
        """How changes are noticed, in words."""
        if self._watcher is None:
            return "not watching (watch.enabled)"
        return self._watcher.note or "watching"

    def session_started(self) -> Synced | None:
        """A session begins: what changed since the last one is taken in, in the background while the service runs."""
        if not self.memory.settings.watch.on_session_start:
            return None
        if not self._started:
            return self._synced("session start")
        self._refresher.request("session start")
        return None

    def transcript_grew(self, transcript: Path) -> None:
        """A host has added to a transcript; where the service does not run, the next search sees to it."""
        if self._started:
            self._changed(frozenset({str(transcript)}))

    # ---- what a host asks -------------------------------------------------------------------------------------

    def search_memories(
        self, query: str, max_results: int | None = None, min_score: float | None = None
    ) -> Answer:
        """The few lines that answer the query."""
        return self.memory.search(query, max_results=max_results, min_score=min_score)

    def inject_relevant_memories(
        self,
        messages: Sequence[Message],
        recent: Sequence[Message] | None = None,
        *,
        conversation_tokens: int | None = None,
    ) -> list[Message]:
        """The messages with what is remembered about them in front; as they were when nothing is.

        With ``conversation_tokens``, the conversation's budget, what is put in front is at most its share of that.
        """
        wanted = self.memory.settings.retrieval
        query = question(messages if recent is None else recent)
        if not query or not wanted.inject_on_query:
            return list(messages)
        tokens = None if conversation_tokens is None else round(conversation_tokens * wanted.budget_ratio)
        told = self.memory.recall(query, interface="service", tokens=tokens)
        if not told.text:
            return list(messages)
        metadata = {"type": "memory_injection", "memoryCount": len(told.lines), "recallId": told.id}
        return [{"role": "system", "content": told.text, "metadata": metadata}, *messages]

    def maybe_flush_memory(
        self,
        current_tokens: int | None,
        max_tokens: int | None,
        messages: Sequence[Message] = (),
        session: str = "main",
    ) -> Written:
        """Write down what the conversation would lose, if it is about to be shortened and this was not done yet.

        ``max_tokens`` None: the host says that it is.
        """
        return self._writing(
            lambda: self.memory.flush(messages, session, window=max_tokens, tokens=current_tokens)
        )

    def save_conversation_memory(self, messages: Sequence[Message], session: str) -> Written:
        """Write the summary of a conversation that has ended."""
        return self._writing(lambda: self.memory.summarise(messages, session))

    def sync_index(self) -> SyncReport:
        """Bring the index up to date now."""
        return self.memory.sync()

    def reindex(self) -> SyncReport:
        """Build the index anew."""
        return self.memory.sync(force=True)

    def get_stats(self) -> dict[str, Any]:
        """Files, chunks and bytes."""
        status = self.memory.status()
        size = status.details.get("source_bytes", 0)
        return {"file_count": status.files, "chunk_count": status.chunks, "total_size": size}

    def _writing(self, write: Callable[[], Saved | None]) -> Written:
        try:
            saved = write()
        except MemoriterError as error:
            log.error("nothing was written: %s", error)
            return Written(error=str(error))
        if saved and not saved.already:
            self._refresher.request("written")
        return Written(saved)

    # ---- freshness --------------------------------------------------------------------------------------------

    def _sync(self, reason: str) -> None:
        self._synced(reason)

    def _synced(self, reason: str) -> Synced:
        with logs.concerning(str(self.memory.settings.agent_folder)):
            try:
                done = Synced(reason, self.memory.sync(progress=self._on_progress))
                self.memory.maintain()
            except MemoriterError as error:
                log.warning("the index could not be brought up to date (%s): %s", reason, error)
                done = Synced(reason, None, str(error))
        self._on_sync(done)
        return done

    def _build_watcher(self) -> Watcher:
        settings = self.memory.settings
        workspace = Path(os.path.realpath(settings.workspace))
        extra = [Path(os.path.realpath(path)) for path in settings.files.extra_paths]
        single = [
            path.parent for path in extra if path.is_file()
        ]  # an editor's rename would end a file's own watch
        sessions = [Path(os.path.realpath(root)) for root in (self._sessions.roots if self._sessions else ())]
        return Watcher(
            [workspace / "memory", *(path for path in extra if not path.is_file()), *sessions],
            self._changed,
            flat=[workspace, *single],
        )

    def _changed(self, paths: frozenset[str]) -> None:
        """Transcripts count by their growth, everything else at once."""
        transcripts = {path for path in paths if self._sessions and path.endswith(".jsonl")}
        if not paths or paths - transcripts:
            self._refresher.notes_changed()
        for path in transcripts:
            size, messages = self._growth.of(path)
            if size:
                self._refresher.session_grew(path, size, messages)


def _delays(settings: Settings) -> Delays:
    return Delays(
        notes_s=settings.watch.debounce_s,
        sessions_s=SESSION_DEBOUNCE_S,
        interval_s=settings.watch.interval_minutes * 60,
        delta_bytes=settings.sessions.delta_bytes,
        delta_messages=settings.sessions.delta_messages,
    )
