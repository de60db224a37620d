"""What an agent learns from conversations: captured turns, by rules or by a language model, each turn once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from memoriter.build import trust_rules
from memoriter.memory.parts import Parts
from memoriter.records import Remembered, Trust, Turn, least_trusted, referenced_id

if TYPE_CHECKING:
    from memoriter.sessions.transcript_writer import TranscriptWriter

Messages = Iterable[Mapping[str, object]]


class Conversations:
    """Captures the conversations of one agent."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._settings = parts.settings

    def capture(
        self, turns: Sequence[Turn], *, session: str, record: bool = False, wait: bool = False
    ) -> list[Remembered]:
        """Capture the new ones of these turns. Return the outcome for each statement."""
        with self._parts.seen_turns.of(session) as seen:
            if not self._settings.extraction.auto_extract:
                new = seen.new(turns)
                remembered = self._parts.entries.capture(new, session=session)
                self._record(new if record else (), session)
                seen.add(new)
                return remembered
            extractor = self._parts.extractor
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

    def transcript_writer(self, session: str) -> TranscriptWriter:
        """Return the transcript of a session that this program keeps."""
        from memoriter.sessions.transcript_writer import TranscriptWriter

        self._parts.check_open()
        return TranscriptWriter(self._settings.agent_folder / "sessions", session)

    def capture_messages(
        self, messages: Messages, *, session: str, trust: Trust, record: bool, wait: bool
    ) -> list[Remembered]:
        """Capture messages as chat APIs have them, with at most this trust."""
        from memoriter.sessions.messages import relayed_refs, turns_of_messages

        messages = list(messages)
        rules = trust_rules(self._settings)
        turns = turns_of_messages(messages, rules)
        self.mark_relayed(relayed_refs(messages, rules))
        limited = [replace(turn, trust=least_trusted(turn.trust, trust)) for turn in turns]
        return self.capture(limited, session=session, record=record, wait=wait)

    def mark_relayed(self, refs: Sequence[str]) -> None:
        """Lower the trust of entries and notes that an agent wrote after it had read text from outside."""
        self._parts.check_open()
        ids = [ref for ref in refs if referenced_id(ref)]
        if ids and self._has_entries:
            self._parts.entries.mark_relayed(ids)
        for path in dict.fromkeys(ref for ref in refs if not referenced_id(ref)):
            self._parts.notes.mark_relayed(path)

    @property
    def _has_entries(self) -> bool:
        return self._parts.allows(None) and self._parts.entries_exist

    def session_began(self, session: str) -> None:
        """Note that a session starts or continues."""
        if self._has_entries:
            with self._parts.seen_turns.of(session) as seen:
                seen.mark_ended()

    def session_ended(self, session: str) -> list[Remembered]:
        """Note that a session is over, and show the waiting turns to the language model."""
        with self._parts.seen_turns.of(session) as seen:
            remembered: list[Remembered] = []
            if self._settings.extraction.auto_extract:
                waiting = self._parts.extractor.waiting(session)
                remembered = self._parts.extractor.end(session=session)
                seen.add(waiting)
            seen.mark_ended()
            return remembered

    def count_waiting_turns(self, session: str) -> int:
        """Count the turns of a session that the language model has not seen yet."""
        self._parts.check_open()
        return len(self._parts.extractor.waiting(session)) if self._settings.extraction.auto_extract else 0
