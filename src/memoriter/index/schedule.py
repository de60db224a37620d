"""The schedule of automatic syncs.

A sync is due a moment after notes have changed, after a transcript has grown enough, and at intervals. `Schedule`
decides from events and the clock. `Refresher` runs the syncs in the background.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from memoriter import logs
from memoriter.background import Task, Workers
from memoriter.errors import MemoriterError

log = logs.get("index")

#: `Refresher.stop` waits this long for a sync that is running.
STOP_TIMEOUT_S = 60.0

#: A sync is delayed at most this many times its delay, however often files change.
MAX_DELAYS = 10


@dataclass(frozen=True, slots=True)
class Delays:
    """Delays before changes are indexed, in seconds."""

    notes_s: float = 1.5
    sessions_s: float = 5.0
    #: 0 means no syncs at intervals.
    interval_s: float = 0.0
    delta_bytes: int = 100_000
    delta_messages: int = 50


class _Debounce:
    """Due some time after the last change, or a maximum time after the first."""

    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s
        self._first: float | None = None
        self._last = 0.0

    def changed(self, now: float) -> None:
        self._first = now if self._first is None else self._first
        self._last = now

    def due_at(self) -> float | None:
        if self._first is None:
            return None
        return min(self._last + self._delay_s, self._first + MAX_DELAYS * self._delay_s)

    def reset(self) -> None:
        self._first = None


class Schedule:
    """Decides when the next sync is due, and why."""

    def __init__(self, delays: Delays, now: float = 0.0) -> None:
        self.delays = delays
        self._debounces = {"notes": _Debounce(delays.notes_s), "sessions": _Debounce(delays.sessions_s)}
        #: By transcript: new bytes and messages since the last sync.
        self._grown: dict[str, tuple[int, int]] = {}
        self._requested: tuple[float, str] | None = None
        self._synced_at = now

    def request(self, reason: str, now: float) -> None:
        """Request a sync now."""
        self._requested = (now, reason)

    def notes_changed(self, now: float) -> None:
        """Record that a note was created, changed, renamed or deleted."""
        self._debounces["notes"].changed(now)

    def session_grew(self, path: str, size: int, messages: int, now: float) -> None:
        """Record the growth of a transcript. A sync is due once it has grown enough."""
        before = self._grown.get(path, (0, 0))
        grown = (before[0] + size, before[1] + messages)
        self._grown[path] = grown
        if grown[0] >= self.delays.delta_bytes or grown[1] >= self.delays.delta_messages:
            self._debounces["sessions"].changed(now)

    def next(self) -> tuple[float, str] | None:
        """Return the time of the next sync and its reason, or None."""
        times = [
            (at, reason)
            for reason, debounce in self._debounces.items()
            if (at := debounce.due_at()) is not None
        ]
        if self._requested:
            times.append(self._requested)
        if self.delays.interval_s:
            times.append((self._synced_at + self.delays.interval_s, "interval"))
        return min(times, default=None)

    def sync_started(self, now: float) -> None:
        """Record that a sync starts, which covers all changes so far."""
        for debounce in self._debounces.values():
            debounce.reset()
        self._grown.clear()
        self._requested = None
        self._synced_at = now


class Growth:
    """Measures how much transcripts have grown since the last look."""

    def __init__(self, enough_bytes: int) -> None:
        self._enough = enough_bytes
        self._sizes: dict[str, int] = {}

    def begin(self, sizes: Iterable[tuple[str, int]]) -> None:
        """Set the known sizes."""
        self._sizes.update(sizes)

    def of(self, path: str) -> tuple[int, int]:
        """Return the new bytes and lines of a transcript. A file that has shrunk is new as a whole."""
        try:
            size = Path(path).stat().st_size
        except OSError:
            self._sizes.pop(path, None)
            return self._enough, 0  # a deleted file is worth a sync
        before = self._sizes.get(path, 0)
        self._sizes[path] = size
        grown = size - before if size >= before else size
        return grown, _lines(path, size - grown) if 0 < grown < self._enough else 0


def _lines(path: str, start: int) -> int:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            file.seek(start)
            return file.read().count(b"\n")
    except OSError:
        return 0


class Refresher:
    """Calls ``sync`` with a reason whenever the schedule says so, on a background thread."""

    def __init__(self, schedule: Schedule, sync: Callable[[str], object]) -> None:
        self.schedule = schedule
        self._sync = sync
        self._lock = threading.Lock()
        self._workers = Workers("memoriter-refresh")
        self._task: Task[None] | None = None
        self._started = False

    def start(self) -> None:
        """Follow the schedule from now on."""
        with self._lock:
            self._started = True
            self._plan()

    def request(self, reason: str) -> None:
        """Request a sync now."""
        self._record(lambda now: self.schedule.request(reason, now))

    def notes_changed(self) -> None:
        """Record that a note has changed now."""
        self._record(self.schedule.notes_changed)

    def session_grew(self, path: str, size: int, messages: int) -> None:
        """Record that a transcript has grown now."""
        self._record(lambda now: self.schedule.session_grew(path, size, messages, now))

    def _record(self, event: Callable[[float], None]) -> None:
        with self._lock:
            event(time.monotonic())
            self._plan()

    def stop(self) -> None:
        """Stop syncing; wait for a sync that is running."""
        with self._lock:
            self._started = False
        self._workers.close(STOP_TIMEOUT_S)

    def _plan(self) -> None:
        """Replace the planned sync by the one that the schedule names now."""
        if self._task is not None:
            self._task.cancel()
        planned = self.schedule.next()
        if self._started and planned is not None:
            self._task = self._workers.submit(self._run, delay_s=planned[0] - time.monotonic())

    def _run(self) -> None:
        with self._lock:
            planned = self.schedule.next()
            due = self._started and planned is not None and planned[0] <= time.monotonic()
            if due:
                self.schedule.sync_started(time.monotonic())
        try:
            if due and planned is not None:
                self._sync(planned[1])
        except MemoriterError as error:
            log.warning("automatic sync (%s) failed: %s", planned and planned[1], error)
        except Exception:  # one unexpected failure must not end the automatic syncs
            log.exception("automatic sync (%s) failed", planned and planned[1])
        with self._lock:
            self._plan()
