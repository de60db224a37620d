"""Expiry of entries: expired entries are hidden immediately, marked at the next cleanup and erased later.

Erasing an expired entry leaves no tombstone, because the owner did not ask for it. The same text may be learned again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from memoriter.entries.drafts import DAY
from memoriter.entries.erase import Eraser
from memoriter.records import CleanedUp
from memoriter.store.connection import value
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.entry_store import Edit, EntryStore
from memoriter.store.ledger import MAX_RECALLS, Ledger

HOUR = 3600.0
LAST_CLEANUP = "last_cleanup"


@dataclass(frozen=True, slots=True)
class CleanupOptions:
    """Options of the cleanup: its interval, the retention of expired entries, and the size of the recall ledger."""

    automatic: bool = True
    interval_hours: float = 24
    retention_days: float = 30
    ledger_days: float = 90
    ledger_recalls: int = MAX_RECALLS


class Lifecycle:
    """Cleans up the entries of one store."""

    def __init__(
        self, store: EntryStore, eraser: Eraser, options: CleanupOptions, clock: Callable[[], float]
    ) -> None:
        self.ledger = Ledger(store.database, options.ledger_recalls)
        self._store = store
        self._eraser = eraser
        self._options = options
        self._clock = clock

    def cleanup_if_due(self) -> CleanedUp | None:
        """Clean up if automatic cleanup is on and the interval has passed."""
        with self._store.database.read() as connection:
            last = value(connection, "select value from meta where key = ?", (LAST_CLEANUP,))
        due = last is None or self._clock() - float(last) >= self._options.interval_hours * HOUR
        return self.cleanup() if self._options.automatic and due else None

    def cleanup(self) -> CleanedUp:
        """Mark expired entries, erase those that expired or were rejected long ago, and delete old recalls."""
        now = self._clock()
        over = [
            e for e in self._store.find(EntryFilter()) if e.expires_at is not None and e.expires_at <= now
        ]
        if over:
            edits = [Edit("expire", replace(entry, state="expired"), entry) for entry in over]
            self._store.apply(edits, at=now, by="cleanup")
        expired_ids = [
            entry.id
            for entry in self._store.find(EntryFilter(states=("expired",)))
            if (entry.expires_at or 0) + self._options.retention_days * DAY <= now
        ]
        if expired_ids:
            self._eraser.erase(expired_ids, actor="cleanup", tombstones=False)
        refused = [
            entry.id
            for entry in self._store.find(EntryFilter(states=("rejected",)))
            if entry.updated_at + self._options.retention_days * DAY <= now
        ]
        if refused:  # with a tombstone: the owner did not want it, so it is not captured again
            self._eraser.erase(refused, actor="cleanup")
        self.ledger.prune(now - self._options.ledger_days * DAY)
        with self._store.database.write() as connection:
            connection.execute(
                "insert or replace into meta(key, value) values(?, ?)", (LAST_CLEANUP, str(now))
            )
        return CleanedUp(len(over), len(expired_ids) + len(refused))
