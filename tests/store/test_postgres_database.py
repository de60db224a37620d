"""A database on Postgres: what an agent can see, transactions, lost connections, and servers that cannot be used."""

from __future__ import annotations

import contextlib
import re
import threading
import uuid
from collections.abc import Callable

import psycopg
import pytest
from postgres_cluster import PostgresCluster

from memoriter.errors import ConfigError, StoreError, StoreUnavailable
from memoriter.extensions.postgres.database import PostgresDatabase
from memoriter.extensions.postgres.server import PostgresServer, open_server

OpenDatabase = Callable[..., PostgresDatabase]
PUT = "insert into meta(key, value) values(?, ?) on conflict(key) do update set value = excluded.value"


def put(database: PostgresDatabase, key: str, value: str) -> None:
    with database.write() as connection:
        connection.execute(PUT, (key, value))


def rows(database: PostgresDatabase) -> list[tuple[str, str]]:
    with database.read() as connection:
        return connection.execute("select key, value from meta order by key").fetchall()


@pytest.fixture
def owner(postgres: PostgresCluster) -> str:
    """The URL for a role that is not a superuser."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        open_server(postgres.url)
        connection.execute("drop role if exists plain")
        connection.execute("create role plain login in role memoriter_agent")
    return postgres.url_of("plain")


def test_a_statement_without_a_where_sees_only_the_rows_of_its_agent(postgres_database: OpenDatabase) -> None:
    ada, bob, other = (
        postgres_database("ada"),
        postgres_database("bob"),
        postgres_database("ada", tenant="other"),
    )
    for name, database in (("ada", ada), ("bob", bob), ("other", other)):
        put(database, "key", name)
    assert [rows(database) for database in (ada, bob, other)] == [
        [("key", "ada")],
        [("key", "bob")],
        [("key", "other")],
    ]
    with ada.write() as connection:
        connection.execute("update meta set value = 'changed'")
        assert connection.changes() == 1
        connection.execute("delete from meta")
    assert [rows(database) for database in (ada, bob)] == [[], [("key", "bob")]]
    with other.write() as connection:
        connection.execute("delete from meta")


def test_a_role_without_the_privilege_to_bypass_sees_the_same(
    postgres_database: OpenDatabase, owner: str
) -> None:
    as_superuser, as_owner = postgres_database("ada"), postgres_database("ada", url=owner)
    put(as_owner, "key", "written by the role")
    assert rows(as_superuser) == rows(as_owner) == [("key", "written by the role")]
    assert rows(postgres_database("bob", url=owner)) == []


@pytest.mark.parametrize("table", ["meta", "entries", "events", "recalled_0"])
def test_no_row_of_another_agent_can_be_written(postgres_database: OpenDatabase, table: str) -> None:
    database = postgres_database("ada")
    with pytest.raises(StoreError, match="refuses access"), database.write() as connection:
        connection.execute(
            f"insert into {table} select (jsonb_populate_record(null::{table}, ?::jsonb)).*",
            ('{"tenant": "x", "agent": "bob", "key": "k", "value": "v"}',),
        )


def test_without_a_tenant_a_connection_reads_nothing(postgres_database: OpenDatabase, owner: str) -> None:
    put(postgres_database("ada"), "key", "value")
    with psycopg.connect(owner, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.UndefinedObject, match=r"memoriter\.tenant"):
            connection.execute("select * from memoriter.meta")
        connection.execute("begin; select set_config('memoriter.tenant', 'x', true); commit")
        with pytest.raises(psycopg.Error):  # the setting is empty now, or unknown
            connection.execute("insert into memoriter.meta(key, value) values('k', 'v')")


def test_every_table_of_agents_is_protected(postgres: PostgresCluster) -> None:
    open_server(postgres.url)
    with psycopg.connect(postgres.url) as connection:
        unprotected = connection.execute(
            "select relname from pg_class where relnamespace = 'memoriter'::regnamespace and relkind in ('r', 'p')"
            " and not (relrowsecurity and relforcerowsecurity"
            " and exists(select from pg_policy where polrelid = pg_class.oid))"
        ).fetchall()
    assert unprotected == [("migrations",)]


def test_the_schema_can_be_distributed_by_tenant(postgres: PostgresCluster) -> None:
    """Citus distributes a table by a column of every primary key, unique index and foreign key, and of partitions."""
    open_server(postgres.url)
    with psycopg.connect(postgres.url) as connection:
        unique = connection.execute(
            """select i.indrelid::regclass::text, pg_get_indexdef(i.indexrelid, 1, true),
            pg_get_indexdef(i.indexrelid, 2, true)
            from pg_index i join pg_class t on t.oid = i.indrelid
            where t.relnamespace = 'memoriter'::regnamespace and i.indisunique"""
        ).fetchall()
        tables = connection.execute(
            "select oid::regclass::text from pg_class where relnamespace = 'memoriter'::regnamespace"
            " and relkind in ('r', 'p')"
        ).fetchall()
        partitioned = connection.execute(
            "select pg_get_partkeydef(partrelid) from pg_partitioned_table"
        ).fetchall()
        foreign = connection.execute("select conname from pg_constraint where contype = 'f'").fetchall()
    shared = {"memoriter.migrations"}  # one small table for all tenants
    assert {name for name, *first in unique if first != ["tenant", "agent"]} == shared
    assert {name for (name,) in tables} == {name for name, *_ in unique}
    assert {key for (key,) in partitioned} == {"HASH (tenant, agent)"}
    assert foreign == []


def test_an_error_rolls_back_the_whole_transaction(postgres_database: OpenDatabase) -> None:
    database = postgres_database()

    def fail() -> None:
        with database.write():
            put(database, "key", "value")
            raise KeyError

    def fail_inside() -> None:
        with database.write():
            put(database, "key", "value")
            with contextlib.suppress(StoreError), database.write() as connection:
                connection.execute("select * from missing")

    with pytest.raises(KeyError):
        fail()
    with pytest.raises(StoreError, match="Nothing was written"):
        fail_inside()
    assert rows(database) == []


def test_a_snapshot_sees_one_state_and_a_writer_its_own_changes(postgres_database: OpenDatabase) -> None:
    database, other = postgres_database(), postgres_database()
    put(database, "key", "1")
    with database.pinned():
        assert rows(database) == [("key", "1")]
        put(other, "key", "2")
        assert rows(database) == [("key", "1")]
    with database.write():
        put(database, "key", "3")
        assert (rows(database), rows(other)) == ([("key", "3")], [("key", "2")])
    assert rows(other) == [("key", "3")]


def test_writers_of_one_agent_wait_for_each_other(postgres_database: OpenDatabase) -> None:
    put(postgres_database(), "count", "0")

    def count() -> None:
        database = postgres_database()
        for _ in range(10):
            with database.write() as connection:
                (value,) = connection.execute("select value from meta where key = 'count'")[0]
                connection.execute(PUT, ("count", str(int(value) + 1)))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(postgres_database()) == [("count", "40")]


def cut_connections(cluster: PostgresCluster) -> None:
    with psycopg.connect(cluster.url) as connection:
        connection.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = 'memoriter'"
        )


def test_a_lost_connection_is_replaced(postgres: PostgresCluster, postgres_database: OpenDatabase) -> None:
    database = postgres_database()
    put(database, "key", "value")
    cut_connections(postgres)
    assert rows(database) == [("key", "value")]

    def write_and_lose() -> None:
        with database.write():
            put(database, "key", "never written")
            cut_connections(postgres)

    with pytest.raises(StoreUnavailable, match="does not answer"):
        write_and_lose()
    assert rows(database) == [("key", "value")]


def test_a_text_that_postgres_cannot_store_is_named(postgres_database: OpenDatabase) -> None:
    with pytest.raises(StoreError, match="lone surrogate"):
        put(postgres_database(), "key", "\ud800")


def test_a_null_character_is_stored_as_the_replacement_character(postgres_database: OpenDatabase) -> None:
    database = postgres_database()
    put(database, "key", "a\0b")
    assert rows(database) == [("key", "a\ufffdb")]


def test_an_address_that_cannot_be_reached_is_one_sentence_without_the_password() -> None:
    with pytest.raises(StoreUnavailable) as error:
        PostgresServer("postgresql://me:secret@127.0.0.1:1/db")
    assert re.fullmatch(
        r"Postgres at 127.0.0.1:1/db cannot be reached: Connection refused( \(0x\S+\))?\.", str(error.value)
    )


@pytest.mark.parametrize(
    "url", ["postgresql//me:secret@host", "postgresql://me:sec ret@host", "postgresql://[secret"]
)
def test_a_malformed_url_is_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError, match="not a URL of Postgres") as error:
        PostgresServer(url)
    assert "secret" not in str(error.value)


def test_servers_that_start_at_once_on_an_empty_database_share_its_schema(postgres: PostgresCluster) -> None:
    name = f"empty_{uuid.uuid4().hex}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"create database {name} template template0".encode())
    url, together, failures = postgres.url_of("postgres", name), threading.Barrier(4), list[Exception]()

    def start() -> None:
        together.wait(30)
        try:
            PostgresDatabase(PostgresServer(url), agent="main", tenant="t", area="entries").close()
        except Exception as error:  # noqa: BLE001 - the main thread shows it
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
