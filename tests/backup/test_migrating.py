"""A memory moves to Postgres and back without losing a row, a note or a state file."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from postgres_cluster import PostgresCluster

from memoriter import Memory
from memoriter.config import Settings, load
from memoriter.errors import BackupError, StoreError
from memoriter.extensions.backup.creating import create
from memoriter.extensions.backup.migrating import migrate
from memoriter.extensions.backup.restoring import restore
from memoriter.extensions.backup.table_copy import TABLES
from memoriter.extensions.langgraph.items import items_of
from memoriter.extensions.langgraph.items.store import Put
from memoriter.records import Turn
from memoriter.testing import HashEmbedder


def settings_of(home: Path, workspace: Path, url: str = "", tenant: str = "default") -> Settings:
    return load(
        arguments={
            "home": home,
            "store.url": url,
            "store.tenant": tenant,
            "search.rerank": False,
            **({} if url else {"workspace": workspace}),
        },
        environ={},
        cwd=home,
    )


def fill(settings: Settings) -> None:
    (settings.workspace / "memory").mkdir(parents=True, exist_ok=True)
    (settings.workspace / "MEMORY.md").write_text("# Memory\n\nThe gateway runs on port 8700.\n")
    (settings.workspace / "memory" / "2026-02-08.md").write_text("备份每天凌晨运行。\n")
    with Memory.open(settings=settings, embedder=HashEmbedder()) as memory:
        tea = memory.remember("Alice drinks green tea 绿茶", "preference", tags=("drinks",)).entry
        coffee = memory.remember("The office machine makes coffee", "fact").entry
        assert tea is not None
        assert coffee is not None
        memory.entries.update(tea.id, importance=5.0)
        memory.entries.erase(coffee.id)
        memory.recall("what does Alice drink?")
        items_of(memory).put([Put(("users", "ada"), "tea", {"cups": 3}, ("tea",), 3600.0)])
        memory.capture([Turn("user", "I prefer tabs over spaces.", 1)], session="s1")


def contents(settings: Settings) -> dict[str, Any]:
    with Memory.open(settings=settings, embedder=HashEmbedder()) as memory:
        item = items_of(memory).get(("users", "ada"), "tea", refresh=False)
        entries = sorted(memory.entries.list(states=()), key=lambda entry: entry.id)
        return {
            "entries": entries,
            "histories": [memory.entries.history(entry.id) for entry in entries],
            "recalls": memory.entries.recalls().recalls,
            "item": item,
            "notes": {note.path: memory.read(note.path).text for note in memory.notes.list()},
            "refused": memory.entries._context.store.digest("The office machine makes coffee"),
        }


def test_a_memory_moves_to_postgres_and_back(postgres: PostgresCluster, tmp_path: Path) -> None:
    tenant = uuid.uuid4().hex
    files = settings_of(tmp_path / "home", tmp_path / "notes")
    server = settings_of(tmp_path / "gateway", tmp_path / "notes", postgres.url, tenant)
    back = settings_of(tmp_path / "back", tmp_path / "notes again")
    fill(files)
    before = contents(files)
    there = migrate(files, server)
    assert {(one.area, one.name) for one in there.tables} == {
        (area, table.name) for area, tables in TABLES.items() for table in tables
    }
    assert there.notes == 2
    assert migrate(files, server) == there  # nothing is left to copy
    assert contents(server) == before
    again = migrate(server, back)
    assert [one.rows for one in again.tables] == [one.rows for one in there.tables]
    assert contents(back) == before


def test_a_memory_on_a_server_is_backed_up_and_restored_to_files(
    postgres: PostgresCluster, tmp_path: Path
) -> None:
    server = settings_of(tmp_path / "gateway", tmp_path / "notes", postgres.url, uuid.uuid4().hex)
    files = settings_of(tmp_path / "home", tmp_path / "notes")
    fill(files)
    migrate(files, server)
    before = contents(server)
    (server.home / "config.yaml").write_text(f"store:\n  url: {postgres.url}\n")
    report = create(server, tmp_path / "server.zip")
    assert (report.notes, report.agents, report.not_included) == (2, ("main",), ())
    again = settings_of(tmp_path / "again", tmp_path / "notes again")
    restore(report.path, home=again.home, workspace=again.workspace)
    assert contents(again) == before
    assert "url" not in (again.home / "config.yaml").read_text()  # the server's has a password


def test_every_table_of_record_is_copied(postgres: PostgresCluster, tmp_path: Path) -> None:
    files = settings_of(tmp_path / "home", tmp_path / "notes")
    fill(files)
    databases = {"entries": files.entries_database, "items": files.agent_folder / "items.db"}
    for area, path in databases.items():
        connection = apsw.Connection(str(path))
        rows: Any = connection.execute(
            "select name from sqlite_schema where type = 'table' and name not like 'sqlite%'"
        )
        names = {name for (name,) in rows}
        assert names == {table.name for table in TABLES[area]}
        for table in TABLES[area]:
            info: Any = connection.execute(f"select name from pragma_table_info('{table.name}')")
            # A checksum belongs to the file, and is computed again by the one that receives the row.
            assert {name for (name,) in info} - {"checksum"} == set(table.columns)
        connection.close()
    gateway = settings_of(tmp_path / "gateway", tmp_path / "notes", postgres.url)
    Memory.open(settings=gateway, embedder=HashEmbedder()).close()  # creates the schema
    with psycopg.connect(postgres.url) as server:
        found = server.execute(
            "select c.relname from pg_class c where c.relnamespace = 'memoriter'::regnamespace"
            " and c.relkind in ('r', 'p') and not c.relispartition"
        ).fetchall()
    derived = ("index_", "file", "migrations")
    assert {name for (name,) in found if not name.startswith(derived)} == {
        table.name for tables in TABLES.values() for table in tables
    }


def test_a_target_with_another_memory_is_not_changed(postgres: PostgresCluster, tmp_path: Path) -> None:
    tenant = uuid.uuid4().hex
    files = settings_of(tmp_path / "home", tmp_path / "notes")
    server = settings_of(tmp_path / "gateway", tmp_path / "notes", postgres.url, tenant)
    fill(files)
    with Memory.open(settings=server, embedder=HashEmbedder()) as memory:
        memory.remember("Bob drinks milk", "preference")
    with pytest.raises(StoreError, match="already holds another memory"):
        migrate(files, server)
    with Memory.open(settings=server, embedder=HashEmbedder()) as memory:
        assert [entry.text for entry in memory.entries.list()] == ["Bob drinks milk"]
    with pytest.raises(BackupError, match="Migrate from `sqlite`"):
        migrate(files, files)


def test_the_command_reports_every_table(
    postgres: PostgresCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from memoriter.cli import execute

    files = settings_of(tmp_path / "home", tmp_path / "notes")
    fill(files)
    url = f"{postgres.url}&application_name=memoriter"
    command = ["--home", str(files.home), "--workspace", str(files.workspace), "migrate", "--json"]
    assert execute([*command, "--from", "sqlite", "--to", url]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["tables"]) == sum(map(len, TABLES.values()))
    assert execute([*command, "--from", "sqlite", "--to", "mysql://x"]) != 0
    assert "must be a URL such as postgresql://" in capsys.readouterr().err
