"""Updates of qmd's index: one update at a time, soon after a change, on an interval, less often when it fails.

A signature of the files' stats shows whether something changed. The signature of the last update is kept in a file,
so that a new process knows whether there is work without starting qmd.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from memoriter import logs
from memoriter.background import Rejected, Task, Workers, check_cancelled
from memoriter.errors import Cancelled, EngineBusy, EngineError, LockTimeout, MemoriterError
from memoriter.extensions.qmd.command import UpdateCounts
from memoriter.extensions.qmd.fallback import Cooldown
from memoriter.files.locks import file_lock
from memoriter.files.state import read_state, write_state

log = logs.get("engines")

STILL_INDEXING = "qmd is still indexing recent changes."
FIRST_INDEX = "qmd is still building its first index. Run `memoriter index` to wait for it."

#: How long closing waits for running updates, in seconds. Their programs are killed immediately.
CLOSE_S = 5.0

#: An update, an embedding and a check of the interval may run at the same time.
THREADS = 3


@dataclass(frozen=True, slots=True)
class UpdateSchedule:
    """Intervals and time limits of qmd's updates, in seconds."""

    #: Update at least this often. 0 means only after changes.
    interval_s: float = 300.0
    #: The pause between the end of one update and the start of the next.
    debounce_s: float = 1.0
    #: How long a search waits for files that were just written.
    wait_s: float = 2.0
    update_timeout_s: float = 120.0
    embed_interval_s: float = 3600.0
    embed_timeout_s: float = 600.0
    #: The pause after failures.
    back_off: Cooldown = field(default=Cooldown(60.0, 3600.0))


@dataclass(frozen=True, slots=True)
class Update:
    """One update, running or finished."""

    #: The signature of the files that it indexes.
    signature: str
    task: Task[UpdateCounts]
    forced: bool = False

    @property
    def counts(self) -> UpdateCounts:
        """The changes that a finished update made."""
        return UpdateCounts() if self.error else self.task.result()

    @property
    def error(self) -> BaseException | None:
        """The error of a failed update."""
        return Cancelled("qmd was closed.") if self.task.cancelled() else self.task.exception()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the update has finished. Return False when the time is up."""
        return bool(wait([self.task], timeout_s).done)


@dataclass(slots=True)
class _Attempts:
    """The latest results of one kind of work."""

    last_at: float | None = None
    failures: int = 0
    error: str | None = None


class Updater:
    """Runs the updates and embeddings of one agent's qmd."""

    def __init__(
        self,
        folder: Path,
        update: Callable[[float], UpdateCounts],
        embed: Callable[[float], None] | None = None,
        schedule: UpdateSchedule | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.schedule = schedule or UpdateSchedule()
        self._state = folder / "state.json"
        self._lock_file = folder / "update.lock"
        self._run_update = update
        self._run_embed = embed
        self._clock = clock
        self._lock = threading.Lock()
        self._last: Update | None = None
        self._embedding: Task[None] | None = None
        self._updates, self._embeds = _Attempts(), _Attempts()
        self._workers = Workers("memoriter-qmd", threads=THREADS, keep=True)
        # A program that exits without closing this object must not leave a qmd process behind.
        weakref.finalize(self, self._workers.close, CLOSE_S, cancel=True)

    # ---- the last update --------------------------------------------------------------------------------------

    @property
    def indexed(self) -> str | None:
        """The signature of the last update, or None before the first."""
        signature = read_state(self._state).get("signature")
        return signature if isinstance(signature, str) else None

    @property
    def indexed_at(self) -> float | None:
        """The time of the last update, in seconds since the epoch."""
        at = read_state(self._state).get("at")
        return float(at) if isinstance(at, int | float) else None

    @property
    def error(self) -> str | None:
        """The error of the last update, or else of the last embedding."""
        return self._updates.error or self._embeds.error

    def forget(self) -> None:
        """Make the next update index everything again."""
        self._state.unlink(missing_ok=True)

    # ---- before a search --------------------------------------------------------------------------------------

    def catch_up(self, signature: str, *, wait_s: float, marked: bool = False) -> str | None:
        """Index the files with this signature. Return a sentence about what is missing when the time is up.

        The debounce does not delay a marked change. Raises `EngineError` if qmd has no index yet, and `EngineBusy`
        if it is building the first one.
        """
        if self.indexed == signature:
            if self._is_old():
                self._start(signature)  # nothing changed, so the search does not wait
            return None
        deadline = time.monotonic() + wait_s
        while self.indexed != signature:
            update = self._start(signature, marked=marked)
            if update is None:
                return self._missing(self._held_back())
            if not update.wait(max(0.0, deadline - time.monotonic())):
                return self._missing(STILL_INDEXING, EngineBusy)
            if update.error:
                return self._missing(f"qmd could not index recent changes: {update.error}")
            if time.monotonic() > deadline and self.indexed != signature:  # it indexed an earlier state
                return self._missing(STILL_INDEXING, EngineBusy)
        return None

    def _missing(self, sentence: str, kind: type[EngineError] = EngineError) -> str:
        if self.indexed is None:
            raise kind(FIRST_INDEX if kind is EngineBusy else sentence)
        return sentence

    def _held_back(self) -> str:
        if self._updates.error:
            return f"The last update of qmd failed and will be retried: {self._updates.error}"
        return "The most recent changes are not indexed yet."

    def _is_old(self) -> bool:
        last_at, interval = self._updates.last_at, self.schedule.interval_s
        return interval > 0 and last_at is not None and self._clock() - last_at >= interval

    # ---- updates ----------------------------------------------------------------------------------------------

    def run(self, signature: str) -> Update:
        """Update now, whatever the schedule says, and wait for the end."""
        while True:
            update = self._start(signature, marked=True, forced=True)
            assert update is not None
            update.wait()
            if update.forced:
                return update

    def _start(self, signature: str, *, marked: bool = False, forced: bool = False) -> Update | None:
        """Return the running update or a new one, or None if the schedule delays it."""
        with self._lock:
            if self._last is not None and not self._last.task.done():
                return self._last
            if not forced and self._clock() < self._earliest(marked):
                return None
            try:
                task = self._workers.submit(lambda: self._update(signature, forced))
            except Rejected as error:
                raise EngineError("qmd was closed.") from error
            self._last = Update(signature, task, forced)
            return self._last

    def _earliest(self, marked: bool) -> float:
        last_at = self._updates.last_at
        if last_at is None:
            return float("-inf")
        pause = 0.0 if marked else self.schedule.debounce_s
        return last_at + max(pause, self.schedule.back_off.after(self._updates.failures))

    def _update(self, signature: str, forced: bool) -> UpdateCounts:
        error: MemoriterError | None = None
        counts = UpdateCounts()
        try:
            with self._locked(self.schedule.update_timeout_s):
                # Another process may have updated while this one waited for the lock.
                if forced or self.indexed != signature or self._is_old():
                    counts = self._run_update(self.schedule.update_timeout_s)
                    write_state(self._state, {"signature": signature, "at": time.time()})
        except MemoriterError as failure:
            error = failure
        except Exception as failure:  # noqa: BLE001 - the search that waits must get the error
            error = EngineError(f"{type(failure).__name__}: {failure}")
        self._record(self._updates, error)
        if error is not None:
            raise error
        with suppress(Rejected):
            self._embedding = self._workers.submit(lambda: self._embed_if_due(counts))
        return counts

    def _embed_if_due(self, counts: UpdateCounts) -> None:
        attempts = self._embeds
        failed = attempts.failures > 0
        pause = self.schedule.back_off.after(attempts.failures) if failed else self.schedule.embed_interval_s
        too_soon = attempts.last_at is not None and self._clock() - attempts.last_at < pause
        has_new = not failed and counts.new + counts.updated > 0
        if self._run_embed is None or (too_soon and not has_new):
            return
        error: MemoriterError | None = None
        try:
            with self._locked(self.schedule.embed_timeout_s):
                self._run_embed(self.schedule.embed_timeout_s)
        except MemoriterError as failure:
            error = failure
        self._record(attempts, error)

    def wait_for_embedding(self, timeout_s: float) -> None:
        """Wait until the embedding that followed the last update has ended."""
        if self._embedding is not None:
            wait([self._embedding], timeout_s)

    def _record(self, attempts: _Attempts, error: MemoriterError | None) -> None:
        attempts.last_at = self._clock()
        if isinstance(error, Cancelled):
            return
        if error is not None and attempts.failures == 0:
            # Not a warning: the answer says what is missing, and a search that fails logs a warning.
            log.info("qmd failed and will be retried in %.0f s: %s", self.schedule.back_off.after(1), error)
        attempts.failures = attempts.failures + 1 if error else 0
        attempts.error = str(error) if error else None

    @contextmanager
    def _locked(self, wait_s: float) -> Iterator[None]:
        """Allow one update at a time, also among processes. Concurrent updates damage qmd's index."""
        try:
            with file_lock(self._lock_file, wait_s, give_up=check_cancelled):
                yield
        except LockTimeout:
            raise EngineBusy("Another process is updating the index of qmd.") from None

    # ---- in the background ------------------------------------------------------------------------------------

    def start(self, signature: Callable[[], str]) -> None:
        """Update on the interval until closed."""

        def tick() -> None:
            with suppress(MemoriterError, OSError):
                self.tick(signature())
            if self.schedule.interval_s:
                with suppress(Rejected):
                    self._workers.submit(tick, delay_s=self.schedule.interval_s)

        with suppress(Rejected):
            self._workers.submit(tick)

    def tick(self, signature: str) -> None:
        """Update if something changed or the last update is old."""
        if self.indexed != signature or self._is_old():
            self._start(signature)

    def close(self) -> None:
        """Stop what is running, and wait for its end."""
        self._workers.close(CLOSE_S, cancel=True)
