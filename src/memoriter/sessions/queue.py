"""Sessions that wait to be heard, in the order in which they asked: one small file each, synced before it counts.

Whoever comes next drains the spool. A request goes only after it was done, so a kill in between means that it is done
again; what is done must therefore be fit to be repeated. One that takes long is done in pieces, and between two of them
every other session has its turn. Requests name a transcript and how far it went, so the spool holds no word of what was
said.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from memoriter import logs
from memoriter.errors import LockTimeout, MemoriterError
from memoriter.files import durable
from memoriter.files.locks import file_lock

log = logs.get("listening")

MAX_REQUESTS = 1_000  #: requests that may wait; by then nobody has been able to write for days
MAX_AGE_S = 14 * 24 * 3600.0  #: what could not be done for so long is given up

_counter = itertools.count()


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """A session asks to be heard up to where its transcript was then."""

    event: str
    session: str
    transcript: str
    size: int
    project: str = ""
    at: float = 0.0


Handler = Callable[[SessionRequest], bool | None]
"""Do what is asked; False when it could not be done now, None when a piece of it was done and there is more."""


class SessionQueue:
    """The requests of one agent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = folder / "drain.lock"

    def add(self, request: SessionRequest) -> Path | None:
        """Keep a request: its file, on the disk when this returns. None when too many wait already."""
        if len(self.waiting()) >= MAX_REQUESTS:
            log.error("%d requests wait in %s already; this one is not kept", MAX_REQUESTS, self.folder)
            return None
        path = self.folder / f"{time.time_ns():020d}-{os.getpid()}-{next(_counter)}.json"
        durable.write(path, json.dumps(asdict(request)).encode())
        return path

    def waiting(self) -> list[Path]:
        """The requests' files, oldest first."""
        try:
            paths = sorted(self.folder.iterdir())
        except OSError:
            return []
        return [path for path in paths if path.suffix == ".json" and path.name[:1].isdigit()]

    def drain(
        self, handle: Handler, *, wait_s: float = 0.0, until: float | None = None, own: Path | None = None
    ) -> int:
        """Do what waits, oldest first, until a point of the monotonic clock; how many were done.

        Another process that drains is waited for so long, then left to it; ``own``: only until it has done this one.
        What cannot be done now is left for later, with all that its session asked after that.
        """
        if not self.waiting():
            return 0

        def is_done() -> bool:
            return own is not None and not own.exists()

        with contextlib.suppress(LockTimeout), file_lock(self._lock, wait_s, give_up=is_done):
            return self._drain(handle, until)
        return 0

    def _drain(self, handle: Handler, until: float | None) -> int:
        done, left, stuck = 0, set[Path](), set[str]()
        # What was added meanwhile is taken along: its process may have left it to us.
        while paths := [path for path in self.waiting() if path not in left]:
            unfinished = set[str]()  # sessions of which there is more: the next round goes on with them
            for path in paths:
                if until is not None and time.monotonic() >= until:
                    return done
                ended = self._one(path, handle, stuck, unfinished)
                done += ended is True
                if ended is False:
                    left.add(path)
        durable.remove_temporary_files(self.folder, time.time() - 3600)
        return done

    def is_drained(self) -> bool:
        """Whether somebody hears what waits just now."""
        if not self.folder.is_dir():
            return False
        try:
            with file_lock(self._lock, 0.0):
                return False
        except LockTimeout:
            return True

    def _one(self, path: Path, handle: Handler, stuck: set[str], unfinished: set[str]) -> bool | None:
        """Whether the request of this file needs to wait no more; None: its turn comes again."""
        request = None
        try:
            request = _read(path)
            if request is None or request.at < time.time() - MAX_AGE_S:
                log.warning("a request that cannot be done any more is dropped: %s", path.name)
            elif request.session in stuck:
                return False
            elif request.session in unfinished:
                return None
            else:
                ended = handle(request)
                if ended is None:
                    unfinished.add(request.session)
                    return None
                if not ended:
                    stuck.add(request.session)
                    return False
            path.unlink(missing_ok=True)  # only now: a kill before this means that it is done once more
        except Exception as error:  # noqa: BLE001 - one session that cannot be heard must not hold up the others
            if request is not None:
                stuck.add(request.session)
            said = (
                error if isinstance(error, MemoriterError | OSError) else f"{type(error).__name__}: {error}"
            )
            log.warning("a session waits to be heard later: %s", said)
            return False
        return True


def _read(path: Path) -> SessionRequest | None:
    try:
        request = SessionRequest(**json.loads(path.read_bytes()))
    except (ValueError, TypeError, RecursionError):
        return None
    texts = (request.event, request.session, request.transcript, request.project)
    numbers = (request.size, request.at)
    usable = all(isinstance(text, str) for text in texts) and all(isinstance(n, int | float) for n in numbers)
    return request if usable else None
