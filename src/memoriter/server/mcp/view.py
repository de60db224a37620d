"""What one caller is shown at this moment: the active tools within its access, over the host's memory.

Made for each request and thrown away, so that a slot, a setting or a grant that changes counts from the next request
on. How tools and results look in the protocol is said in `handing`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memoriter.agent.plugins import NOTE_TOOLS
from memoriter.errors import PathRefused
from memoriter.server.mcp import access
from memoriter.server.mcp.chatgpt import ENTRY_PAIR, PAIR
from memoriter.tools.tool import Access, Tool, grants
from memoriter.tools.toolbox import TOOLS, Toolbox

if TYPE_CHECKING:
    from memoriter.agent import Agent
    from memoriter.memory import Memory

#: What is listed while the memory cannot be opened: each answers with the reason, and works once that is mended.
WHILE_BROKEN = NOTE_TOOLS


@dataclass(frozen=True, slots=True)
class View:
    """The host's tools and texts, as far as this caller may have them."""

    host: Agent
    table: Mapping[str, Tool]
    granted: Access
    session: str | None

    @classmethod
    def of(cls, host: Agent, table: Mapping[str, Tool]) -> View:
        """The view of the caller of this request."""
        return cls(host, table, access.granted.get(), access.session.get())

    @property
    def _active(self) -> tuple[str, ...]:
        return self.host.tools or (WHILE_BROKEN if self.host.error and not self.host.off else ())

    @property
    def tools(self) -> dict[str, Tool]:
        """The tools that this caller may call, by name, the pair for connectors last."""
        return self._allowed(self._active)

    def _allowed(self, names: Collection[str]) -> dict[str, Tool]:
        found = {name: self.table[name] for name in names if name in self.table}
        if "memory_search" in found:
            found |= PAIR
        elif "memory_recall" in found:
            found |= ENTRY_PAIR
        return {name: tool for name, tool in found.items() if grants(self.granted, tool.access)}

    @property
    def toolbox(self) -> Toolbox:
        """The tools, ready to be called; without a memory, all that a client may remember: each says the reason."""
        tools = self._allowed(TOOLS) if self.host.error else self.tools
        return Toolbox(lambda: self.host.memory, session_key=self.session, tools=tools, access=self.granted)

    def instructions(self) -> str:
        """The section of the system prompt for these tools; nothing while memory is disabled."""
        hinted = {name: tool for name, tool in self.tools.items() if tool.hints}
        return Toolbox(lambda: self.host.memory, session_key=self.session, tools=hinted).prompt()

    @property
    def notes(self) -> bool:
        """Whether this agent reads notes at all."""
        return "memory_get" in self._active

    @property
    def entries(self) -> bool:
        """Whether this agent sees what was learned in conversations."""
        return bool({"memory_search", "memory_recall", "memory"} & set(self._active))

    def memory(self) -> Memory:
        """The memory, for texts; raises where it is disabled and where this session may not use it."""
        memory = self.host.memory
        if not memory.admits(self.session):
            raise PathRefused("This session may not use this memory.")
        return memory
