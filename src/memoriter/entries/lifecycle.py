"""Expiry of entries: expired entries are hidden immediately, marked at the next cleanup and erased later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from memoriter import logs
from memoriter.entries.drafts import DAY
from memoriter.entries.erase import Eraser
from memoriter.records import CleanedUp, Entry, Recall
from memoriter.sentences import sentence
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.entry_store import Edit, EntryStore
from memoriter.store.ledger import MAX_RECALLS

log = logs.get("entries")

HOUR = 3600.0
#: The states in which an entry waits to be erased, and whether a tombstone prevents capturing it again. The owner did
#: not ask to erase an expired entry, so the same text may be learned again.
WAITING = {"expired": False, "rejected": True}


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
        self._retention = store.retention
        self._store = store
        self._eraser = eraser
        self._options = options
        self._clock = clock

    def cleanup_if_due(self) -> CleanedUp | None:
        """Clean up if automatic cleanup is on and the interval has passed, or if the clock was set back."""
        last = self._retention.seen()
        due = last is None or not 0 <= self._clock() - last < self._options.interval_hours * HOUR
        return self.cleanup() if self._options.automatic and due else None

    def cleanup(self) -> CleanedUp:
        """Mark expired entries, erase those that have waited long enough, and delete old recalls.

        Only observed time counts as waiting, so one run under a wrong clock marks entries but erases nothing. When
        the clock is right again, the next run restores them.
        """
        now = self._clock()
        observed = self._retention.observe(now)
        purged = self._erase_due(observed - self._options.retention_days * DAY)
        expired, restored = self._mark(now)
        self._retention.record(WAITING, observed)
        jump = self.clock_problem()
        if jump is None:
            self._store.ledger.prune(now - self._options.ledger_days * DAY)
        else:
            log.warning("%s", jump)
        return CleanedUp(expired, purged, restored, jump)

    def add_recall(self, recall: Recall, used: Sequence[str]) -> None:
        """Write a recall to the ledger, within the size that the options allow."""
        self._store.ledger.write(recall, used, max_recalls=self._options.ledger_recalls)

    def clock_problem(self) -> str | None:
        """Return a sentence about a jump of the clock within the retention time; None without one."""
        jump = self._retention.last_jump(max(1.0, self._options.retention_days) * DAY)
        if jump is None:
            return None
        days = round(abs(jump.seconds) / DAY, 1)
        return sentence("clock.ahead" if jump.seconds > 0 else "clock.back", days=days)

    def _mark(self, now: float) -> tuple[int, int]:
        """Mark entries whose time is over, and restore those whose time is not. Return how many of each."""
        over = [one for one in self._store.find(EntryFilter()) if not _lasts(one, now)]
        early = [one for one in self._store.find(EntryFilter(states=("expired",))) if _lasts(one, now)]
        edits = [
            *(Edit("expire", replace(entry, state="expired"), entry) for entry in over),
            *(Edit("restore", replace(entry, state="active"), entry) for entry in early),
        ]
        if edits:
            self._store.apply(edits, at=now, by="cleanup")
        return len(over), len(early)

    def _erase_due(self, until: float) -> int:
        """Erase the entries that wait since a time or longer. Return how many."""
        count = 0
        for state, has_tombstone in WAITING.items():
            ids = self._retention.due((state,), until)
            if ids:
                self._eraser.erase(ids, actor="cleanup", tombstones=has_tombstone)
            count += len(ids)
        return count


def _lasts(entry: Entry, now: float) -> bool:
    return entry.expires_at is None or entry.expires_at > now
