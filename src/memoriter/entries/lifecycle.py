"""How entries end by themselves: expired ones are hidden at once, marked at the next cleanup, erased later.

A purge is no forgetting: nobody asked for it, so the same may be learned again.
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
from memoriter.store.ledger import MOST, Ledger

HOUR = 3600.0
LAST = "last_cleanup"


@dataclass(frozen=True, slots=True)
class Upkeep:
    """When to clean up, how long what expired is kept, and how much the ledger of recalls holds."""

    automatic: bool = True
    interval_hours: float = 24
    retention_days: float = 30
    ledger_days: float = 90
    ledger_recalls: int = MOST


class Lifecycle:
    """Cleans up the entries of one keeper."""

    def __init__(
        self, entries: EntryStore, eraser: Eraser, upkeep: Upkeep, clock: Callable[[], float]
    ) -> None:
        self.entries = entries
        self.eraser = eraser
        self.upkeep = upkeep
        self.ledger = Ledger(entries.database, upkeep.ledger_recalls)
        self._clock = clock

    def when_due(self) -> CleanedUp | None:
        """Clean up, if it is time and the settings want it."""
        with self.entries.database.read() as connection:
            last = value(connection, "select value from meta where key = ?", (LAST,))
        due = last is None or self._clock() - float(last) >= self.upkeep.interval_hours * HOUR
        return self.cleanup() if self.upkeep.automatic and due else None

    def cleanup(self) -> CleanedUp:
        """Mark what has expired; erase what expired long ago; drop old recalls from the ledger."""
        now = self._clock()
        over = [
            e for e in self.entries.find(EntryFilter()) if e.expires_at is not None and e.expires_at <= now
        ]
        if over:
            edits = [Edit("expire", replace(entry, state="expired"), entry) for entry in over]
            self.entries.apply(edits, at=now, by="cleanup")
        doomed = [
            entry.id
            for entry in self.entries.find(EntryFilter(states=("expired",)))
            if (entry.expires_at or 0) + self.upkeep.retention_days * DAY <= now
        ]
        if doomed:
            self.eraser.erase(doomed, by="cleanup", bury=False)
        refused = [
            entry.id
            for entry in self.entries.find(EntryFilter(states=("rejected",)))
            if entry.updated_at + self.upkeep.retention_days * DAY <= now
        ]
        if refused:  # somebody did not want it: it is not noticed again
            self.eraser.erase(refused, by="cleanup")
        self.ledger.prune(now - self.upkeep.ledger_days * DAY)
        with self.entries.database.write() as connection:
            connection.execute("insert or replace into meta(key, value) values(?, ?)", (LAST, str(now)))
        return CleanedUp(len(over), len(doomed) + len(refused))
