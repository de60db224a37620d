"""Statements on a Postgres connection, written as for SQLite, with errors of this package."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import psycopg
from psycopg import errors
from psycopg.abc import Buffer
from psycopg.types.string import StrDumper

from memoriter.errors import StoreBroken, StoreError, StoreLocked, StoreUnavailable, first_line

_PLACEHOLDER = re.compile(r"'[^']*'|\?(\d*)")
_CONFLICT = re.compile(r"\bon conflict\s*\(")

#: States of a server that is going down, starting, or no longer the primary. Another attempt may succeed.
_AWAY = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.TooManyConnections,
    errors.IdleInTransactionSessionTimeout,
)
_WAITED = (
    errors.LockNotAvailable,
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.QueryCanceled,
)

_DAMAGED = (errors.DataCorrupted, errors.IndexCorrupted)


@functools.lru_cache(maxsize=1024)
def translate(statement: str) -> str:
    """Return a statement with Postgres placeholders: ``?`` and ``?2`` become ``$1`` and ``$2``.

    The key of every table starts with the tenant and the agent, so the target of ``on conflict`` does too.
    """
    count = 0

    def numbered(match: re.Match[str]) -> str:
        nonlocal count
        if match[0].startswith("'"):
            return match[0]
        count += 1
        return f"${match[1] or count}"

    found = _PLACEHOLDER.sub(numbered, statement)
    return _CONFLICT.sub("on conflict(tenant, agent, ", found)


class Rows(list[tuple[Any, ...]]):
    """The rows of a statement."""

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows."""
        return self


class TextDumper(StrDumper):
    """Sends text as text. By default, psycopg lets the server guess, which fails where it has nothing to guess from.

    A null character, which Postgres cannot store, becomes U+FFFD. A message of a person or a tool must not fail.
    """

    def dump(self, obj: str) -> Buffer | None:
        """Return the text as the server receives it."""
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


class PostgresConnection:
    """One transaction. Offers the methods of an SQLite connection that the stores use."""

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self._cursor = psycopg.RawCursor(raw)
        #: What was read in a snapshot and may be read again. None: the transaction may see changes.
        self.memo: dict[object, Any] | None = None

    def execute(self, statement: str, bindings: Any = None, /) -> Rows:
        """Run a statement and return its rows."""
        return self._run(translate(statement), bindings or None)

    def fetch(self, statement: str, bound: Sequence[object]) -> Rows:
        """Run a statement of a search and return its rows in binary form. Each connection prepares it once."""
        return self._run(translate(statement), bound, binary=True, prepare=True)

    def _run(self, statement: str, bound: Any, **how: bool) -> Rows:
        self._cursor.execute(statement, bound, **how)
        return Rows(self._cursor.fetchall()) if self._cursor.description else Rows()

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Rows:
        """Run a statement once for each sequence of values."""
        bound = list(rows)
        if bound:
            self._cursor.executemany(translate(statement), bound)
        return Rows()

    def changes(self) -> int:
        """Return how many rows the last statement changed."""
        return max(0, self._cursor.rowcount)


class PostgresReads(PostgresConnection):
    """Statements that only read. Each is a transaction of its own and takes one round trip."""

    def __init__(self, ask: Callable[..., Rows]) -> None:
        self.memo = None
        self._run = ask  # type: ignore[method-assign]


def ask(
    connection: psycopg.Connection[Any],
    settings: tuple[str, Sequence[str]],
    statement: str,
    bound: Any,
    **how: bool,
) -> Rows:
    """Run a statement with settings that last as long as it does. In a pipeline, both are one transaction."""
    with connection.pipeline():
        psycopg.RawCursor(connection).execute(*settings, prepare=True)
        cursor = psycopg.RawCursor(connection)
        cursor.execute(statement, bound, **how)
    return Rows(cursor.fetchall())


# ---- errors -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Convert errors of psycopg for the database with this name into errors of this package."""
    try:
        yield
    except psycopg.Error as error:
        raise _translate(error, name) from error
    except UnicodeEncodeError as error:
        raise StoreError(f"{name} cannot store a text with a lone surrogate: {error.reason}.") from error


def _translate(error: psycopg.Error, name: str) -> StoreError:
    cause = first_line(error)
    for kinds, kind, message in (
        (
            errors.ReadOnlySqlTransaction,
            StoreUnavailable,
            "{} is read-only now, as a replica is. Try again later.",
        ),
        (_AWAY, StoreUnavailable, "{} does not answer: {}."),
        (_WAITED, StoreLocked, "{} is busy: {}. Try again later."),
        (_DAMAGED, StoreBroken, "{} is damaged: {}."),
        (errors.DiskFull, StoreError, "{} cannot be written: the disk of the server is full."),
        (errors.InsufficientPrivilege, StoreError, "{} refuses access: {}. Grant the role its privileges."),
    ):
        if isinstance(error, kinds):
            return kind(message.format(name, cause))
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreUnavailable(f"{name} does not answer: {connection_problem(error)}.")
    return StoreError(f"{name}: {cause}")


def connection_problem(error: psycopg.Error) -> str:
    """Return why a connection failed, in one line. libpq lists every address that it tried."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if "failed:" in line] or lines
    return causes[-1].rpartition("failed: ")[2].strip().rstrip(".") if causes else type(error).__name__
