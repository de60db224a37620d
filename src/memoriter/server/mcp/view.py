"""The tools and resources that one caller may currently use.

A view is made for each request, so that a change of the slot, the settings or the access applies from the next request
on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memoriter.agent.plugins import NOTE_TOOLS
from memoriter.errors import PathRefused
from memoriter.server.mcp.chatgpt import ENTRY_TOOLS_FOR_CHATGPT, TOOLS_FOR_CHATGPT
from memoriter.tools.tool import Access, Tool, grants
from memoriter.tools.toolbox import TOOLS, Toolbox

if TYPE_CHECKING:
    from memoriter.agent import Agent
    from memoriter.memory import Memory

#: Listed while the memory cannot be opened. Each reports the reason, and works once the problem is fixed.
TOOLS_WITHOUT_MEMORY = NOTE_TOOLS

granted_access: ContextVar[Access] = ContextVar("memoriter_mcp_access", default="write")
"""The access of the caller of this request. The gateway sets it from the token, the command line once at the start."""

session_key: ContextVar[str | None] = ContextVar("memoriter_mcp_session", default=None)
"""The key of the caller's session, to which `memory.scope` applies. None is the owner's own session."""


@dataclass(frozen=True, slots=True)
class View:
    """The tools and texts of an agent that one caller may use."""

    agent: Agent
    table: Mapping[str, Tool]
    access: Access
    session_key: str | None

    @classmethod
    def of(cls, agent: Agent, table: Mapping[str, Tool]) -> View:
        """Return the view of the caller of this request."""
        return cls(agent, table, granted_access.get(), session_key.get())

    @property
    def _active(self) -> tuple[str, ...]:
        without_memory = self.agent.error and not self.agent.off
        return self.agent.tools or (TOOLS_WITHOUT_MEMORY if without_memory else ())

    @property
    def tools(self) -> dict[str, Tool]:
        """Return the tools that this caller may call, by name. Those for ChatGPT are last."""
        return self._allowed_tools(self._active)

    def _allowed_tools(self, names: Collection[str]) -> dict[str, Tool]:
        tools = {name: self.table[name] for name in names if name in self.table}
        if "memory_search" in tools:
            tools |= TOOLS_FOR_CHATGPT
        elif "memory_recall" in tools:
            tools |= ENTRY_TOOLS_FOR_CHATGPT
        return {name: tool for name, tool in tools.items() if grants(self.access, tool.access)}

    @property
    def toolbox(self) -> Toolbox:
        """Return the tools with the memory.

        Without a memory it contains all tools, because a client may call one that it listed earlier. Each reports why
        there is no memory.
        """
        tools = self._allowed_tools(TOOLS) if self.agent.error else self.tools
        return Toolbox(lambda: self.agent.memory, session=self.session_key, tools=tools, access=self.access)

    def instructions(self) -> str:
        """Return the section of the system prompt for these tools. Empty while memory is disabled."""
        with_hints = {name: tool for name, tool in self.tools.items() if tool.hints}
        return Toolbox(lambda: self.agent.memory, session=self.session_key, tools=with_hints).prompt()

    @property
    def has_notes(self) -> bool:
        """Return whether this agent reads notes."""
        return "memory_get" in self._active

    @property
    def has_entries(self) -> bool:
        """Return whether this agent sees entries."""
        return bool({"memory_search", "memory_recall", "memory"} & set(self._active))

    def memory(self) -> Memory:
        """Return the memory. Raise if it is disabled, or if this session may not use it."""
        memory = self.agent.memory
        if not memory.allows(self.session_key):
            raise PathRefused("This session may not use this memory.")
        return memory
