"""The context of every function of this package: the store of entries, its index, the clock and the options."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from memoriter.embedding import Embedder
from memoriter.entries.capture import CaptureLimits
from memoriter.errors import EmbeddingError, StoreError
from memoriter.index.follow import Follower
from memoriter.records import Entry, Recall, referenced_id
from memoriter.search.changes import Judge
from memoriter.search.rank import Weights
from memoriter.search.rerank import Reranker
from memoriter.sentences import sentence
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.entry_store import EntryStore
from memoriter.store.ledger import MAX_RECALLS
from memoriter.store.retention import DAY_S

Approval = Literal["none", "agent", "all"]
"""The statements that need approval: none, those of agents, or also those that were captured automatically."""

#: Minimum similarity of an entry that is considered. The confidence decides whether it answers: "I moved to Munich" is
#: not very similar to "where do I live?".
MIN_SIMILARITY = 0.15


@dataclass(frozen=True, slots=True)
class CleanupOptions:
    """Options of the cleanup: its interval, the retention of expired entries, and the size of the recall ledger."""

    automatic: bool = True
    interval_hours: float = 24
    retention_days: float = 30
    ledger_days: float = 90
    ledger_recalls: int = MAX_RECALLS


@dataclass(frozen=True, slots=True)
class EntryOptions:
    """Options for search, approval, cleanup and capture of entries. The defaults are those of the settings."""

    threshold: float = MIN_SIMILARITY
    weights: Weights = field(default_factory=Weights)
    #: The share of importance in a score. A small share only separates near-ties.
    importance_weight: float = 0.02
    reranker: Reranker | None = None
    #: Tells whether a new statement puts a known one out of date. Without it, exact denials count.
    judge: Judge | None = None
    approval: Approval = "none"
    cleanup: CleanupOptions = field(default_factory=CleanupOptions)
    capture: CaptureLimits = field(default_factory=CaptureLimits)
    #: Compute vectors in the background that no caller waits for.
    background: bool = False
    #: The folder of the workspace, which new entries record.
    workspace: str | None = None
    #: Use only entries that were learned in this workspace, or in none.
    workspace_only: bool = False


@dataclass(frozen=True, slots=True)
class EntryContext:
    """The entries of one agent, as this package and its interfaces see them. Programs use `Entries`."""

    store: EntryStore
    follower: Follower
    embedder: Embedder | None
    options: EntryOptions
    clock: Callable[[], float]
    #: Held while a draft is judged and written.
    judging: threading.Lock = field(default_factory=threading.Lock)

    @property
    def where(self) -> EntryFilter:
        """The known entries that a new statement is compared with: all, or those of this workspace."""
        return EntryFilter(workspace=self.options.workspace if self.options.workspace_only else None)

    def as_of_now(self, entry: Entry) -> Entry:
        """Return the entry with the state "expired" if its time is over but no cleanup has marked it yet."""
        over = entry.state == "active" and entry.expires_at is not None and entry.expires_at <= self.clock()
        return replace(entry, state="expired") if over else entry

    def complete_ids(self, prefix: str, *, limit: int) -> list[str]:
        """Return ids of entries in force that start with a prefix, newest first."""
        return self.store.ids((referenced_id(prefix) or prefix).lower(), limit, self.clock())

    def full_id(self, entry_id: str | None) -> str | None:
        """Return the id that starts with a prefix; None for None."""
        return self.store.complete_id(entry_id) if entry_id else None

    def count_pending(self) -> dict[str, int]:
        """Return how many entries wait for a vector ("vectors") and for the owner's approval ("staged")."""
        missing, _ = self.follower.count_missing()
        return {"vectors": missing, "staged": self.store.facets(self.clock()).states.get("staged", 0)}

    def add_recall(self, recall: Recall, used: Sequence[str]) -> None:
        """Write a recall to the ledger, within its size, and count the entries that were used."""
        self.store.ledger.write(recall, used, max_recalls=self.options.cleanup.ledger_recalls)

    def clock_problem(self) -> str | None:
        """Return a sentence about a jump of the clock within the retention time; None without one."""
        jump = self.store.retention.last_jump(max(1.0, self.options.cleanup.retention_days) * DAY_S)
        if jump is None:
            return None
        days = round(abs(jump.seconds) / DAY_S, 1)
        return sentence("clock.ahead" if jump.seconds > 0 else "clock.back", days=days)

    def probe_vector(self) -> str | None:
        """Run one vector search. Return None if that works, otherwise an error message."""
        embedder, index = self.embedder, self.follower.index
        if embedder is None:
            return None
        try:
            vector = embedder.embed_query("memoriter")
            self.follower.healing(lambda: index.nearest(vector, embedder.identity, limit=1))
        except (EmbeddingError, StoreError) as error:
            return str(error)
        return index.vector_problem
