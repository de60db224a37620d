"""Work that is done a little later, once for all who asked meanwhile; at the latest when it is closed.

It knows nothing of what the work is, but that it may have to be done again.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable

DELAY_S = 2.0  #: from the first who asks until the work is done
LONGEST_S = 60.0  #: the same, while it cannot be done
SHARE = 20  #: work that takes long waits so many times as long, and is but a small share of the time


class Later:
    """One piece of work, on a thread of its own; ``work`` says whether it was done. What it raises counts as not."""

    def __init__(self, work: Callable[[], bool], *, delay_s: float = DELAY_S) -> None:
        self._work = work
        self._delay_s = self._wait_s = delay_s
        self._closed = False
        self.begin_anew()
        _open.add(self)

    def begin_anew(self) -> None:
        """As if nobody had asked. A fork has the locks that others held, and not the threads that would let go."""
        self._lock = threading.Lock()  #: over the fields
        self._working = threading.Lock()  #: over the work: it is done once at a time
        self._timer: threading.Timer | None = None

    @property
    def waiting(self) -> bool:
        """Whether somebody has asked, and the work has not begun."""
        return self._timer is not None

    def ask(self) -> None:
        """Let it be done soon."""
        with self._lock:
            if self._timer is None and not self._closed:
                self._timer = threading.Timer(self._wait_s, self.now)
                self._timer.name, self._timer.daemon = "memoriter-later", True
                self._timer.start()

    def now(self) -> None:
        """Do it now, if somebody has asked; what is under way is waited for."""
        with self._working:
            with self._lock:
                timer, self._timer = self._timer, None
            if timer is None:
                return
            timer.cancel()
            began, done = time.monotonic(), False
            try:
                done = self._work()
            finally:
                took = time.monotonic() - began
                self._wait_s = max(self._delay_s, SHARE * took) if done else min(LONGEST_S, 2 * self._wait_s)
                if not done:
                    self.ask()

    def close(self) -> None:
        """Do what waits; nothing can be asked any more."""
        with self._lock:
            self._closed = True
        self.now()


_open: weakref.WeakSet[Later] = weakref.WeakSet()


def _forked() -> None:
    for later in list(_open):
        later.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


@atexit.register
def _close_all() -> None:
    """A program that closes nothing ends with the work done."""
    for later in list(_open):
        with contextlib.suppress(Exception):  # nobody is left to be told, and the next opening does it
            later.close()
