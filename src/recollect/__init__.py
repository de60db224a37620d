"""Long-term memory for AI agents: Markdown notes in, the right few lines out.

    from recollect import Memory

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
    from recollect.agent.service import MemoryService as MemoryService
    from recollect.async_memory import AsyncMemory as AsyncMemory
    from recollect.config import Settings as Settings
    from recollect.errors import RecollectError as RecollectError
    from recollect.memory import Memory as Memory
    from recollect.records import Answer as Answer
    from recollect.records import Excerpt as Excerpt
    from recollect.records import Hit as Hit
    from recollect.records import Saved as Saved
    from recollect.records import Status as Status
    from recollect.records import SyncReport as SyncReport

_HOMES = {
    "Answer": "records",
    "AsyncMemory": "async_memory",
    "Excerpt": "records",
    "Hit": "records",
    "Memory": "memory",
    "MemoryService": "service",
    "RecollectError": "errors",
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
    "Memory",
    "MemoryService",
    "RecollectError",
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
