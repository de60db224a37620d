"""A memory provider of Hermes Agent.

A plugin in ``plugins/memory/memoriter/`` registers it: ``ctx.register_memory_provider(MemoriterProvider())``.
"""

from __future__ import annotations

import json
from typing import Any

from memoriter.background import Workers
from memoriter.errors import FrameworkMissing
from memoriter.memory import Memory
from memoriter.tools.toolbox import Toolbox

try:
    from agent.memory_provider import MemoryProvider
except ImportError as error:
    raise FrameworkMissing("Hermes Agent", "hermes") from error

__all__ = ["MemoriterProvider"]

TOOLS = ("memory_search", "memory_recall", "memory_forget")


class MemoriterProvider(MemoryProvider):
    """Recalls before each turn and learns after it. Without a memory it opens the owner's."""

    def __init__(self, memory: Memory | None = None) -> None:
        self._memory, self._session, self._writes = memory, "hermes", True
        self._workers = Workers("hermes", keep=True)

    @property
    def name(self) -> str:
        return "memoriter"

    def is_available(self) -> bool:
        """Return True: memoriter needs no key and no server."""
        return True

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Open the memory. Only the primary agent writes to it: prompts of other agents are not the user's words."""
        self._session = session_id or self._session
        self._writes = kwargs.get("agent_context", "primary") == "primary"
        self._opened  # noqa: B018 - the first turn should not wait for it

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """Return the memories that are relevant to the next turn."""
        del session_id
        return self._opened.recall(query, interface="hermes").text

    def sync_turn(
        self,
        user_content: str,
        assistant_content: str,
        *,
        session_id: str = "",
        messages: list[dict[str, Any]] | None = None,
    ) -> None:
        """Learn from a turn, in the background."""
        said = [
            {"role": "user", "content": user_content},
            {"role": "assistant", "content": assistant_content},
        ]
        if self._writes:
            memory, key = self._opened, session_id or self._session
            self._workers.submit(lambda: memory.capture_messages(messages or said, session=key, record=True))

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return [
            {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema())}
            for tool in self._tools.tools.values()
        ]

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Run a tool and return its result as JSON."""
        del kwargs
        return json.dumps(self._tools.call(tool_name, args), ensure_ascii=False)

    def shutdown(self) -> None:
        """Finish what waits, and close the memory."""
        self._workers.close(30.0)
        if self._memory is not None:
            self._memory.close()

    @property
    def _opened(self) -> Memory:
        self._memory = self._memory or Memory.open()
        return self._memory

    @property
    def _tools(self) -> Toolbox:
        return Toolbox(self._opened, names=TOOLS, access="write", interface="hermes")
