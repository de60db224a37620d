"""Removal of deleted rows from the tables of an agent. Postgres keeps old versions of rows until a vacuum."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg import sql

from memoriter.extensions.postgres.connection import translate_errors
from memoriter.extensions.postgres.database import PostgresDatabase
from memoriter.extensions.postgres.server import SCHEMA

#: Seconds to wait for transactions that may still read what was deleted.
READERS_S = 2.0

_READERS = """
    select exists(select from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()
    and backend_xmin is not null and age(backend_xmin) >= age(%s::xid))"""


def vacuum(database: PostgresDatabase, tables: Iterable[str]) -> bool:
    """Remove deleted rows from the agent's partitions of these tables, with their bytes in indexes.

    Return False if a transaction that is older than this call may still read them, so that they stay for now.
    """
    with contextlib.closing(database.server.connect()) as connection, translate_errors(database.name):
        connection.execute(sql.SQL("set search_path = {}, public").format(sql.Identifier(SCHEMA)))
        own = _partitions(connection, database, tables)
        is_clean = _wait_for_readers(connection, time.monotonic() + READERS_S)
        names = sql.SQL(", ").join(map(sql.Identifier, own))
        connection.execute(sql.SQL("vacuum (truncate false, parallel 0) {}").format(names))
    return is_clean


def _partitions(
    connection: psycopg.Connection[Any], database: PostgresDatabase, tables: Iterable[str]
) -> list[str]:
    """Return the partitions that hold the rows of the agent, and the tables that have none."""
    rows = connection.execute(
        """select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
        left join pg_inherits i on i.inhrelid = c.oid left join pg_class parent on parent.oid = i.inhparent
        left join pg_partitioned_table p on p.partrelid = parent.oid
        where n.nspname = %s and c.relkind = 'r' and coalesce(parent.relname, c.relname) = any(%s)
        and (i.inhparent is null or satisfies_hash_partition(i.inhparent,
            (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'modulus (\\d+)'))[1]::integer,
            (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'remainder (\\d+)'))[1]::integer,
            %s::text, %s::text))""",
        (SCHEMA, list(tables), database.tenant, database.agent),
    )
    return [row[0] for row in rows]


def _wait_for_readers(connection: psycopg.Connection[Any], until: float) -> bool:
    """Wait until no transaction can see what was deleted before now. Return whether that happened in time."""
    row = connection.execute("select pg_snapshot_xmax(pg_current_snapshot())::xid::text").fetchone()
    assert row is not None
    while connection.execute(_READERS, row).fetchone() == (True,):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True
