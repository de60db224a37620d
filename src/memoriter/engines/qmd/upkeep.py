"""When qmd takes in what changed: one update at a time, soon after a change, on an interval, and not over and over
when it fails.

What is on disk is known by a signature of the files' stats; the signature that qmd last took in is kept in a file, so
that a new process knows whether there is anything to do without starting qmd. What an update consists of is the
engine's duty.
"""

from __future__ import annotations

import json
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from memoriter import logs
from memoriter.background import cancellable, check_cancelled
from memoriter.engines.qmd.command import Counts
from memoriter.errors import Cancelled, EngineBusy, EngineError, LockTimeout, MemoriterError
from memoriter.files.locks import file_lock

log = logs.get("engines")

STILL = "qmd is still taking in what changed on disk."
FIRST = "qmd is still building its first index; `memoriter index` waits for it."

_END_S = 5.0  #: how long the end of a process waits for its updates, whose programs are killed at once


@dataclass(frozen=True, slots=True)
class Schedule:
    """How often, and how long; all in seconds."""

    interval_s: float = 300.0  #: an update at least so often; 0: only after changes
    debounce_s: float = 1.0  #: between the end of one update and the start of the next
    wait_s: float = 2.0  #: a search waits so long for what was just written
    update_timeout_s: float = 120.0
    embed_interval_s: float = 3600.0
    embed_timeout_s: float = 600.0
    back_off_s: float = 60.0  #: after a failure; doubled after each further one
    back_off_max_s: float = 3600.0

    def back_off(self, failures: int) -> float:
        """How long nothing is tried after so many failures in a row."""
        return min(self.back_off_s * 2.0 ** min(failures - 1, 30), self.back_off_max_s) if failures else 0.0


@dataclass(slots=True)
class Job:
    """One update, running or done."""

    wanted: str  #: the signature of what it takes in
    forced: bool = False
    done: threading.Event = field(default_factory=threading.Event)
    counts: Counts = field(default_factory=Counts)
    error: MemoriterError | None = None


@dataclass(slots=True)
class _Trials:
    """How one kind of work went lately."""

    ended: float | None = None  #: when it was last tried
    failures: int = 0  #: in a row
    error: str | None = None


class Upkeep:
    """Runs updates and embeddings for one agent's qmd."""

    def __init__(
        self,
        folder: Path,
        update: Callable[[float], Counts],
        embed: Callable[[float], None] | None = None,
        schedule: Schedule | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.schedule = schedule or Schedule()
        self._state = folder / "state.json"
        self._lock_file = folder / "update.lock"
        self._update = update
        self._embed = embed
        self._clock = clock
        self._lock = threading.Lock()
        self._job: Job | None = None
        self._updates, self._embeds = _Trials(), _Trials()
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        # A program that ends without closing us must not leave a qmd at work.
        weakref.finalize(self, _stop, self._closing, self._threads)

    # ---- what was taken in ------------------------------------------------------------------------------------

    @property
    def taken(self) -> str | None:
        """The signature of what qmd last took in; None before its first update."""
        signature = self._remembered().get("signature")
        return signature if isinstance(signature, str) else None

    @property
    def taken_at(self) -> float | None:
        """When that was, in seconds since the epoch."""
        at = self._remembered().get("at")
        return float(at) if isinstance(at, int | float) else None

    @property
    def error(self) -> str | None:
        """What went wrong with the last update, or else with the last embedding."""
        return self._updates.error or self._embeds.error

    def _remembered(self) -> dict[str, object]:
        with suppress(OSError, ValueError):
            value = json.loads(self._state.read_text("utf-8"))
            if isinstance(value, dict):
                return value
        return {}

    def _remember(self, signature: str) -> None:
        fresh = self._state.with_suffix(".new")
        fresh.write_text(json.dumps({"signature": signature, "at": time.time()}), "utf-8")
        fresh.replace(self._state)

    def forget(self) -> None:
        """Make the next update take in everything anew."""
        self._state.unlink(missing_ok=True)

    # ---- before a search --------------------------------------------------------------------------------------

    def catch_up(self, wanted: str, *, wait_s: float, announced: bool = False) -> str | None:
        """Have the disk's state taken in, waiting at most so long; what is then still missing, in words.

        A change that its writer announced is not held back by the debounce. Raises `EngineError` when qmd has
        nothing at all to search in yet, `EngineBusy` when that is about to change.
        """
        if self.taken == wanted:
            if self._is_old():
                self._start(wanted)  # nobody has to wait for what has not changed
            return None
        deadline = time.monotonic() + wait_s
        while self.taken != wanted:
            job = self._start(wanted, announced=announced)
            if job is None:
                return self._missing(self._held_back())
            if not job.done.wait(max(0.0, deadline - time.monotonic())):
                return self._missing(STILL, EngineBusy)
            if job.error:
                return self._missing(f"qmd could not take in what changed on disk: {job.error}")
            if time.monotonic() > deadline and self.taken != wanted:  # it took in an earlier state
                return self._missing(STILL, EngineBusy)
        return None

    def _missing(self, sentence: str, kind: type[EngineError] = EngineError) -> str:
        if self.taken is None:
            raise kind(FIRST if kind is EngineBusy else sentence)
        return sentence

    def _held_back(self) -> str:
        if self._updates.error:
            return f"qmd's last update failed and is tried again later: {self._updates.error}"
        return "What changed within the last moment is not taken in yet."

    def _is_old(self) -> bool:
        ended, interval = self._updates.ended, self.schedule.interval_s
        return interval > 0 and ended is not None and self._clock() - ended >= interval

    # ---- the work ---------------------------------------------------------------------------------------------

    def run(self, wanted: str) -> Job:
        """Take everything in now, whatever the schedule says, and wait for it."""
        while True:
            job = self._start(wanted, announced=True, forced=True)
            assert job is not None
            job.done.wait()
            if job.forced:
                return job

    def _start(self, wanted: str, *, announced: bool = False, forced: bool = False) -> Job | None:
        """The update that runs, or a new one; None while it is held back."""
        with self._lock:
            if self._job is not None and not self._job.done.is_set():
                return self._job
            if not forced and self._clock() < self._not_before(announced):
                return None
            job = self._job = Job(wanted, forced)
            self._in_thread(lambda: self._work(job))
            return job

    def _not_before(self, announced: bool) -> float:
        ended = self._updates.ended
        if ended is None:
            return float("-inf")
        pause = 0.0 if announced else self.schedule.debounce_s
        return ended + max(pause, self.schedule.back_off(self._updates.failures))

    def _in_thread(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name="memoriter-qmd-upkeep", daemon=True)
        self._threads[:] = [one for one in self._threads if one.is_alive()]
        self._threads.append(thread)
        thread.start()

    def _work(self, job: Job) -> None:
        with cancellable(self._closing):
            try:
                with self._alone(self.schedule.update_timeout_s):
                    # Another process may have done it while we waited for its lock.
                    if job.forced or self.taken != job.wanted or self._is_old():
                        job.counts = self._update(self.schedule.update_timeout_s)
                        self._remember(job.wanted)
            except MemoriterError as error:
                job.error = error
            except Exception as error:  # noqa: BLE001  a thread's own mistake must reach those who wait for it
                job.error = EngineError(f"{type(error).__name__}: {error}")
            finally:
                self._note(self._updates, job.error)
                job.done.set()
            if job.error is None:
                self._embed_if_due(job.counts)

    def _embed_if_due(self, counts: Counts) -> None:
        trials = self._embeds
        pause = self.schedule.back_off(trials.failures) if trials.failures else self.schedule.embed_interval_s
        waiting = trials.ended is not None and self._clock() - trials.ended < pause
        if self._embed is None or (waiting and not (trials.failures == 0 and counts.new + counts.updated)):
            return
        error: MemoriterError | None = None
        try:
            with self._alone(self.schedule.embed_timeout_s):
                self._embed(self.schedule.embed_timeout_s)
        except MemoriterError as failed:
            error = failed
        self._note(trials, error)

    def _note(self, trials: _Trials, error: MemoriterError | None) -> None:
        trials.ended = self._clock()
        if isinstance(error, Cancelled):
            return
        if error is not None and trials.failures == 0:
            # Not a warning: the answer says what is missing, and a search that fails too is warned of elsewhere.
            log.info("qmd's upkeep failed and is tried again in %.0f s: %s", self.schedule.back_off(1), error)
        trials.failures = trials.failures + 1 if error else 0
        trials.error = str(error) if error else None

    @contextmanager
    def _alone(self, wait_s: float) -> Iterator[None]:
        """One update at a time, also among processes: two at once break qmd's index."""
        try:
            with file_lock(self._lock_file, wait_s, give_up=check_cancelled):
                yield
        except LockTimeout:
            raise EngineBusy("another process is updating qmd's index.") from None

    # ---- by itself --------------------------------------------------------------------------------------------

    def start(self, signature: Callable[[], str]) -> None:
        """Update now and then on the interval, until closed."""

        def tick() -> None:
            while True:
                with suppress(MemoriterError, OSError):
                    self.tick(signature())
                if self._closing.wait(self.schedule.interval_s or None):
                    return

        self._in_thread(tick)

    def tick(self, wanted: str) -> None:
        """What the interval does: an update, if something changed or the last one is old."""
        if self.taken != wanted or self._is_old():
            self._start(wanted)

    def close(self) -> None:
        """Stop what runs, and wait for its end."""
        _stop(self._closing, self._threads)


def _stop(closing: threading.Event, threads: list[threading.Thread]) -> None:
    closing.set()
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join(_END_S)
