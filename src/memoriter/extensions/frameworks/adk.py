"""A memory service of Google ADK: one memory for each user of an app.

Pass it to a runner as ``Runner(…, memory_service=MemoriterMemoryService("~/adk-memory"))``.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoriter.errors import BadArgument, FrameworkMissing
from memoriter.memory import Memory
from memoriter.text.encoding import slug
from memoriter.text.tokens import token_set

try:
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai.types import Content, Part
except ImportError as error:
    raise FrameworkMissing("Google ADK", "google-adk") from error

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

__all__ = ["MemoriterMemoryService"]

_AUTHORS = {"User": "user", "Assistant": "agent"}


class MemoriterMemoryService(BaseMemoryService):
    """Keeps the memories below one folder. ``overrides`` are settings by their dotted key."""

    def __init__(self, folder: Path | str, *, overrides: Mapping[str, object] | None = None) -> None:
        self._folder, self._overrides = Path(folder).expanduser(), overrides
        self._open = dict[tuple[str, str], Memory]()
        self._lock = threading.Lock()

    async def add_session_to_memory(self, session: Session) -> None:
        """Learn from a session. It may be added again when it has grown."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Learn from some events, and keep them as a transcript that can be searched."""
        del custom_metadata
        said = [(event.author, _text(event.content)) for event in events if event.content]
        messages = [
            {"role": "user" if who == "user" else "assistant", "content": text} for who, text in said if text
        ]
        memory = self._memory(app_name, user_id)
        await asyncio.to_thread(memory.capture_messages, messages, session=session_id or "main", record=True)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store statements. They count as an agent's words, because ADK does not say who wrote them."""
        del custom_metadata
        for text in filter(None, (_text(one.content) for one in memories)):
            await asyncio.to_thread(self._memory(app_name, user_id).entries.add, text, trust="agent")

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the turns that a recall of the query selects, or those with all its words if it selects none."""
        memory = self._memory(app_name, user_id)
        recalled = await asyncio.to_thread(memory.recall, query, interface="adk")
        turns = [
            (text, author, line.ref, line.date)
            for line in recalled.lines
            for author, text in _turns(line.text, line.whose)
        ] or await asyncio.to_thread(_with_all_words, memory, query)
        found = dict[str, MemoryEntry]()
        for text, author, ref, date in turns:
            content = Content(role="user", parts=[Part(text=text)])
            entry = MemoryEntry(id=ref or None, author=author, timestamp=date or None, content=content)
            found.setdefault(text, entry)
        return SearchMemoryResponse(memories=list(found.values()))

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Forget one statement. Lines of notes and sessions are not forgotten by their place."""
        if not memory_id or not memory_id.startswith("entry:"):
            raise BadArgument(f"{memory_id!r} is not the id of an entry.", "memory_id")
        await asyncio.to_thread(self._memory(app_name, user_id).forget, memory_id.removeprefix("entry:"))

    def close(self) -> None:
        """Close every memory."""
        with self._lock:
            memories = list(self._open.values())
            self._open.clear()
        for memory in memories:
            memory.close()

    def _memory(self, app: str, user: str) -> Memory:
        with self._lock:
            if (app, user) not in self._open:
                digest = hashlib.sha256(f"{app}\0{user}".encode()).hexdigest()[:12]
                place = self._folder / f"{slug(app)}-{slug(user)}-{digest}"
                notes, home = place / "notes", place / "home"
                notes.mkdir(parents=True, exist_ok=True)
                self._open[app, user] = Memory.open(notes, home=home, overrides=self._overrides)
            return self._open[app, user]


def _with_all_words(memory: Memory, query: str) -> list[tuple[str, str, str, str]]:
    """Return turns with their author, place and day. A model searches for words; a recall expects a prompt."""
    hits = [hit for hit in memory.search(query) if hit.level != "low" and hit.trust != "untrusted"]
    return [
        (text, author, f"entry:{hit.entry.entry.id}" if hit.entry else hit.citation or "", hit.date or "")
        for hit in hits
        if hit.explain.coverage > 0.999  # of 1, with room for rounding
        for author, text in _turns(hit.snippet, hit.trust)
        if token_set(text).intersection(hit.explain.matched)
    ]


def _turns(text: str, author: str) -> list[tuple[str, str]]:
    """Return the turns of a passage with their authors, or the text as it is."""
    parts = re.split(r"(?:^|\n\n)(User|Assistant): ", text)
    turns = [(_AUTHORS[who], said) for who, said in zip(parts[1::2], parts[2::2], strict=True)]
    return turns if turns and not parts[0] else [("user" if author == "owner" else author, text)]


def _text(content: Any) -> str:
    return "\n".join(part.text for part in content.parts or () if part.text and not part.thought)
