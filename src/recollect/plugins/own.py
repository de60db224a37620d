"""Our own plugins: which tools an agent has with each, and what each does by itself.

They differ in what they watch over, not in what is kept: notes, sessions and entries stay where they are, whichever is
active. What is done at a moment is the duty of `acts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.plugins.acts import Acts, Share

if TYPE_CHECKING:
    from recollect.plugins.bus import HookBus
    from recollect.plugins.slots import Plugin
    from recollect.service import MemoryService

NOTE_TOOLS = ("memory_search", "memory_get", "memory_save", "memory_stats")
ENTRY_TOOLS = ("memory_recall", "memory_store", "memory_forget", "memory")


@dataclass(frozen=True, slots=True)
class OwnPlugin:
    """One of ours."""

    name: str
    tools: tuple[str, ...]
    notes: bool  #: whether it watches over notes and sessions
    entries: bool  #: and over what is learned in conversation
    share: Share

    def register(self, bus: HookBus, service: MemoryService) -> None:
        """Say on which events it acts."""
        acts = Acts(service, self.tools, notes=self.notes, entries=self.entries, share=self.share)
        bus.on("session_start", acts.session_start, name=self.name)
        bus.on("before_agent_start", acts.recall, name=self.name)
        if self.notes:
            bus.on("before_compaction", acts.flush, name=self.name)
            bus.on("transcript_update", acts.transcript_update, name=self.name)
            bus.on("command_new", acts.end, name=self.name)
        if self.entries:
            bus.on("agent_end", acts.capture, name=self.name)
        bus.on("session_end", acts.end, name=self.name)


OWN: Mapping[str, Plugin] = {
    plugin.name: plugin
    for plugin in (
        OwnPlugin("memory-core", NOTE_TOOLS, notes=True, entries=False, share=Share(entries=0)),
        OwnPlugin("memory-lancedb", ENTRY_TOOLS, notes=False, entries=True, share=Share(entries=3, notes=0)),
        OwnPlugin("memory-full", (*NOTE_TOOLS, *ENTRY_TOOLS), notes=True, entries=True, share=Share()),
    )
}
