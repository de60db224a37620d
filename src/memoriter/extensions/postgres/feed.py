"""Changes on a server, as they happen: one connection of each process listens to notifications.

A notification only says that something changed. It may be missed while the connection is lost, so subscribers are also
called at intervals, and after each new connection.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import psycopg

from memoriter import logs
from memoriter.errors import MemoriterError
from memoriter.extensions.postgres.connection import translate_errors
from memoriter.extensions.postgres.files import CHANNEL, parse_announcement

if TYPE_CHECKING:
    from memoriter.extensions.postgres.server import PostgresServer

log = logs.get("store")

#: How often subscribers look for changes without a notification.
POLL_S = 30.0
#: Pause before another attempt to connect.
RETRY_S = 1.0

OnChange = Callable[[], None]


class ChangeFeed:
    """The changes on one server. The thread runs while there are subscribers."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._mutex = threading.Lock()
        self._subscribers: dict[object, tuple[str, str, OnChange]] = {}
        self._stop: threading.Event | None = None

    def subscribe(self, tenant: str, agent: str, on_change: OnChange) -> Callable[[], None]:
        """Call a function after every change of an agent, and once now. Return a function that ends this.

        The thread of the feed calls it after changes, and the caller's thread now if the feed listens already: then
        no change is lost that was made before.
        """
        key = object()
        with self._mutex:
            self._subscribers[key] = tenant, agent, on_change
            is_new = self._stop is None
            if self._stop is None:
                self._stop = threading.Event()
                threading.Thread(
                    target=self._run, args=(self._stop,), name="memoriter-feed", daemon=True
                ).start()
        if not is_new:
            self._notify([(tenant, agent, on_change)])

        def end() -> None:
            with self._mutex:
                self._subscribers.pop(key, None)
                if not self._subscribers and self._stop is not None:
                    self._stop.set()
                    self._stop = None

        return end

    def _run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                with (
                    contextlib.closing(self._server.connect()) as connection,
                    translate_errors(self._server.name),
                ):
                    connection.execute(f"listen {CHANNEL}")
                    self._call()
                    self._listen(connection, stop)
            except MemoriterError as error:
                log.info("no notifications at the moment, so changes are looked for at intervals: %s", error)
                self._call()
                stop.wait(RETRY_S)

    def _listen(self, connection: psycopg.Connection[Any], stop: threading.Event) -> None:
        while not stop.is_set():
            received = list(connection.notifies(timeout=POLL_S, stop_after=1))
            if not received:
                self._call()
            for notification in received:
                with contextlib.suppress(ValueError):
                    tenant, agent, _ = parse_announcement(notification.payload)
                    self._call(tenant, agent)

    def _call(self, tenant: str | None = None, agent: str | None = None) -> None:
        with self._mutex:
            subscribers = list(self._subscribers.values())
        self._notify([one for one in subscribers if tenant is None or (tenant, agent) == one[:2]])

    def _notify(self, subscribers: Iterable[tuple[str, str, OnChange]]) -> None:
        for _, agent, on_change in subscribers:
            try:
                on_change()
            except MemoriterError as error:
                log.info("changes of agent %s cannot be fetched: %s", agent, error)
            except Exception:
                log.exception("a subscriber to changes failed")
