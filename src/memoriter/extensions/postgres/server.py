"""One Postgres server: its address, a pool of connections, and the schema, checked and migrated."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg import conninfo, errors, sql

from memoriter.errors import ConfigError, SchemaTooNew, StoreError, StoreUnavailable
from memoriter.extensions.postgres.connection import (
    Rows,
    TextDumper,
    ask,
    connection_problem,
    translate_errors,
)
from memoriter.extensions.postgres.feed import ChangeFeed
from memoriter.extensions.postgres.locks import AdvisoryLocks
from memoriter.extensions.postgres.pool import Pool
from memoriter.extensions.postgres.schema import MIGRATIONS

T = TypeVar("T")

SCHEMA = "memoriter"
#: The role of transactions if the role of the URL could bypass row-level security.
AGENT_ROLE = "memoriter_agent"
MIN_SERVER = 16
MIN_VECTOR = (0, 8)

CONNECT_TIMEOUT_S = 5
#: The most statements that a connection keeps prepared. The package has fewer.
PREPARED_STATEMENTS = 500
_lock, _opening = threading.Lock(), threading.Lock()
_DEFAULTS = {"application_name": "memoriter", "connect_timeout": CONNECT_TIMEOUT_S, "keepalives_idle": 30}


@dataclass(frozen=True, slots=True)
class Standing:
    """Facts about a server and the role of its URL."""

    server: int
    is_replica: bool
    role: str
    #: The role could bypass row-level security.
    bypasses: bool
    #: The installed version of pgvector, or else the one that can be installed. None: there is none.
    vector: str | None
    has_vector: bool


def lock_number(*names: str) -> int:
    """Return the number of the advisory lock with these names."""
    digest = hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


class PostgresServer:
    """A server that holds the schema of this release. Safe to use from several threads and after a fork."""

    def __init__(self, url: str, *, connections: int = 16, timeout_s: float = 30.0) -> None:
        self._parameters = parse(url)
        self.name = server_name(self._parameters)
        self.timeout_s = timeout_s
        self._users = 0
        #: The advisory locks of this process, and the changes that others announce.
        self.locks, self.feed = AdvisoryLocks(self), ChangeFeed(self)
        self._pool = Pool(self.connect, size=connections, timeout_s=timeout_s)
        with contextlib.closing(self.connect()) as connection, translate_errors(self.name):
            standing = read_standing(connection)
            check_standing(standing, self.name)
            self._migrate(connection, standing)
        #: The role of transactions.
        self.role = AGENT_ROLE if standing.bypasses else standing.role

    def connect(self) -> psycopg.Connection[Any]:
        """Open a new connection, outside the pool. It commits every statement."""
        try:
            connection = psycopg.connect(**self._parameters, autocommit=True)
        except psycopg.Error as error:
            raise StoreUnavailable(f"{self.name} cannot be reached: {connection_problem(error)}.") from error
        connection.adapters.register_dumper(str, TextDumper)
        connection.prepared_max = PREPARED_STATEMENTS
        return connection

    @contextlib.contextmanager
    def begin(self, prologue: str) -> Iterator[psycopg.Connection[Any]]:
        """Borrow a connection from the pool and begin a transaction with these statements."""
        connection, _ = self._first(lambda taken: taken.execute(prologue.encode()))
        try:
            yield connection
        finally:
            self._pool.give(connection)

    def ask(self, settings: tuple[str, Sequence[str]], statement: str, bound: Any, **how: bool) -> Rows:
        """Run one statement that only reads, with these settings, in one round trip."""
        connection, rows = self._first(lambda taken: ask(taken, settings, statement, bound, **how))
        self._pool.give(connection)
        return rows

    def _first(self, work: Callable[[psycopg.Connection[Any]], T]) -> tuple[psycopg.Connection[Any], T]:
        """Borrow a connection and do the first work with it. Return both.

        The server may have restarted since a connection was last used. Then a new connection is opened.
        """
        while True:
            connection, is_new = self._pool.take()
            try:
                return connection, work(connection)
            except BaseException as error:
                is_lost = connection.closed
                if not is_lost:
                    roll_back(connection)
                self._pool.give(connection)
                if is_new or not is_lost or not isinstance(error, psycopg.Error):
                    raise
                self._pool.discard_idle()

    def use(self) -> None:
        """Count one more database that uses the connections."""
        with _lock:
            self._users += 1

    def release(self) -> None:
        """Count one database less. Without any, the idle connections are closed."""
        with _lock:
            self._users -= 1
            unused = self._users <= 0
        if unused:
            self._pool.discard_idle()

    # ---- schema ----------------------------------------------------------------------------------------------

    def _migrate(self, connection: psycopg.Connection[Any], standing: Standing) -> None:
        """Create or extend the schema in one transaction, unless it is current."""
        applied = _applied(connection, self.name)
        granted = not standing.bypasses or _is_granted(connection)  # a dump does not contain the role
        if granted and applied.issuperset(step.name for step in MIGRATIONS):
            return
        if not standing.has_vector:
            self._add_vector(connection, standing)
        with connection.transaction():
            connection.execute("select pg_advisory_xact_lock(%s)", (lock_number(SCHEMA),))
            connection.execute(sql.SQL("create schema if not exists {}").format(sql.Identifier(SCHEMA)))
            connection.execute(f"set local search_path = {SCHEMA}, public")
            connection.execute(
                "create table if not exists migrations(name text primary key, breaks_older boolean not null,"
                " at timestamptz not null default now())"
            )
            applied = _applied(connection, self.name)  # another gateway may have migrated meanwhile
            for step in MIGRATIONS:
                if step.name not in applied:
                    for statement in step.statements:
                        connection.execute(statement.encode())
                    connection.execute(
                        "insert into migrations(name, breaks_older) values(%s, %s)",
                        (step.name, step.breaks_older),
                    )
            if standing.bypasses:
                _grant(connection, standing.role)

    def _add_vector(self, connection: psycopg.Connection[Any], standing: Standing) -> None:
        try:
            with connection.transaction():  # two gateways that start at once would both create it
                connection.execute("select pg_advisory_xact_lock(%s)", (lock_number(SCHEMA),))
                connection.execute("create extension if not exists vector")
        except errors.InsufficientPrivilege as error:
            raise StoreError(
                f"{self.name} has no extension `vector` yet, and the role {standing.role} may not create it. "
                "Run `create extension vector` as an administrator."
            ) from error


_open: dict[tuple[str, int], PostgresServer] = {}


def open_server(url: str, *, connections: int = 16) -> PostgresServer:
    """Return the server at this URL. Memories of one process share it and its connections."""
    with _opening:
        server = _open.get((url, connections))
        if server is None:
            server = _open[url, connections] = PostgresServer(url, connections=connections)
        return server


def parse(url: str) -> dict[str, Any]:
    """Return the parameters of a connection. An error does not repeat the URL, which may contain a password."""
    try:
        found = conninfo.conninfo_to_dict(url)
    except psycopg.Error as error:
        raise ConfigError(
            "`store.url` is not a URL of Postgres. Write it as postgresql://user:password@host:5432/database, "
            "with special characters percent-encoded."
        ) from error
    several = {"target_session_attrs": "read-write"} if "," in str(found.get("host") or "") else {}
    return {**_DEFAULTS, **several, **{key: value for key, value in found.items() if value is not None}}


def server_name(parameters: dict[str, Any]) -> str:
    """Return a name for messages, without the password."""
    host = str(parameters.get("host") or parameters.get("hostaddr") or "localhost")
    port = f":{parameters['port']}" if parameters.get("port") else ""
    database = parameters.get("dbname") or parameters.get("user") or ""
    return f"Postgres at {host}{port}/{database}"


def read_standing(connection: psycopg.Connection[Any]) -> Standing:
    """Return what the server says about itself."""
    row = connection.execute(
        """select current_setting('server_version_num')::integer / 10000, pg_is_in_recovery(), current_user,
        (select rolsuper or rolbypassrls from pg_roles where rolname = current_user),
        (select coalesce(installed_version, default_version) from pg_available_extensions where name = 'vector'),
        exists(select from pg_extension where extname = 'vector')"""
    ).fetchone()
    assert row is not None
    return Standing(*row)


def check_standing(standing: Standing, name: str) -> None:
    """Raise if the server cannot hold a memory, before anything is created on it."""
    if standing.server < MIN_SERVER:
        raise StoreError(f"{name} is version {standing.server}, but memoriter needs {MIN_SERVER} or newer.")
    if standing.is_replica:
        raise StoreError(f"{name} is a read-only replica. Name the primary server in `store.url`.")
    if standing.vector is None:
        raise StoreError(f"{name} has no extension pgvector. Install pgvector 0.8 or newer on the server.")
    if tuple(int(part) for part in standing.vector.split(".")[:2]) < MIN_VECTOR:
        raise StoreError(
            f"{name} has pgvector {standing.vector}, but memoriter needs 0.8 or newer. "
            "Install it on the server and run `alter extension vector update`."
        )


def _applied(connection: psycopg.Connection[Any], name: str) -> set[str]:
    """Return the names of the migrations that the schema has. Raise if a newer release needs to use it."""
    try:
        rows = connection.execute("select name, breaks_older from memoriter.migrations").fetchall()
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return set()
    known = {step.name for step in MIGRATIONS}
    newer = [step for step, breaks in rows if breaks and step not in known]
    if newer:
        raise SchemaTooNew(
            f"{name} has the newer schema {newer[-1]}, which this release does not support. Update memoriter."
        )
    return {step for step, _ in rows}


def _is_granted(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the role of transactions exists and may use the schema."""
    return (
        connection.execute(
            "select 1 from pg_roles r, pg_namespace n where r.rolname = %s and n.nspname = %s"
            " and has_schema_privilege(r.oid, n.oid, 'usage')",
            (AGENT_ROLE, SCHEMA),
        ).fetchone()
        is not None
    )


def _grant(connection: psycopg.Connection[Any], role: str) -> None:
    """Create the role of transactions, which cannot bypass row-level security, and grant it the tables."""
    connection.execute(
        f"""do $$ begin
            if not exists(select from pg_roles where rolname = '{AGENT_ROLE}') then
                create role {AGENT_ROLE} nologin nobypassrls;
            end if;
        exception when duplicate_object or unique_violation then null; end $$"""
    )
    connection.execute(sql.SQL("grant {} to {}").format(sql.Identifier(AGENT_ROLE), sql.Identifier(role)))
    connection.execute(f"grant usage on schema {SCHEMA} to {AGENT_ROLE}")
    connection.execute(
        f"grant select, insert, update, delete on all tables in schema {SCHEMA} to {AGENT_ROLE}"
    )
    connection.execute(f"grant usage on all sequences in schema {SCHEMA} to {AGENT_ROLE}")
    connection.execute(f"revoke insert, update, delete on {SCHEMA}.migrations from {AGENT_ROLE}")


def roll_back(connection: psycopg.Connection[Any]) -> None:
    """Roll back the transaction. A lost connection has ended it already."""
    with contextlib.suppress(psycopg.Error):
        connection.execute("rollback")
