"""What enters the prompt of an agent: recalls, the brief at its start, and the section about the memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from memoriter.errors import MemoriterError
from memoriter.memory.parts import Parts
from memoriter.memory.search import MemorySearch
from memoriter.recall.render import Language, memory_section
from memoriter.records import Recall
from memoriter.search.citations import shows_citations

if TYPE_CHECKING:
    from memoriter.recall.inject import Injector, Recalled


class Prompts:
    """Writes the parts of prompts that are about the memory of one agent."""

    def __init__(self, parts: Parts, search: MemorySearch) -> None:
        self._parts = parts
        self._settings = parts.settings
        self._search = search
        self._injector: Injector | None = None

    def recall(
        self,
        query: str,
        *,
        session_key: str | None,
        interface: str,
        tokens: int | None,
        entries: int | None,
        notes: int | None,
        is_cancelled: Callable[[], bool],
        session: str | None,
    ) -> Recalled:
        """Return the block of memories about a query."""
        from memoriter.recall.inject import Budget, Recalled

        if not self._parts.allows(session_key):
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
        return self._open_injector().recall(
            query,
            budget=budget,
            interface=interface,
            session=session or session_key,
            show_places=self._shows_citations(session_key),
            is_cancelled=is_cancelled,
        )

    def brief(
        self,
        about: str,
        *,
        sessions: Sequence[str],
        session_key: str | None,
        interface: str,
        session: str | None,
    ) -> Recalled:
        """Return the block of memories for an agent that starts."""
        from memoriter.recall.inject import Budget, Recalled

        if not self._parts.allows(session_key):
            return Recalled("", "")
        budget = Budget(
            max_entries=self._settings.retrieval.max_memories,
            characters=self._settings.memory.max_injected_chars,
        )
        return self._open_injector().brief(
            about,
            sessions=sessions,
            budget=budget,
            interface=interface,
            session=session or session_key,
            show_places=self._shows_citations(session_key),
        )

    def _shows_citations(self, session_key: str | None) -> bool:
        return shows_citations(self._settings.memory.citations, session_key)

    def _open_injector(self) -> Injector:
        with self._parts.opening():
            if self._injector is None:
                from memoriter.recall.inject import Injector

                lookup = self._search.lookup(masked=True)
                self._injector = Injector(self._parts.entries, self._search.search_notes, lookup)
            return self._injector

    def texts_of(self, recall: Recall, *, masked: bool) -> dict[str, str]:
        """Return the texts of what a recall considered, by reference."""
        entries = self._parts.entries.get_many(recall.refs("entry"))
        texts = {id_: entry.text for id_, entry in entries.items()}
        for ref in recall.refs("note"):
            with suppress(MemoriterError):  # the note was removed or has become shorter
                texts[ref] = self._search.read(ref, masked=masked).text.strip()
        return texts

    def section(self, hints: Mapping[str, str], *, language: Language, session_key: str | None) -> str:
        """Return the section of the system prompt about the memory."""
        if not self._parts.allows(session_key):
            return ""
        return memory_section(hints, language=language, citations=self._shows_citations(session_key))
