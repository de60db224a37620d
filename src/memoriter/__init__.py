"""Long-term memory for AI agents: Markdown notes in, the right few lines out.

    from memoriter import Memory

    with Memory.open("~/notes") as memory:
        memory.sync()
        for hit in memory.search("what did we decide about backups?").hits:
            print(hit.citation, hit.snippet)

Nothing heavy is imported here: the names below load their rooms on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from memoriter.agent.service import MemoryService as MemoryService
    from memoriter.async_memory import AsyncMemory as AsyncMemory
    from memoriter.config import Settings as Settings
    from memoriter.errors import MemoriterError as MemoriterError
    from memoriter.memory import Memory as Memory
    from memoriter.records import Answer as Answer
    from memoriter.records import Excerpt as Excerpt
    from memoriter.records import Hit as Hit
    from memoriter.records import Saved as Saved
    from memoriter.records import Status as Status
    from memoriter.records import SyncReport as SyncReport

_HOMES = {
    "Answer": "records",
    "AsyncMemory": "async_memory",
    "Excerpt": "records",
    "Hit": "records",
    "Memory": "memory",
    "MemoryService": "agent.service",
    "MemoriterError": "errors",
    "Saved": "records",
    "Settings": "config",
    "Status": "records",
    "SyncReport": "records",
}

__all__ = [
    "Answer",
    "AsyncMemory",
    "Excerpt",
    "Hit",
    "MemoriterError",
    "Memory",
    "MemoryService",
    "Saved",
    "Settings",
    "Status",
    "SyncReport",
    "__version__",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
