"""`Transactions`: what the stores of record use of a database, whichever holds it.

Entries, the recall ledger and items share their statements between SQLite (`Database`) and
servers of extensions, so a statement uses only what both understand. One contract test runs on both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

#: A limit that no table reaches. Databases write "no limit" differently.
NO_LIMIT = 2**62


class Rows(Protocol):
    """The rows of a statement."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchall(self) -> list[Any]:
        """Return all rows."""


class Connection(Protocol):
    """A connection inside a transaction."""

    def execute(self, statement: str, bindings: Any = None, /) -> Rows:
        """Run a statement and return its rows."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Rows:
        """Run a statement once for each sequence of values."""

    def changes(self) -> int:
        """Return how many rows the last statement changed."""


@dataclass(frozen=True, slots=True)
class Traces:
    """Remains of deleted rows, as codes of sentences for the receipt of an erasure."""

    #: What `Transactions.purge` removes.
    removed: str
    #: The same, while others still read it.
    busy: str
    #: What no program can remove at once.
    kept: tuple[str, ...] = ()


class Transactions(Protocol):
    """A database with one writer at a time. Safe to use from several threads and processes."""

    #: The file or the server, for messages.
    name: str
    traces: Traces
    #: Whether statements can read members of JSON texts, as SQLite's functions do.
    reads_json: bool

    def read(self) -> AbstractContextManager[Connection]:
        """Return a connection for reading. Errors are those of this package."""

    def snapshot(self) -> AbstractContextManager[Connection]:
        """Return a connection, as `read` does. All reads of this thread inside see one state of the database."""

    def pinned(self) -> AbstractContextManager[None]:
        """Let this thread read one state of the database, also in code that is not part of the store."""

    def write(self) -> AbstractContextManager[Connection]:
        """Run one transaction: commit at the end, roll back on any error. A nested call joins the outer one."""

    def purge(self) -> bool:
        """Remove what deleted rows leave behind, as far as the database can. Return False while others read it."""

    def changes_of_others(self) -> int | None:
        """Return a number that changes when another process has changed the database; None if none is known."""

    def check(self, *, deep: bool = False) -> list[str]:
        """Return what is wrong with the database, one sentence each."""

    def close(self) -> None:
        """Close every connection."""


def value(connection: Connection, statement: str, bindings: tuple[Any, ...] = ()) -> Any:
    """Return the first column of the first row, or None without a row."""
    rows = connection.execute(statement, bindings).fetchall()
    return rows[0][0] if rows else None
