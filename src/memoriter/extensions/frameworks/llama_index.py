"""A memory block of LlamaIndex.

Use it as ``Memory.from_defaults(memory_blocks=[MemoriterBlock(memory=memory)])``.
"""

from __future__ import annotations

import asyncio
from typing import Any

from memoriter.agent.service import question
from memoriter.errors import FrameworkMissing
from memoriter.memory import Memory

try:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory.memory import BaseMemoryBlock
except ImportError as error:
    raise FrameworkMissing("LlamaIndex", "llama-index") from error

__all__ = ["MemoriterBlock"]


class MemoriterBlock(BaseMemoryBlock[str]):
    """Recalls what is relevant to the conversation, and learns from messages that leave the short-term memory."""

    name: str = "memoriter"
    memory: Memory
    session: str = "llama-index"

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        """Return the block of memories about the last messages; empty if nothing is relevant."""
        del block_kwargs
        query = question([_message(one) for one in messages or ()])
        if not query:
            return ""
        recalled = await asyncio.to_thread(self.memory.recall, query, interface="llama-index")
        return recalled.text

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Learn from messages."""
        by_session = dict[str, list[dict[str, str]]]()
        for one in messages:
            session = str(one.additional_kwargs.get("session_id") or self.session)
            by_session.setdefault(session, []).append(_message(one))
        for session, said in by_session.items():
            await asyncio.to_thread(self.memory.capture_messages, said, session=session, record=True)


def _message(one: ChatMessage) -> dict[str, str]:
    return {"role": str(one.role.value), "content": one.content or ""}
