"""A pool of connections to one Postgres server.

A lost server is reported at once. The pool of psycopg would let every caller wait until its own retries succeed, and
search could not answer without the server meanwhile.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from memoriter.errors import StoreLocked

#: An idle connection is closed after this time, when another one is returned.
MAX_IDLE_S = 300.0


def _as_sentence(record: logging.LogRecord) -> bool:
    """Say what the driver reports when a server ends: it prints the state of its objects."""
    record.msg, record.args = "A connection to the Postgres server was lost while it was in use.", ()
    return True


logging.getLogger("psycopg").addFilter(_as_sentence)


class Pool:
    """At most ``size`` connections. Idle ones are reused, the last one returned first."""

    def __init__(
        self, connect: Callable[[], psycopg.Connection[Any]], *, size: int, timeout_s: float
    ) -> None:
        self._connect = connect
        self._size = size
        self._timeout_s = timeout_s
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._slots = threading.BoundedSemaphore(self._size)
        self._idle: list[tuple[psycopg.Connection[Any], float]] = []
        self._lock = threading.Lock()

    def take(self) -> tuple[psycopg.Connection[Any], bool]:
        """Return a connection, and whether it is a new one. Raises the errors of psycopg."""
        if self._pid != os.getpid():
            self._inherited = self._idle  # a fork: the parent uses these connections, so they are not closed
            self._reset()
        if not self._slots.acquire(timeout=self._timeout_s):
            raise StoreLocked(
                f"All {self._size} connections to Postgres are in use for {self._timeout_s:g} s. Try again, or "
                "raise `store.connections`."
            )
        try:
            with self._lock:
                if self._idle:
                    return self._idle.pop()[0], False
            return self._connect(), True
        except BaseException:
            self._slots.release()
            raise

    def give(self, connection: psycopg.Connection[Any]) -> None:
        """Return a connection. One that is broken or inside a transaction is closed."""
        now = time.monotonic()
        reusable = not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
        with self._lock:
            expired = [old for old, since in self._idle if now - since > MAX_IDLE_S]
            self._idle = [(idle, since) for idle, since in self._idle if idle not in expired]
            if reusable:
                self._idle.append((connection, now))
        self._slots.release()
        for old in expired if reusable else (*expired, connection):
            _close(old)

    def discard_idle(self) -> None:
        """Close the idle connections, for example because the server has restarted."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            _close(connection)


def _close(connection: psycopg.Connection[Any]) -> None:
    with contextlib.suppress(psycopg.Error):
        connection.close()
