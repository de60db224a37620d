"""A durable queue of sessions to process, oldest first: one small file for each request.

A request is removed after it was processed. If the process is killed before that, the request is processed again, so
handlers must be repeatable. Long sessions are processed in pieces, and other sessions get their turn between two
pieces. A request names a transcript and a size, and contains no text of the conversation. On a queue that machines
share, each processes the transcripts that it has.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from memoriter import logs
from memoriter.errors import LockTimeout
from memoriter.files import durable, shared
from memoriter.files.locks import file_lock, state_errors
from memoriter.files.state import as_record
from memoriter.text.redaction import clean_name

log = logs.get("sessions")

#: Requests that may be queued. More mean that nothing could be processed for days.
MAX_REQUESTS = 1_000
#: Requests older than this are dropped.
MAX_AGE_S = 14 * 24 * 3600.0
#: Age at which temporary files of killed writers are removed.
_TEMPORARY_AGE_S = 3600.0

_counter = itertools.count()


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """A request to process a session up to the size that its transcript had at that time."""

    event: str
    session: str
    transcript: str
    size: int
    project: str = ""
    at: float = 0.0
    branch: str = ""
    #: The machine that has the transcript. Machines may share a queue.
    host: str = field(default_factory=socket.gethostname)

    @property
    def is_elsewhere(self) -> bool:
        """Whether only another machine has the transcript."""
        return self.host != socket.gethostname() and not Path(self.transcript).exists()


RequestHandler = Callable[[SessionRequest], bool | None]
"""Process a request. Return False if it cannot be processed now, and None if a piece was processed and more is left."""


class SessionQueue:
    """The queued requests of one agent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = folder / "drain.lock"

    def add(self, request: SessionRequest) -> Path | None:
        """Add a request and return its file, which is on disk by then. Return None if the queue is full."""
        if len(self.pending()) >= MAX_REQUESTS:
            log.error("the queue %s is full (%d requests); a request was dropped", self.folder, MAX_REQUESTS)
            return None
        path = self.folder / f"{time.time_ns():020d}-{os.getpid()}-{next(_counter)}.json"
        with state_errors(self.folder):
            cleaned = replace(request, session=clean_name(request.session))
            durable.write(path, json.dumps(asdict(cleaned)).encode())
        return path

    def pending(self) -> list[Path]:
        """Return the files of all queued requests, oldest first."""
        shared.refresh(self.folder)
        try:
            paths = sorted(self.folder.iterdir())
        except OSError:
            return []
        return [path for path in paths if path.suffix == ".json" and path.name[:1].isdigit()]

    def drain(
        self,
        handle: RequestHandler,
        *,
        wait_s: float = 0.0,
        until: float | None = None,
        own: Path | None = None,
    ) -> int:
        """Process queued requests, oldest first, and return how many were finished.

        ``wait_s``: how long to wait for another process that drains the queue. After that, the work is left to it.
        ``own``: stop waiting as soon as the other process has finished this request.
        ``until``: stop at this time of the monotonic clock.
        A request that cannot be processed now stays queued, with all later requests of its session.
        """
        if not self.pending():
            return 0

        def is_finished() -> bool:
            return own is not None and not own.exists()

        with contextlib.suppress(LockTimeout), file_lock(self._lock, wait_s, give_up=is_finished):
            return self._drain(handle, until)
        return 0

    def _drain(self, handle: RequestHandler, until: float | None) -> int:
        finished, postponed, blocked = 0, set[Path](), set[str]()
        # Requests that were added in the meantime are processed too: their process may have left them to this one.
        while paths := [path for path in self.pending() if path not in postponed]:
            unfinished = set[str]()  # sessions with more pieces, which continue in the next round
            for path in paths:
                if until is not None and time.monotonic() >= until:
                    return finished
                result = self._process(path, handle, blocked, unfinished)
                finished += result is True
                if result is False:
                    postponed.add(path)
        durable.remove_temporary_files(self.folder, time.time() - _TEMPORARY_AGE_S)
        return finished

    def is_draining(self) -> bool:
        """Return whether a process is draining the queue now."""
        if not self.folder.is_dir():
            return False
        try:
            with file_lock(self._lock, 0.0):
                return False
        except LockTimeout:
            return True

    def _process(
        self, path: Path, handle: RequestHandler, blocked: set[str], unfinished: set[str]
    ) -> bool | None:
        """Process one file. Return True if it left the queue, False to postpone it, None if it continues."""
        request = None
        try:
            request = _read(path)
            if request is None or request.at < time.time() - MAX_AGE_S:
                log.warning("dropped an unreadable or outdated request: %s", path.name)
            elif request.session in blocked or request.is_elsewhere:
                return False
            elif request.session in unfinished:
                return None
            else:
                result = handle(request)
                if result is None:
                    unfinished.add(request.session)
                    return None
                if not result:
                    blocked.add(request.session)
                    return False
            with contextlib.suppress(FileNotFoundError):
                durable.remove(path)  # last, so that a killed process leaves the request in the queue
        except Exception as error:  # noqa: BLE001 - one broken session must not block the others
            if request is not None:
                blocked.add(request.session)
            log.warning("a session is processed later: %s: %s", type(error).__name__, error)
            return False
        return True


def _read(path: Path) -> SessionRequest | None:
    try:
        return as_record(SessionRequest, json.loads(path.read_bytes()))
    except (ValueError, RecursionError):
        return None
