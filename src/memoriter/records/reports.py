"""Progress, reports of syncs, and status."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Problem:
    """One file that could not be used, or only in part."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a long task, for callbacks."""

    #: "scan", "embed" or "write".
    stage: str
    done: int
    total: int
    path: str = ""


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class SyncBudget:
    """Time limits of a sync that a search waits for, in seconds."""

    #: For reading files and writing chunks and keywords. At least one file is indexed.
    rows_s: float = 5.0
    #: For vectors.
    vectors_s: float = 2.0
    #: Compute only vectors of files that this sync indexed. The others are computed in the background.
    only_changed: bool = False
    #: How long to wait for another sync.
    wait_s: float = 2.0


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The result of `Indexer.catch_up`."""

    #: Changed files that are not indexed yet, because the time was up.
    waiting: int
    #: All files.
    files: int


@dataclass(frozen=True, slots=True)
class SyncReport:
    """The result of a sync. ``files`` and ``chunks`` count what the index holds afterwards."""

    files: int = 0
    chunks: int = 0
    #: Files that this sync indexed.
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    #: Files that could not be read.
    failed: int = 0
    #: Changed files that are not indexed yet, because the time was up.
    waiting: int = 0
    #: Chunks whose vectors were computed.
    embedded: int = 0
    #: Chunks whose vectors were in the cache.
    cached: int = 0
    #: Chunks without a vector, which only keyword search finds.
    pending: int = 0
    rebuilt: bool = False
    seconds: float = 0.0
    problems: tuple[Problem, ...] = ()
    degraded: str | None = None
    #: What was wrong with the index that this sync replaced.
    healed: str | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """The state of an engine."""

    backend: str
    workspace: str
    files: int
    chunks: int
    #: Chunks with a vector of the current embedder.
    embedded: int
    provider: str
    model: str
    vector_engine: str
    index_path: str
    index_bytes: int
    #: In seconds since the epoch.
    last_sync: float | None = None
    fallback: bool = False
    degraded: str | None = None
    details: Mapping[str, object] = field(default_factory=dict)
