"""Search, sync and entries with an index on Postgres, through the public surface of two machines."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from memoriter import Memory
from memoriter.extensions.postgres.server import parse, server_name
from memoriter.testing import HashEmbedder

if TYPE_CHECKING:
    from postgres_cluster import PostgresCluster


@pytest.fixture
def settings(postgres: PostgresCluster) -> dict[str, object]:
    return {
        "store.url": postgres.url,
        "store.tenant": uuid.uuid4().hex,
        "search.rerank": False,
        "search.min_score": 0.0,
    }


def found(memory: Memory, text: str) -> list[str]:
    """Return the paths and ids of the hits, best first, after a check that nothing is missing from the answer."""
    answer = memory.search(text)
    assert answer.degraded is None
    return [hit.path for hit in answer.hits]


@pytest.mark.requirement("X10")
def test_two_machines_share_one_index(settings: dict[str, object], tmp_path: Path) -> None:
    def machine(name: str) -> Memory:
        return Memory.open(home=tmp_path / name, overrides=settings, embedder=HashEmbedder())

    with machine("one") as one, machine("two") as two:
        one.notes.put("memory/tea.md", "# Tea\n\nAlice drinks green tea in the morning.\n", version=None)
        one.notes.put("memory/backup.md", "# 备份\n\n备份每天凌晨三点运行。\n", version=None)
        one.remember("Bob works in Zürich")
        assert found(one, "green tea")[0] == found(two, "green tea")[0] == "memory/tea.md"
        assert found(two, "备份几点")[0] == "memory/backup.md"
        assert [hit.entry.text for hit in two.entries.search("Zürich").hits] == ["Bob works in Zürich"]
        status, server = two.status(), server_name(parse(str(settings["store.url"])))
        assert (status.vector_engine, status.files, status.embedded) == ("pgvector", 2, status.chunks)
        assert status.index_path == f"{server} (notes of {settings['store.tenant']}/main)"
        assert not list((tmp_path / "two").rglob("index.db"))
    with machine("three") as three:
        assert three.sync().changed == 0  # another machine has indexed everything
        [entry] = three.entries.list()
        three.erase(entry.id)
        assert three.entries.search("Zürich").hits == ()
    with machine("one") as one:
        assert "memory/tea.md" in found(one, "green tea")
        assert one.entries.search("Zürich").hits == ()


def test_each_tenant_uses_the_server_that_the_settings_name(
    postgres: PostgresCluster, tmp_path: Path
) -> None:
    tenant = uuid.uuid4().hex
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f'create database "{tenant}"'.encode())
    acme = postgres.url_of("postgres", tenant)
    config = tmp_path / "config.yaml"
    config.write_text(
        f"embedding: {{provider: none}}\nstore: {{url: '{postgres.url}', servers: {{{tenant}: '{acme}'}}}}\n"
    )

    def entries(home: str, **overrides: object) -> list[str]:
        settings = {f"store.{name}": value for name, value in overrides.items()}
        with Memory.open(home=tmp_path / home, config=config, overrides=settings) as memory:
            return [entry.text for entry in memory.entries.list()]

    with Memory.open(home=tmp_path / "one", config=config, overrides={"store.tenant": tenant}) as memory:
        memory.remember("Acme's boiler is serviced in October")
        assert acme not in str(memory.settings)
    assert entries("two", tenant=tenant) == ["Acme's boiler is serviced in October"]
    assert entries("three", tenant=tenant, url=postgres.url) == []  # an explicit URL has precedence
    assert entries("four", tenant=f"{tenant}-2") == []
