"""A memory that stays up to date while its host runs.

`MemoryService` joins a `Memory` with a file watcher and a schedule. Methods that a host calls during a turn do not
raise: a failure is part of the result.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from memoriter import logs
from memoriter.build import transcripts_of
from memoriter.config import Settings
from memoriter.errors import MemoriterError
from memoriter.files import shared
from memoriter.index.schedule import Delays, Growth, Refresher, Schedule
from memoriter.memory import Memory, parts_of
from memoriter.notes.watch import Watcher
from memoriter.recall.inject import question
from memoriter.records import Answer, ProgressCallback, Saved, Status, SyncReport
from memoriter.sentences import sentence

__all__ = ["MemoryService", "Synced", "Written", "question"]

log = logs.get("service")

Message = Mapping[str, object]

#: Seconds without growth before a transcript is indexed. An agent's turn often writes several lines.
SESSION_DEBOUNCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Synced:
    """A sync of the service."""

    #: "start", "notes", "sessions", "interval", "session start", "written" or "asked".
    reason: str
    report: SyncReport | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """The result of writing a note."""

    #: None also if there was nothing to write.
    saved: Saved | None = None
    error: str | None = None


class MemoryService:
    """Keeps the memory of one agent up to date between `start` and `stop`.

    ``search_enabled`` and ``auto_save_enabled`` switch off what the service searches and writes; the index stays up
    to date. ``max_search_results`` and ``min_score`` are the defaults of `search_memories`.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        search_enabled: bool = True,
        auto_save_enabled: bool = True,
        max_search_results: int | None = None,
        min_score: float | None = None,
        on_sync: Callable[[Synced], None] | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> None:
        self.memory = memory
        self.search_enabled = search_enabled
        self.auto_save_enabled = auto_save_enabled
        self._max_search_results = max_search_results
        self._min_score = min_score
        self._on_sync = on_sync or (lambda _: None)
        self._on_progress = on_progress
        settings = memory.settings
        self._sessions = transcripts_of(settings) if settings.sessions.enabled else None
        self._growth = Growth(settings.sessions.delta_bytes)
        self._refresher = Refresher(Schedule(_delays(settings)), self._sync)
        self._watcher: Watcher | None = None
        self._unfollow: Callable[[], None] = lambda: None
        self._started = False
        self._stopped = False
        # A host may stop the service in one thread while another still starts it.
        self._state_lock = threading.Lock()

    # ---- starting and stopping -------------------------------------------------------------------------------------

    def start(self) -> Synced:
        """Bring the index up to date and watch for changes. A service can be started once."""
        parts_of(self.memory).warm_up()
        parts_of(self.memory).watch_state = lambda: self.watching
        if self._sessions:
            self._growth.begin((str(found.absolute), found.size) for found in self._sessions.scan().files)
        first = self._sync("start")
        with self._state_lock:
            if not self._stopped:
                self._refresher.start()
                self._started = True
                self._unfollow = shared.follow(
                    self.memory.settings.workspace, lambda: self._on_change(frozenset())
                )
                if self.memory.settings.watch.enabled:
                    self._watcher = self._build_watcher()
                    self._watcher.start()
        return first

    def stop(self) -> None:
        """Stop watching and wait for a running sync. The memory stays open."""
        with self._state_lock:
            self._stopped = True
        self._unfollow()
        if self._watcher:
            self._watcher.stop()
        self._refresher.stop()
        self._started = False
        parts_of(self.memory).watch_state = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def watching(self) -> str:
        """The method that detects file changes, as text."""
        if self._watcher is None:
            return "not watching (watch.enabled)"
        return self._watcher.note or "watching"

    def session_started(self) -> Synced | None:
        """Index what changed since the last session: in the background if the service runs, otherwise now."""
        if not self.memory.settings.watch.on_session_start:
            return None
        if not self._started:
            return self._sync("session start")
        self._refresher.request("session start")
        return None

    def transcript_grew(self, transcript: Path) -> None:
        """Note that a host has added to a transcript. If the service does not run, the next search indexes it."""
        if self._started:
            self._on_change(frozenset({str(transcript)}))

    # ---- during a conversation -------------------------------------------------------------------------------------

    def search_memories(
        self, query: str, *, max_results: int | None = None, min_score: float | None = None
    ) -> Answer:
        """Search notes, sessions and entries with the defaults of this service. Secrets in notes are masked."""
        if not self.search_enabled:
            return Answer((), "none", "", degraded=sentence("search.off"))
        return self.memory.search(
            query,
            max_results=self._max_search_results if max_results is None else max_results,
            min_score=self._min_score if min_score is None else min_score,
            masked=True,
        )

    def inject_relevant_memories(
        self,
        messages: Sequence[Message],
        recent: Sequence[Message] | None = None,
        *,
        conversation_tokens: int | None = None,
    ) -> list[Message]:
        """Return the messages with a message in front that says what is remembered about them, if anything is.

        ``recent`` are the messages to look up (default: all). ``conversation_tokens`` is the budget of the
        conversation, of which the added message takes at most the configured share.
        """
        options = self.memory.settings.retrieval
        query = question(messages if recent is None else recent)
        if not query or not options.inject_on_query or not self.search_enabled:
            return list(messages)
        tokens = None if conversation_tokens is None else round(conversation_tokens * options.budget_ratio)
        recalled = self.memory.recall(query, interface="service", tokens=tokens)
        if not recalled.text:
            return list(messages)
        metadata = {"type": "memory_injection", "memoryCount": len(recalled.lines), "recallId": recalled.id}
        return [{"role": "system", "content": recalled.text, "metadata": metadata}, *messages]

    def maybe_flush_memory(
        self,
        current_tokens: int | None,
        max_tokens: int | None,
        messages: Sequence[Message] = (),
        session: str = "main",
    ) -> Written:
        """Write a note about what the conversation loses if it is about to be shortened, once for each overflow.

        With ``max_tokens`` None the host has decided that it is.
        """
        return self._write(
            lambda: self.memory.flush(messages, session, window=max_tokens, tokens=current_tokens)
        )

    def save_conversation_memory(self, messages: Sequence[Message], session: str) -> Written:
        """Write the summary of a conversation that has ended."""
        return self._write(lambda: self.memory.summarise(messages, session))

    def _write(self, write: Callable[[], Saved | None]) -> Written:
        if not self.auto_save_enabled:
            return Written()
        try:
            saved = write()
        except MemoriterError as error:
            log.error("a note could not be written: %s", error)
            return Written(error=str(error))
        if saved and not saved.already:
            self._refresher.request("written")
        return Written(saved)

    # ---- syncs -----------------------------------------------------------------------------------------------------

    def sync_index(self) -> Synced:
        """Bring the index up to date with the files now."""
        return self._sync("asked")

    def reindex(self) -> Synced:
        """Build a new index from the files now, and replace the old one."""
        return self._sync("asked", force=True)

    def get_stats(self) -> Status:
        """Return the number of files and chunks, and the state of the index. The same as `Memory.status`."""
        return self.memory.status()

    def _sync(self, reason: str, *, force: bool = False) -> Synced:
        with logs.concerning(str(self.memory.settings.agent_folder)):
            try:
                synced = Synced(reason, self.memory.sync(force=force, progress=self._on_progress))
                self.memory.maintain()
            except MemoriterError as error:
                log.warning("sync (%s) failed: %s", reason, error)
                synced = Synced(reason, None, str(error))
        self._on_sync(synced)
        return synced

    def _build_watcher(self) -> Watcher:
        settings = self.memory.settings
        workspace = Path(os.path.realpath(settings.workspace))
        extra = [Path(os.path.realpath(extra.path)) for extra in settings.extra_paths]
        # The watch of a single file ends when an editor renames it, so its folder is watched.
        single = [path.parent for path in extra if path.is_file()]
        sessions = [Path(os.path.realpath(root)) for root in (self._sessions.roots if self._sessions else ())]
        return Watcher(
            [workspace / settings.files.folder, *(path for path in extra if not path.is_file()), *sessions],
            self._on_change,
            flat=[workspace, *single],
        )

    def _on_change(self, paths: frozenset[str]) -> None:
        """Plan a sync: transcripts count by their growth, other files immediately."""
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
