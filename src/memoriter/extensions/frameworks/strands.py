"""A memory store of Strands Agents.

Use it as ``Agent(memory_manager=MemoryManager(stores=[MemoriterStore(memory)]))``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from memoriter.errors import FrameworkMissing

try:
    from strands.memory.types import MemoryEntry, MemoryStore
except ImportError as error:
    raise FrameworkMissing("Strands Agents", "strands") from error

if TYPE_CHECKING:
    from strands.memory.types import AddMessagesContext, Metadata, SearchOptions
    from strands.types.content import Message

    from memoriter.memory import Memory

__all__ = ["MemoriterStore"]


class MemoriterStore(MemoryStore):
    """Searches one memory and adds to it. Extraction needs no model: the store reads the messages itself."""

    def __init__(
        self, memory: Memory, *, name: str = "memoriter", session: str = "strands", extraction: bool = True
    ) -> None:
        self.name = name
        self.description: str | None = "What the user said, decided and wrote down in earlier conversations."
        self.max_search_results: int | None = None
        self.writable = True
        self.extraction = extraction
        self._memory, self._session = memory, session

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Return the lines that a recall of the query selects, best first."""
        limit = (options or {}).get("max_search_results") or self.max_search_results
        recalled = await asyncio.to_thread(self._memory.recall, query, interface="strands", entries=limit)
        return [
            MemoryEntry(line.text, metadata={"source": line.ref, "author": line.whose, "date": line.date})
            for line in recalled.lines[:limit]
        ]

    async def add(self, content: str, metadata: Metadata | None = None) -> None:
        """Store one statement. It counts as an agent's words, because the agent's tool calls this."""
        del metadata
        await asyncio.to_thread(self._memory.entries.add, content, trust="agent")

    async def add_messages(self, messages: list[Message], context: AddMessagesContext | None = None) -> None:
        """Learn from messages. Those that were added before are not counted again."""
        del context
        texts = ["\n".join(part["text"] for part in one["content"] if "text" in part) for one in messages]
        said = [{"role": one["role"], "content": text} for one, text in zip(messages, texts, strict=True)]
        await asyncio.to_thread(self._memory.capture_messages, said, session=self._session, record=True)
