"""Checks of a Postgres server for `memoriter doctor`: version, privileges, durability, dead rows and replication."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg

from memoriter.extensions.postgres.connection import translate_errors
from memoriter.extensions.postgres.server import SCHEMA, PostgresServer, read_standing
from memoriter.records import Finding

#: More dead rows than this, and than this share of all rows, slow a table down.
MAX_DEAD_ROWS, MAX_DEAD_SHARE = 10_000, 0.2
#: A replica that is further behind than this loses that much in a fail-over.
MAX_LAG_BYTES = 16 * 1024 * 1024


def examine_server(server: PostgresServer) -> list[Finding]:
    """Run all checks. They change nothing."""
    with contextlib.closing(server.connect()) as connection, translate_errors(server.name):
        return [
            *_version(connection, server),
            *_durability(connection),
            *_privileges(connection),
            *_dead_rows(connection),
            *_replication(connection),
        ]


def _version(connection: psycopg.Connection[Any], server: PostgresServer) -> Iterator[Finding]:
    standing = read_standing(connection)
    text = f"{server.name}: version {standing.server}, pgvector {standing.vector}, role {standing.role}"
    yield Finding("server", "ok", text)
    if standing.bypasses:
        yield Finding(
            "server role",
            "note",
            f"The role {standing.role} can bypass row-level security, so transactions change to {server.role}.",
            "Use a role of its own for the gateways, see docs/scale.md.",
        )


def _durability(connection: psycopg.Connection[Any]) -> Iterator[Finding]:
    rows = connection.execute(
        "select name, setting from pg_settings where name in ('fsync', 'synchronous_commit', 'full_page_writes',"
        " 'data_checksums')"
    )
    found = dict(rows.fetchall())
    for name in ("fsync", "synchronous_commit", "full_page_writes"):
        if found[name] == "off":
            text = f"{name} is off, so a crash of the server can lose writes that were acknowledged."
            yield Finding("durability", "wrong", text, f"Set {name} to on.")
    if found["data_checksums"] == "off":
        text = "Data checksums are off, so the server does not detect damaged pages."
        yield Finding("checksums", "note", text, "Run `pg_checksums --enable` while the server is stopped.")


def _privileges(connection: psycopg.Connection[Any]) -> Iterator[Finding]:
    rows = connection.execute(
        """select c.relname,
        has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
            and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'),
        pg_has_role(c.relowner, 'usage'),
        c.relrowsecurity and c.relforcerowsecurity
        from pg_class c where c.relnamespace = %s::regnamespace and c.relkind in ('r', 'p')
        and c.relname <> 'migrations' order by 1""",
        (SCHEMA,),
    ).fetchall()
    missing = [name for name, usable, _, _ in rows if not usable]
    open_ = [name for name, _, _, protected in rows if not protected]
    if missing:
        text = f"The role may not use {len(missing)} tables, such as {missing[0]}."
        yield Finding("privileges", "wrong", text, "Grant the role `memoriter_agent`, see docs/scale.md.")
    if open_:
        text = f"Row-level security is off for {', '.join(open_[:5])}, so agents could see each other's rows."
        yield Finding("row-level security", "wrong", text, "Switch it on with `alter table`.")
    if not all(owned for _, _, owned, _ in rows):
        text = "The role does not own the tables, so erased rows stay until the server vacuums them itself."
        yield Finding("vacuum", "note", text, "Let the role own the schema, see docs/scale.md.")


def _dead_rows(connection: psycopg.Connection[Any]) -> Iterator[Finding]:
    rows = connection.execute(
        """select relname, n_dead_tup from pg_stat_user_tables where schemaname = %s
        and n_dead_tup > %s and n_dead_tup > %s * (n_live_tup + n_dead_tup) order by n_dead_tup desc""",
        (SCHEMA, MAX_DEAD_ROWS, MAX_DEAD_SHARE),
    ).fetchall()
    if rows:
        name, count = rows[0]
        text = f"{len(rows)} tables have many dead rows; {name} has {count}."
        yield Finding("dead rows", "note", text, f"Run `vacuum {SCHEMA}.{name}`, and check autovacuum.")


def _replication(connection: psycopg.Connection[Any]) -> Iterator[Finding]:
    rows = connection.execute(
        "select application_name, sync_state, pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)"
        " from pg_stat_replication"
    ).fetchall()
    if not rows:
        text = "The server has no replica. If its disk is lost, only backups are left."
        yield Finding("replication", "note", text, "Add a streaming replica, see docs/scale.md.")
        return
    in_step = sum(state in ("sync", "quorum") for _, state, _ in rows)
    yield Finding("replication", "ok", f"{len(rows)} replicas, {in_step} of them synchronous")
    if not in_step:
        text = "No replica is synchronous, so a fail-over can lose the last writes."
        yield Finding("replication", "note", text, "Set `synchronous_standby_names`.")
    for name, _, lag in rows:
        if lag is not None and lag > MAX_LAG_BYTES:
            yield Finding("replication", "note", f"The replica {name} is {lag // 2**20} MB behind.")
