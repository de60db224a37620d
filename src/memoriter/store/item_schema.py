"""The tables of ``items.db``, as a list of migrations.

A new release appends a migration and never changes a released one.
"""

from __future__ import annotations

from pathlib import Path

from memoriter.store.checksums import add_checksums
from memoriter.store.connection import Migration
from memoriter.store.database import Database

APPLICATION_ID = 0x6D6D6974  # "mmit"

_M001 = Migration(
    "m001_initial",
    (
        "create table meta(key text primary key, value text not null) without rowid",
        """create table items(
            id text primary key, namespace text not null, key text not null, value text not null,
            texts text not null, created_at real not null, updated_at real not null, ttl_s real,
            expires_at real, seq integer not null, unique(namespace, key))""",
        "create index items_expiry on items(expires_at) where expires_at is not null",
        # One row for every item that ever existed. A change gives it a new number, greater than all before.
        "create table item_changes(id text primary key, seq integer not null, namespace text not null) without rowid",
        "create index item_changes_seq on item_changes(seq)",
        # Deleted items, by id, and their vectors, by hash, that the derived index may still hold, so that an
        # interrupted erasure can be completed.
        "create table item_erasures(hash text primary key) without rowid",
    ),
)

_ITEM = "id namespace key value texts created_at updated_at ttl_s expires_at seq"
_M002 = Migration(
    "m002_checksums",
    (
        # What identifies each change, for the newest of them.
        "create table item_marks(seq integer primary key, mark text not null)",
        *add_checksums("meta", ("key",), ("key", "value")),
        *add_checksums("items", ("id",), _ITEM.split()),
        *add_checksums("item_changes", ("id",), ("id", "seq", "namespace")),
    ),
)

MIGRATIONS = (_M001, _M002)


def open_items_file(path: Path, *, timeout_s: float = 30.0) -> Database:
    """Open the ``items.db`` at this path."""
    return Database(
        path, application_id=APPLICATION_ID, migrations=MIGRATIONS, synchronous="FULL", timeout_s=timeout_s
    )
