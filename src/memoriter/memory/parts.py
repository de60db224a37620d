"""The parts of a memory, such as its entries and its notes: opened at first use, and closed together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from memoriter.build import (
    build_entries,
    build_extractor,
    build_notes,
    build_writer,
    entries_check,
    scope_of,
    share_files,
    shared_embedder,
)
from memoriter.engines import Engine
from memoriter.errors import MemoryClosed
from memoriter.records import Saved, Trust
from memoriter.sessions.scope import ScopeCheck

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memoriter.config import Settings
    from memoriter.embedding import Embedder
    from memoriter.entries import Entries
    from memoriter.entries.extract import Extractor
    from memoriter.notes.collection import Notes
    from memoriter.notes.writer import NoteWriter
    from memoriter.sessions.seen_turns import SeenTurns

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


ClosableT = TypeVar("ClosableT", bound=Closable)


class Parts:
    """The parts of one memory. After `close`, each of them raises `MemoryClosed`."""

    def __init__(self, settings: Settings, engine: Engine, release_files: Callable[[], None]) -> None:
        self.settings = settings
        self._engine = engine
        self._release_files = release_files
        self._entries: Entries | None = None
        self._may_have_entries = entries_check(settings)
        self._notes: Notes | None = None
        self._writer: NoteWriter | None = None
        self._extractor: Extractor | None = None
        self._seen_turns: SeenTurns | None = None
        self._scope = ScopeCheck(scope_of(settings))
        self._extensions: dict[Hashable, Closable] = {}
        self._closed = False
        # Parts are opened at first use, possibly by several threads at the same time.
        self._lock = threading.RLock()

    def close(self) -> None:
        """Close files and stop threads. Closing closed parts does nothing."""
        with self._lock:  # waits for parts that are being opened; none is opened afterwards
            if self._closed:
                return
            self._closed = True
        for part in (*self._extensions.values(), self._entries, self._writer):
            if part is not None:
                part.close()
        self._engine.close()
        self._release_files()

    def check_open(self) -> None:
        """Raise `MemoryClosed` after `close`."""
        if self._closed:
            raise MemoryClosed("This memory is closed. Open it again with `memoriter.open`.")

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Let one thread at a time open a part, and none once the memory is closed."""
        with self._lock:
            self.check_open()
            yield

    @property
    def engine(self) -> Engine:
        """What searches notes and sessions."""
        self.check_open()
        return self._engine

    @property
    def entries(self) -> Entries:
        """The entries that the agent has learned."""
        with self.opening():
            if self._entries is None:
                self._entries = build_entries(self.settings, self._engine)
            return self._entries

    @property
    def entries_exist(self) -> bool:
        """Whether anything was ever learned. Unlike `entries`, this creates no database."""
        return self._entries is not None or self._may_have_entries()

    @property
    def notes(self) -> Notes:
        """The notes and transcripts of the workspace."""
        with self.opening():
            if self._notes is None:
                self._notes = build_notes(self.settings, self._engine, self.save_note)
            return self._notes

    @property
    def writer(self) -> NoteWriter:
        """What writes notes, summaries and flushes."""
        with self.opening():
            if self._writer is None:
                self._writer = build_writer(self.settings, self._engine)
            return self._writer

    @property
    def extractor(self) -> Extractor:
        """What asks the language model which statements of a conversation to remember."""
        with self.opening():
            if self._extractor is None:
                self._extractor = build_extractor(self.settings, self.entries, self.writer.chat)
            return self._extractor

    @property
    def seen_turns(self) -> SeenTurns:
        """The turns that were captured before."""
        with self.opening():
            if self._seen_turns is None:
                from memoriter.sessions.seen_turns import SeenTurns

                self._seen_turns = SeenTurns(self.settings.agent_folder, self.entries.digest)
            return self._seen_turns

    @property
    def embedder(self) -> Embedder | None:
        """The embedder that notes and entries share."""
        with self.opening():
            return shared_embedder(self.settings, self._engine)

    def extension(self, key: Hashable, open_part: Callable[[], ClosableT]) -> ClosableT:
        """Return what another package adds to the memory, opened at first use."""
        with self.opening():
            if key not in self._extensions:
                self._extensions[key] = open_part()
            part: ClosableT = self._extensions[key]  # type: ignore[assignment]
            return part

    def allows(self, session_key: str | None) -> bool:
        """Return whether this session may use the memory."""
        self.check_open()
        return self._scope.allows(session_key)

    def save_note(
        self,
        content: str,
        title: str = "",
        tags: Sequence[str] = (),
        category: str | None = None,
        *,
        trust: Trust = "owner",
    ) -> Saved:
        """Write a note. The next search indexes it first."""
        return self.mark_if_saved(self.writer.save(content, title, tags, category, trust=trust))

    def mark_if_saved(self, saved: SavedOrNone) -> SavedOrNone:
        """Let the next search index a note that was written."""
        if saved is not None and not saved.already:
            self.engine.mark_changed()
        return saved
