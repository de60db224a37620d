"""Advisory locks of a server, held across transactions by one connection for each process.

The server releases them when the connection is lost, so a process that dies blocks none of the others.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import psycopg

from memoriter.errors import LockTimeout
from memoriter.extensions.postgres.connection import translate_errors

if TYPE_CHECKING:
    from memoriter.extensions.postgres.server import PostgresServer

#: The first and the longest pause between two attempts. Each asks the server.
FIRST_PAUSE_S, MAX_PAUSE_S = 0.01, 0.2


class AdvisoryLocks:
    """The locks that this process holds on one server. A lock belongs to the process, not to a thread."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._mutex = threading.Lock()
        self._connection: psycopg.Connection[Any] | None = None
        self._held = set[int]()

    @contextlib.contextmanager
    def hold(self, number: int, wait_s: float, place: str) -> Iterator[None]:
        """Hold a lock. Raise `LockTimeout` if another process or thread still holds it after this time."""
        end, pause = time.monotonic() + wait_s, FIRST_PAUSE_S
        while not self.try_lock(number):
            left = end - time.monotonic()
            if left <= 0:
                waited = f"has held the lock of {place} for {wait_s:g} s" if wait_s > 0 else f"uses {place}"
                raise LockTimeout(f"Another process {waited}. Try again later.")
            time.sleep(min(pause, left))
            pause = min(2 * pause, MAX_PAUSE_S)
        try:
            yield
        finally:
            self.unlock(number)

    def try_lock(self, number: int) -> bool:
        """Try to take a lock. Return False if another process or another thread holds it."""
        with self._mutex, translate_errors(self._server.name):
            connection = self._connected()
            if number in self._held:
                return False
            row = connection.execute("select pg_try_advisory_lock(%s)", (number,)).fetchone()
            is_locked = bool(row and row[0])
            if is_locked:
                self._held.add(number)
            return is_locked

    def unlock(self, number: int) -> None:
        """Release a lock. A lost connection has released it already."""
        with self._mutex:
            if number not in self._held:
                return
            self._held.discard(number)
            connection = self._connection
            if connection is not None and not connection.closed:
                with contextlib.suppress(psycopg.Error):
                    connection.execute("select pg_advisory_unlock(%s)", (number,))
            if not self._held:
                self._close()

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._held.clear()
            self._connection = self._server.connect()
        return self._connection

    def _close(self) -> None:
        """Close the connection. A process without locks costs the server none."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()
