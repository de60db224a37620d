"""A context provider of the Microsoft Agent Framework.

Pass it to an agent as ``context_providers=[MemoriterContextProvider(memory)]``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from memoriter.agent.service import question
from memoriter.errors import FrameworkMissing

try:
    from agent_framework import ContextProvider, Message
except ImportError as error:
    raise FrameworkMissing("The Microsoft Agent Framework", "agent-framework") from error

if TYPE_CHECKING:
    from agent_framework import AgentSession, SessionContext

    from memoriter.memory import Memory

__all__ = ["MemoriterContextProvider"]


class MemoriterContextProvider(ContextProvider):
    """Adds relevant memories before a run, and learns from its messages afterwards."""

    def __init__(self, memory: Memory, *, source_id: str = "memoriter") -> None:
        super().__init__(source_id)
        self._memory = memory

    async def before_run(self, *, context: SessionContext, **_: Any) -> None:
        """Add the memories that are relevant to the new messages."""
        query = question(_messages(context.input_messages))
        if query:
            recalled = await asyncio.to_thread(self._memory.recall, query, interface="agent-framework")
            if recalled.text:
                context.extend_messages(self, [Message("user", [recalled.text])])

    async def after_run(self, *, session: AgentSession, context: SessionContext, **_: Any) -> None:
        """Learn from the new messages and the answer."""
        answer = context.response.messages if context.response else ()
        said = [*_messages(context.input_messages), *_messages(answer)]
        if said:
            name = context.session_id or session.session_id
            await asyncio.to_thread(self._memory.capture_messages, said, session=name, record=True)


def _messages(messages: Iterable[Message]) -> list[dict[str, str]]:
    return [{"role": str(one.role), "content": one.text} for one in messages if one.text]
