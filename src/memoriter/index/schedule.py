"""When is the index brought up to date by itself?

After notes have changed and been quiet for a moment; after a transcript has grown by enough; at intervals. `Schedule`
is the rule, a function of the events and the clock; `Refresher` is the thread that follows it. What a sync does is the
duty of ``indexing``, how changes are noticed that of ``sources.watch``.
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

log = logs.get("freshness")

#: `Refresher.stop` waits this long for a sync that is running.
STOP_TIMEOUT_S = 60.0

#: However restless the files are, nothing waits longer than so many times its quiet.
PATIENCE = 10


@dataclass(frozen=True, slots=True)
class Delays:
    """How long changes wait, in seconds."""

    notes_s: float = 1.5
    sessions_s: float = 5.0
    interval_s: float = 0.0  #: 0: never by the clock
    delta_bytes: int = 100_000
    delta_messages: int = 50


class _Quiet:
    """Due when nothing has happened for a while, or for too long."""

    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s
        self._first: float | None = None
        self._last = 0.0

    def disturb(self, now: float) -> None:
        self._first = now if self._first is None else self._first
        self._last = now

    def due_at(self) -> float | None:
        if self._first is None:
            return None
        return min(self._last + self._delay_s, self._first + PATIENCE * self._delay_s)

    def settle(self) -> None:
        self._first = None


class Schedule:
    """Says when the next sync is due, and why."""

    def __init__(self, delays: Delays, now: float = 0.0) -> None:
        self.delays = delays
        self._quiet = {"notes": _Quiet(delays.notes_s), "sessions": _Quiet(delays.sessions_s)}
        self._grown: dict[str, tuple[int, int]] = {}  #: bytes and messages since the last sync, by transcript
        self._asked: tuple[float, str] | None = None
        self._synced_at = now

    def ask(self, reason: str, now: float) -> None:
        """Somebody wants the next sync at once."""
        self._asked = (now, reason)

    def notes_changed(self, now: float) -> None:
        """Some note was made, changed, renamed or deleted."""
        self._quiet["notes"].disturb(now)

    def session_grew(self, path: str, size: int, messages: int, now: float) -> None:
        """A transcript grew by so much; it counts once it is enough, and then each line more disturbs again."""
        before = self._grown.get(path, (0, 0))
        grown = (before[0] + size, before[1] + messages)
        self._grown[path] = grown
        if grown[0] >= self.delays.delta_bytes or grown[1] >= self.delays.delta_messages:
            self._quiet["sessions"].disturb(now)

    def next(self) -> tuple[float, str] | None:
        """When the next sync is due, and for what reason."""
        times = [(at, reason) for reason, quiet in self._quiet.items() if (at := quiet.due_at()) is not None]
        if self._asked:
            times.append(self._asked)
        if self.delays.interval_s:
            times.append((self._synced_at + self.delays.interval_s, "interval"))
        return min(times, default=None)

    def synced(self, now: float) -> None:
        """A sync begins: it takes in everything that was noticed so far."""
        for quiet in self._quiet.values():
            quiet.settle()
        self._grown.clear()
        self._asked = None
        self._synced_at = now


class Growth:
    """How much transcripts grew since they were last looked at."""

    def __init__(self, enough_bytes: int) -> None:
        self._enough = enough_bytes
        self._sizes: dict[str, int] = {}

    def begin(self, sizes: Iterable[tuple[str, int]]) -> None:
        """What is known already."""
        self._sizes.update(sizes)

    def of(self, path: str) -> tuple[int, int]:
        """Bytes and lines that are new; a file that became smaller is all new."""
        try:
            size = Path(path).stat().st_size
        except OSError:
            self._sizes.pop(path, None)
            return self._enough, 0  # it is gone, which is worth a look
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

    def __init__(
        self,
        schedule: Schedule,
        sync: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.schedule = schedule
        self._sync = sync
        self._clock = clock
        self._lock = threading.Lock()
        self._workers = Workers("memoriter-refresh", clock=clock)
        self._task: Task[None] | None = None
        self._started = False

    def start(self) -> None:
        """Follow the schedule from now on."""
        with self._lock:
            self._started = True
            self._plan()

    def ask(self, reason: str) -> None:
        """As `Schedule.ask`, now."""
        with self._lock:
            self.schedule.ask(reason, self._clock())
            self._plan()

    def notes_changed(self) -> None:
        """As `Schedule.notes_changed`, now."""
        with self._lock:
            self.schedule.notes_changed(self._clock())
            self._plan()

    def session_grew(self, path: str, size: int, messages: int) -> None:
        """As `Schedule.session_grew`, now."""
        with self._lock:
            self.schedule.session_grew(path, size, messages, self._clock())
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
            self._task = self._workers.submit(self._run, delay_s=planned[0] - self._clock())

    def _run(self) -> None:
        with self._lock:
            planned = self.schedule.next()
            due = self._started and planned is not None and planned[0] <= self._clock()
            if due:
                self.schedule.synced(self._clock())
        try:
            if due and planned is not None:
                self._sync(planned[1])
        except MemoriterError as error:
            log.warning("automatic sync (%s) failed: %s", planned and planned[1], error)
        except Exception:  # one unexpected failure must not end the automatic syncs
            log.exception("automatic sync (%s) failed", planned and planned[1])
        with self._lock:
            self._plan()
