"""The tables of ``items.db``, as a list of migrations.

A new release appends a migration and never changes a released one.
"""

from __future__ import annotations

from pathlib import Path

from memoriter.store.checksums import add_checksums
from memoriter.store.database import Database, Migration, read_migrations

APPLICATION_ID = 0x6D6D6974  # "mmit"

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

MIGRATIONS = (*read_migrations("items.sql"), _M002)


def open_items_file(path: Path, *, timeout_s: float = 30.0) -> Database:
    """Open the ``items.db`` at this path."""
    return Database(
        path, application_id=APPLICATION_ID, migrations=MIGRATIONS, synchronous="FULL", timeout_s=timeout_s
    )
