"""Write summaries of sessions, and flushes before a compaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from memoriter.errors import NotFound
from memoriter.llm import Chat
from memoriter.notes.notebook import Notebook
from memoriter.notes.summary import Flush, Summaries, Threshold
from memoriter.records import FoundFile, Saved, Turn
from memoriter.sessions.messages import turns_of_messages
from memoriter.sessions.outside_text import TrustRules
from memoriter.sessions.transcripts import Transcripts

Messages = Iterable[Mapping[str, object]]


class NoteWriter:
    """Writes the summaries and flushes of one agent."""

    def __init__(
        self,
        notebook: Notebook,
        chat: Chat,
        *,
        state: Path,
        threshold: Threshold,
        sessions: Transcripts,
        rules: TrustRules | None = None,
    ) -> None:
        self.notebook = notebook
        self.chat = chat
        self.sessions = sessions
        self._rules = rules or TrustRules()
        self._summaries = Summaries(notebook, chat, state)
        self._flush = Flush(notebook, chat, state, threshold)

    def summarise(self, messages: Messages, session: str) -> Saved | None:
        """Write the summary of a session from its messages. Return None if nothing was said."""
        return self._summaries.write(turns_of_messages(messages, self._rules), session)

    def summarise_transcript(self, transcript: str | Path) -> Saved | None:
        """Write the summary of a session from its transcript, given as a file or a citation (`sessions/….jsonl`)."""
        found = self._find(transcript)
        return self._summaries.write(self._turns(found), self.sessions.session(found))

    def flush(
        self, messages: Messages, session: str, *, window: int | None, tokens: int | None = None
    ) -> Saved | None:
        """Write what a compaction would lose, as `Flush.write_if_due` does."""
        turns = turns_of_messages(messages, self._rules)
        return self._flush.write_if_due(turns, session, window=window, tokens=tokens)

    def prune(self, older_than: float) -> None:
        """Remove the states of flushes of sessions older than this time."""
        self._flush.prune(older_than)

    def close(self) -> None:
        """Close the language model."""
        self.chat.close()

    def _turns(self, found: FoundFile) -> list[Turn]:
        return list(self.sessions.turns(found))

    def _find(self, transcript: str | Path) -> FoundFile:
        wanted = str(transcript)
        path = Path(transcript).expanduser().resolve()
        for found in self.sessions.scan().files:
            if found.path == wanted or found.absolute == path:
                return found
        raise NotFound(f"{wanted!r} is not one of the transcripts in `sessions.paths`.")
