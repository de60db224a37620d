"""The rows of one agent on a Postgres server, read and written as an SQLite database is.

Every transaction sets the tenant and the agent, so that row-level security shows only their rows. Statements name
neither. Writers of one agent wait for each other, as writers of one SQLite file do. Other agents do not wait.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import psycopg
from psycopg import sql

from memoriter.errors import StoreBroken, StoreError, StoreLocked
from memoriter.extensions.postgres.connection import PostgresConnection, PostgresReads, translate_errors
from memoriter.extensions.postgres.schema import AREA_TABLES
from memoriter.extensions.postgres.server import SCHEMA, PostgresServer, lock_number, roll_back
from memoriter.store.connection import translate_values
from memoriter.store.protocol import Traces, Transactions

DEFAULT_TENANT = "default"
STATEMENT_TIMEOUT_MS = 60_000
#: A transaction that does nothing for this long has lost its process.
IDLE_TIMEOUT_MS = 300_000


class PostgresDatabase(Transactions):
    """One agent's part of a server: transactions for its rows.

    ``area`` names the lock of writers: databases with different areas do not wait for each other.
    """

    traces = Traces("forget.dead_rows", "forget.busy_rows", ("forget.server_logs", "forget.replicas"))

    def __init__(
        self, server: PostgresServer, *, agent: str, tenant: str = DEFAULT_TENANT, area: str = "entries"
    ) -> None:
        self._tables = AREA_TABLES.get(area, ())
        self.server = server
        self.name = server.name
        self.tenant, self.agent = tenant, agent
        settings = {
            "role": server.role,
            "search_path": f"{SCHEMA}, public",
            "statement_timeout": str(STATEMENT_TIMEOUT_MS),
            "lock_timeout": str(int(server.timeout_s * 1000)),
            "idle_in_transaction_session_timeout": str(IDLE_TIMEOUT_MS),
            # The server plans a statement once. Its estimates would make it plan some of them again for each search,
            # or compile them, and both take longer than the statement.
            "plan_cache_mode": "force_generic_plan",
            "jit": "off",
        }
        owner = {"memoriter.tenant": tenant, "memoriter.agent": agent}
        self._settings = _setting({**settings, **owner})
        # A connection prepares this statement once for all agents.
        numbered = ", ".join(f"set_config('{key}', ${at}, true)" for at, key in enumerate(owner, start=1))
        self._read_settings = (
            f"{_setting({**settings, 'transaction_read_only': 'on'})}, {numbered}",
            tuple(owner.values()),
        )
        self._lock = f"select pg_advisory_xact_lock({lock_number(tenant, agent, area)})"
        self._local = threading.local()  # .reader: the connection of this thread's snapshot
        self._write_lock = threading.Lock()
        self._writer: PostgresConnection | None = None
        self._owner: int | None = None  # the thread whose write transaction is open
        self._failed = False  # a part of the open transaction failed
        self._closed = False
        server.use()

    # ---- reading ---------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def read(self) -> Iterator[PostgresConnection]:
        """Return a connection for reading. Inside ``write()`` it is the writer, to see its changes.

        Each statement sees what is committed when it starts. `snapshot` shows all of them one state.
        """
        joined = self._joined()
        if joined is not None:
            with self._errors(), translate_values(self.name, StoreBroken):
                yield joined
            return
        self._check_open()
        with self._errors(), translate_values(self.name, StoreBroken):
            yield PostgresReads(partial(self.server.ask, self._read_settings))

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[PostgresConnection]:
        with self.pinned(), self.read() as connection:
            yield connection

    @contextlib.contextmanager
    def pinned(self) -> Iterator[None]:
        if self._joined() is not None:
            yield
            return
        with self._transaction("begin isolation level repeatable read read only") as connection:
            connection.memo = {}
            self._local.reader = connection
            try:
                yield
            finally:
                self._local.reader = None

    def _joined(self) -> PostgresConnection | None:
        """Return the connection of this thread's open transaction, if it has one."""
        if self._owner == threading.get_ident():
            return self._writer
        return getattr(self._local, "reader", None)

    # ---- writing ---------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def write(self, wait_s: float | None = None) -> Iterator[PostgresConnection]:
        if self._owner == threading.get_ident():
            assert self._writer is not None
            try:
                with self._errors():
                    yield self._writer
            except BaseException:
                self._failed = True  # as in SQLite: a failed part fails the whole transaction
                raise
            return
        limit = () if wait_s is None else (_setting({"lock_timeout": str(max(1, int(wait_s * 1000)))}),)
        wait_s = self.server.timeout_s if wait_s is None else wait_s
        if not self._write_lock.acquire(timeout=wait_s):
            raise StoreLocked(f"Another thread has been writing to {self.name} for {wait_s:g} s. Try again.")
        try:
            with self._transaction("begin", *limit, self._lock) as connection:
                self._writer, self._owner, self._failed = connection, threading.get_ident(), False
                try:
                    yield connection
                    if self._failed:
                        raise StoreError(
                            f"Nothing was written to {self.name}, because a part of the transaction failed."
                        )
                finally:
                    self._writer, self._owner = None, None
        finally:
            self._write_lock.release()

    # ---- erasing and checking --------------------------------------------------------------------------------

    def purge(self) -> bool:
        """Let the server remove the dead rows of this area's tables. Return False while others may still read them.

        The free space that they leave in the files is not overwritten before it is used again.
        """
        if self._owner == threading.get_ident():
            raise StoreError(f"The dead rows of {self.name} cannot be removed inside a transaction.")
        from memoriter.extensions.postgres.vacuum import vacuum

        return vacuum(self, self._tables)

    def check(self, *, deep: bool = False) -> list[str]:  # noqa: ARG002 - the server checks its pages
        """Return why the database cannot be read, one sentence each. The server itself detects damage."""
        try:
            with self.read() as connection:
                connection.execute("select 1")
        except StoreError as error:
            return [str(error)]
        return []

    # ---- transactions ----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _transaction(self, begin: str, *then: str) -> Iterator[PostgresConnection]:
        self._check_open()
        prologue = "; ".join((begin, self._settings, *then))
        with self._errors(), self.server.begin(prologue) as raw:
            try:
                yield PostgresConnection(raw)
                _commit(raw)
            except BaseException:
                roll_back(raw)
                raise

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.name} is closed.")

    def _errors(self) -> contextlib.AbstractContextManager[None]:
        return translate_errors(self.name)

    def close(self) -> None:
        """End the use of the database. The server closes its connections after the last database."""
        if not self._closed:
            self._closed = True
            self.server.release()


def _setting(values: Mapping[str, str]) -> str:
    """Return the statement that gives settings these values for one transaction."""
    local = (sql.SQL("set_config({}, {}, true)").format(key, value) for key, value in values.items())
    return sql.SQL("select {}").format(sql.SQL(", ").join(local)).as_string()


def _commit(connection: psycopg.Connection[Any]) -> None:
    """Commit. Postgres answers a commit of a failed transaction with a rollback."""
    result = connection.execute("commit")
    if result.statusmessage != "COMMIT":
        raise StoreError("Nothing was written, because a statement of the transaction failed.")
