"""Servers that cannot hold a memory are refused in one sentence, and `doctor` says what is wrong with one that can."""

from __future__ import annotations

import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest
from postgres_cluster import PostgresCluster, copy_programs

from memoriter import Memory
from memoriter.config import load
from memoriter.errors import SchemaTooNew, StoreError
from memoriter.extensions.postgres.database import PostgresDatabase
from memoriter.extensions.postgres.health import examine_server
from memoriter.extensions.postgres.schema import MIGRATIONS, PARTITIONS
from memoriter.extensions.postgres.server import PostgresServer, check_standing, read_standing
from memoriter.testing import HashEmbedder
from memoriter.tools.doctor import examine

UPDATE_VECTOR = (
    "Postgres at db has pgvector 0.7.4, but memoriter needs 0.8 or newer. "
    "Install it on the server and run `alter extension vector update`."
)


@pytest.fixture
def database(postgres: PostgresCluster) -> Iterator[str]:
    """The name of an empty database."""
    name = f"d{uuid.uuid4().hex}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"create database {name}")
        yield name
        connection.execute(f"drop database {name} with (force)")


def tables(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "select relname from pg_class where relnamespace::regnamespace::text = 'memoriter'"
        )
        return [name for (name,) in rows]


def test_a_newer_schema_is_refused_only_if_it_breaks_this_release(
    postgres: PostgresCluster, database: str
) -> None:
    url = postgres.url_of("postgres", database)
    PostgresServer(url)
    with psycopg.connect(url) as connection:
        connection.execute("insert into memoriter.migrations values('more_columns', false)")
    PostgresServer(url)  # a newer gateway only added something
    with psycopg.connect(url) as connection:
        connection.execute("insert into memoriter.migrations values('other_columns', true)")
    with pytest.raises(SchemaTooNew) as error:
        PostgresServer(url)
    assert str(error.value) == (
        f"Postgres at {postgres.folder}:5432/{database} has the newer schema other_columns, which this release "
        "does not support. Update memoriter."
    )


#: The migrations of release 0.2.0, and the digest of their words, which never change.
RELEASED = ("entries", "index", "files", "items")
RELEASED_DIGEST = "8bf49494a9a9c81c55f00e13a340749bd8e504aa91f770eafd054e2cb7569d62"


def test_the_schema_of_a_release_is_migrated_with_its_rows(
    postgres: PostgresCluster, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.url_of("postgres", database)
    steps = tuple(step for step in MIGRATIONS if step.name in RELEASED)
    statements = "\n".join(" ".join(one.split()) for step in steps for one in step.statements)
    assert sha256(statements.encode()).hexdigest() == RELEASED_DIGEST
    put = "insert into meta(key, value) values('key', ?)"
    with monkeypatch.context() as patch:
        patch.setattr("memoriter.extensions.postgres.server.MIGRATIONS", steps)
        older = PostgresServer(url)
        for agent in ("ada", "bob"):
            with closing(PostgresDatabase(older, agent=agent)) as rows, rows.write() as connection:
                connection.execute(put, (agent,))
    newer = PostgresServer(url)
    with psycopg.connect(url) as connection:
        applied = connection.execute("select name from memoriter.migrations").fetchall()
    assert [name for (name,) in applied] == [step.name for step in MIGRATIONS]
    for server in (older, newer):  # a gateway of the release goes on serving
        with closing(PostgresDatabase(server, agent="ada")) as rows, rows.read() as connection:
            assert connection.execute("select value from meta").fetchall() == [("ada",)]


def test_the_plan_of_a_statement_does_not_depend_on_the_agent_that_came_first(
    postgres: PostgresCluster, database: str
) -> None:
    url = postgres.url_of("postgres", database)
    PostgresServer(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set search_path = memoriter, public; set plan_cache_mode = force_generic_plan")
        connection.execute(
            """insert into index_chunks(tenant, agent, index_name, rowid, start_line, end_line, length, hash, model,
            source, trust, id, path, headings, text) select 'default', 'agent-' || a, 'notes', n, n, n, 1,
            sha256(n::text::bytea), 'model', 'memory', 'owner', n::text, 'note.md', '[]', ''
            from generate_series(1, 40) a, generate_series(1, 100) n"""
        )
        connection.execute("analyze index_chunks")
        connection.execute("set role memoriter_agent; set memoriter.tenant = 'default'")
        connection.execute(
            "prepare lookup(bytea) as select rowid from index_chunks"
            " where index_name = 'notes' and model = 'model' and hash = $1"
        )
        plans = []
        for agent in ("unknown", "agent-1"):
            connection.execute(f"set memoriter.agent = '{agent}'")
            plans.append(connection.execute("explain (costs off) execute lookup('')").fetchall())
    assert plans[0] == plans[1]
    lines = [line.strip() for (line,) in plans[0]]
    assert [line for line in lines if line.startswith("Filter")] == []  # the index finds the hash
    assert sum("hash = $1" in line for line in lines) == PARTITIONS


def test_a_role_that_may_not_create_anything_leaves_nothing_half_made(
    postgres: PostgresCluster, database: str
) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"create role r{database} login")
    try:
        with pytest.raises(StoreError, match="Run `create extension vector` as an administrator"):
            PostgresServer(postgres.url_of(f"r{database}", database))
        with psycopg.connect(postgres.url_of("postgres", database), autocommit=True) as connection:
            connection.execute("create extension vector")
        with pytest.raises(StoreError, match="refuses access: permission denied for database"):
            PostgresServer(postgres.url_of(f"r{database}", database))
        assert tables(postgres.url_of("postgres", database)) == []
    finally:
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute(f"drop role r{database}")


def test_a_role_that_owns_the_schema_needs_no_other_role(postgres: PostgresCluster, database: str) -> None:
    with psycopg.connect(postgres.url_of("postgres", database), autocommit=True) as connection:
        connection.execute("create extension vector")
        connection.execute(f"create role r{database} login")
        connection.execute(f"grant create on database {database} to r{database}")
    server = PostgresServer(postgres.url_of(f"r{database}", database))
    assert server.role == f"r{database}"
    names = {(finding.name, finding.state) for finding in examine_server(server)}
    assert ("privileges", "wrong") not in names
    assert ("server role", "note") not in names
    with psycopg.connect(postgres.url_of("postgres", database), autocommit=True) as connection:
        connection.execute(f"drop owned by r{database} cascade")
        connection.execute(f"drop role r{database}")


def test_an_old_server_and_one_without_pgvector_are_named(postgres: PostgresCluster) -> None:
    with psycopg.connect(postgres.url) as connection:
        standing = read_standing(connection)
    check_standing(standing, "Postgres at db")
    for bad, message in (
        (replace(standing, server=15), "Postgres at db is version 15, but memoriter needs 16 or newer."),
        (
            replace(standing, is_replica=True),
            "Postgres at db is a read-only replica. Name the primary server in `store.url`.",
        ),
        (
            replace(standing, vector=None),
            "Postgres at db has no extension pgvector. Install pgvector 0.8 or newer on the server.",
        ),
        (
            replace(standing, vector="0.7.4"),
            UPDATE_VECTOR,
        ),
    ):
        with pytest.raises(StoreError) as error:
            check_standing(bad, "Postgres at db")
        assert str(error.value) == message


def test_without_the_extra_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("memoriter.extensions.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"pip install 'pgvector>=[\d.]+' 'psycopg\[binary\]>=[\d.]+'"):
        Memory.open(home=tmp_path, overrides={"store.url": "postgresql://db/memory"})


def test_doctor_reports_durability_replication_and_the_role(
    postgres: PostgresCluster, tmp_path: Path
) -> None:
    overrides = {"store.url": postgres.url, "store.tenant": uuid.uuid4().hex, "search.rerank": False}

    def opened() -> Memory:
        return Memory.open(home=tmp_path, overrides=overrides, embedder=HashEmbedder())

    settings = load(arguments={"home": tmp_path, **overrides}, environ={})
    assert "server" in {finding.name for finding in examine(lambda: settings, opened)}
    with opened() as memory:
        memory.remember("Alice drinks green tea")
    found = {finding.name: finding for finding in examine(lambda: settings, opened)}
    assert "workspace" not in found
    assert "vector engine" not in found
    assert found["entries"].state == "ok"
    assert found["server"].text.endswith("role postgres")
    assert (found["durability"].state, found["durability"].fix) == ("wrong", "Set fsync to on.")
    assert found["server role"].state == found["replication"].state == "note"
    assert "privileges" not in found
    assert "row-level security" not in found
    settings = settings.model_copy(
        update={"store": settings.store.model_validate({"url": "postgresql://me:secret@127.0.0.1:1/db"})}
    )
    broken = examine(lambda: settings, lambda: Memory.open(settings=settings))
    assert broken[-1].name == "server"
    assert "secret" not in repr(broken)


@pytest.mark.integration
def test_a_replica_as_primary_and_a_server_without_pgvector_are_refused() -> None:
    primary = PostgresCluster(settings={"max_wal_senders": "4"}).create()
    replica = PostgresCluster()
    bare = PostgresCluster()
    try:
        PostgresServer(primary.url)
        shutil.rmtree(replica.data, ignore_errors=True)
        replica.run(
            "pg_basebackup", "-d", primary.url, "-D", str(replica.data), "-R", "-X", "stream", "-c", "fast"
        )
        replica.start()
        with pytest.raises(StoreError, match="is a read-only replica"):
            PostgresServer(replica.url)
        assert [f.state for f in examine_server(PostgresServer(primary.url)) if f.name == "replication"] == [
            "ok",
            "note",
        ]
        bare.programs = copy_programs(bare.programs, bare.folder / "own")
        for file in (bare.folder / "own").rglob("vector*.control"):
            file.unlink()
        bare.create()
        with pytest.raises(StoreError, match="has no extension pgvector"):
            PostgresServer(bare.url)
        assert tables(bare.url) == []
    finally:
        for cluster in (replica, primary, bare):
            cluster.delete()


@pytest.mark.integration
def test_a_dump_is_a_backup(postgres: PostgresCluster, database: str, tmp_path: Path) -> None:
    tenant = uuid.uuid4().hex

    def opened(url: str, home: str) -> Memory:
        overrides = {"store.url": url, "store.tenant": tenant, "search.rerank": False}
        return Memory.open(home=tmp_path / home, overrides=overrides, embedder=HashEmbedder())

    with opened(postgres.url, "before") as memory:
        memory.remember("Alice drinks green tea")
        memory.save("The harbour light faces north.")
        before = memory.entries.list()
    file = postgres.folder / f"{database}.dump"
    postgres.run("pg_dump", "-Fc", "-n", "memoriter", "-f", str(file), postgres.url)
    target = postgres.url_of("postgres", database)
    with psycopg.connect(target, autocommit=True) as connection:
        connection.execute("create extension vector")
    postgres.run("pg_restore", "--no-owner", "--no-privileges", "-d", target, str(file))
    with opened(target, "after") as memory:
        assert memory.entries.list() == before
        assert [hit.snippet for hit in memory.search("green tea").hits] == ["Alice drinks green tea"]
        assert "The harbour light faces north." in str(
            [memory.read(n.path).text for n in memory.notes.list()]
        )


@pytest.mark.integration
def test_psql_restores_a_dump_that_the_documented_views_read(
    postgres: PostgresCluster, database: str, tmp_path: Path
) -> None:
    tenant = uuid.uuid4().hex
    overrides = {"store.url": postgres.url, "store.tenant": tenant, "search.rerank": False}
    with Memory.open(home=tmp_path / "home", overrides=overrides, embedder=HashEmbedder()) as memory:
        memory.remember("艾丽丝喝绿茶 🍵", tags=("drink",))
        memory.remember("I live in Berlin.")
        memory.remember("I moved to Munich.")
        memory.save("The harbour light faces north.")
        memory.recall("What does 艾丽丝 drink? 绿茶?")
    dump, views = postgres.folder / f"{database}.sql", postgres.folder / f"{database}-views.sql"
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
    views.write_text(
        "create schema readable" + page.partition("create schema readable")[2].partition("```")[0]
    )
    postgres.run("pg_dump", "-n", "memoriter", "-f", str(dump), postgres.url)
    target = postgres.url_of("postgres", database)
    psql = ("psql", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-At", "-d", target)
    postgres.run(*psql, "-c", "create extension vector")
    for file in (dump, views):
        postgres.run(*psql, "-f", str(file))

    def read(what: str) -> list[str]:
        return postgres.run(*psql, "-c", f"{what} where tenant = '{tenant}' order by 1").splitlines()

    assert read("select text, tags->>0 from readable.memories") == [
        "I live in Berlin.|",
        "I moved to Munich.|",
        "艾丽丝喝绿茶 🍵|drink",
    ]
    assert "The harbour light faces north." in read("select text from readable.notes")
    assert set(read("select kind from readable.history")) == {"add", "supersede"}
    assert "艾丽丝喝绿茶 🍵" in read("select text from readable.recalls")
