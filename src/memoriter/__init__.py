"""Long-term memory for AI agents: Markdown notes in, the right few lines out.

    import memoriter

    with memoriter.open("~/notes") as memory:
        memory.remember("I prefer tabs", type="user_preference")
        for hit in memory.search("indentation?"):
            print(hit.citation, hit.snippet)

Importing the package loads nothing heavy: most names below load their modules at first use.
"""

from __future__ import annotations

from importlib import import_module

from memoriter.errors import (
    BackupError,
    BadArgument,
    BudgetSpent,
    Cancelled,
    ChatError,
    ChatUnavailable,
    ConfigError,
    EditConflict,
    EmbedderBusy,
    EmbedderUnavailable,
    EmbeddingError,
    EngineBusy,
    EngineError,
    FrameworkMissing,
    IndexBroken,
    LockTimeout,
    MemoriterError,
    MemoryClosed,
    MemoryDisabled,
    NotFound,
    PathRefused,
    QuotaSpent,
    SchemaTooNew,
    SourceError,
    StoreBroken,
    StoreError,
    StoreLocked,
    StoreUnavailable,
    UntrustedConfig,
    WriteError,
)

__version__ = "0.1.0"

TYPE_CHECKING = False  # `typing` costs a third of the start of a hook
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from memoriter.agent import Agent as Agent
    from memoriter.agent import Effect as Effect
    from memoriter.agent import Moment as Moment
    from memoriter.agent.service import MemoryService as MemoryService
    from memoriter.async_memory import AsyncMemory as AsyncMemory
    from memoriter.config import Settings as Settings
    from memoriter.embedding.protocol import Embedder as Embedder
    from memoriter.entries import Entries as Entries
    from memoriter.memory import Memory as Memory
    from memoriter.notes.collection import Notes as Notes
    from memoriter.recall.inject import Recalled as Recalled
    from memoriter.records import Answer as Answer
    from memoriter.records import Entry as Entry
    from memoriter.records import Excerpt as Excerpt
    from memoriter.records import Hit as Hit
    from memoriter.records import Identity as Identity
    from memoriter.records import Query as Query
    from memoriter.records import Receipt as Receipt
    from memoriter.records import Remembered as Remembered
    from memoriter.records import Saved as Saved
    from memoriter.records import Status as Status
    from memoriter.records import SyncReport as SyncReport
    from memoriter.records import Turn as Turn
    from memoriter.tools.toolbox import Toolbox as Toolbox

_NAMES = {
    "agent": ("Agent", "Effect", "Moment"),
    "agent.service": ("MemoryService",),
    "async_memory": ("AsyncMemory",),
    "config": ("Settings",),
    "embedding.protocol": ("Embedder",),
    "entries": ("Entries",),
    "memory": ("Memory",),
    "notes.collection": ("Notes",),
    "recall.inject": ("Recalled",),
    "records": (
        "Answer",
        "Entry",
        "Excerpt",
        "Hit",
        "Identity",
        "Query",
        "Receipt",
        "Remembered",
        "Saved",
        "Status",
        "SyncReport",
        "Turn",
    ),
    "tools.toolbox": ("Toolbox",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "Agent",
    "Answer",
    "AsyncMemory",
    "BackupError",
    "BadArgument",
    "BudgetSpent",
    "Cancelled",
    "ChatError",
    "ChatUnavailable",
    "ConfigError",
    "EditConflict",
    "Effect",
    "Embedder",
    "EmbedderBusy",
    "EmbedderUnavailable",
    "EmbeddingError",
    "EngineBusy",
    "EngineError",
    "Entries",
    "Entry",
    "Excerpt",
    "FrameworkMissing",
    "Hit",
    "Identity",
    "IndexBroken",
    "LockTimeout",
    "MemoriterError",
    "Memory",
    "MemoryClosed",
    "MemoryDisabled",
    "MemoryService",
    "Moment",
    "NotFound",
    "Notes",
    "PathRefused",
    "Query",
    "QuotaSpent",
    "Recalled",
    "Receipt",
    "Remembered",
    "Saved",
    "SchemaTooNew",
    "Settings",
    "SourceError",
    "Status",
    "StoreBroken",
    "StoreError",
    "StoreLocked",
    "StoreUnavailable",
    "SyncReport",
    "Toolbox",
    "Turn",
    "UntrustedConfig",
    "WriteError",
    "__version__",
    "open",
]


def open(  # noqa: A001
    workspace: Path | str | None = None,
    *,
    home: Path | str | None = None,
    agent: str | None = None,
    config: Path | str | None = None,
    overrides: Mapping[str, object] | None = None,
    embedder: Embedder | None = None,
    settings: Settings | None = None,
) -> Memory:
    """Open the memory of a workspace; the same as `Memory.open`."""
    from memoriter.memory import Memory

    return Memory.open(
        workspace,
        home=home,
        agent=agent,
        config=config,
        overrides=overrides,
        embedder=embedder,
        settings=settings,
    )


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
