"""Which rows a filter lets through, as a list that an engine can be held to."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import apsw
import numpy as np

from memoriter.records import Identity
from memoriter.store.connection import value
from memoriter.store.keywords import Filter

if TYPE_CHECKING:
    from memoriter.store.vectors import Rows

KEPT = 8  #: lists; one of a million rows is 8 MB


class AllowLists:
    """The lists of the last filters, kept until a row comes. Rows that have gone since may still be in them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, int, Identity, Filter], Rows] = {}

    def rows(self, connection: apsw.Connection, identity: Identity, where: Filter) -> Rows:
        """The rows with a vector of this identity that pass the filter."""
        if connection.txn_state() == apsw.SQLITE_TXN_WRITE:
            return allowed(connection, identity, where)  # rows that may be rolled back are not for keeping
        store = value(connection, "select value from meta where key = 'store'")
        newest = value(connection, "select coalesce(max(rowid), 0) from chunks")
        key = (store, newest, identity, where)
        with self._lock:
            found = self._kept.pop(key, None)
            if found is None:
                found = allowed(connection, identity, where)
            self._kept[key] = found  # the last used stands last
            while len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
            return found


def allowed(connection: apsw.Connection, identity: Identity, where: Filter) -> Rows:
    """The rows with a vector of this identity that pass the filter now."""
    bound: list[str] = [str(identity)]
    clauses = ["model = ?"]
    if where.path_prefix:
        clauses.append("path >= ?")
        bound.append(where.path_prefix)
        if (end := after_prefix(where.path_prefix)) is not None:
            clauses.append("path < ?")
            bound.append(end)
    if where.source is not None:
        clauses.append("source = ?")
        bound.append(where.source)
    # One text of all numbers: a third of the cost of a Python object for each row.
    statement = f"select group_concat(rowid, ' ') from chunks where {' and '.join(clauses)}"  # noqa: S608 - constants
    numbers = value(connection, statement, tuple(bound)) or ""
    return np.sort(np.fromstring(numbers, dtype=np.int64, sep=" "))


def after_prefix(prefix: str) -> str | None:
    """The first text after all that begin with the prefix, by code points; None when there is none."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(0xE000 if following == 0xD800 else following)  # surrogates are no text
