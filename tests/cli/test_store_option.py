"""Commands on a memory that a Postgres server holds."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from postgres_cluster import PostgresCluster

from memoriter.cli import execute


@pytest.mark.requirement("X10")
@pytest.mark.integration
def test_commands_share_a_memory_on_a_server(
    postgres: PostgresCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MEMORITER_STORE__TENANT", uuid.uuid4().hex)
    monkeypatch.setenv("MEMORITER_EMBEDDING__PROVIDER", "none")
    monkeypatch.setenv("MEMORITER_SEARCH__RERANK", "false")

    def run(home: str, *words: str, status: int = 0) -> Any:
        assert execute(["--home", str(tmp_path / home), "--store", postgres.url, *words, "--json"]) == status
        return json.loads(capsys.readouterr().out)

    added = run("one", "add", "Alice drinks green tea in the morning")
    entry_id = added["id"]
    run("one", "save", "The harbour light faces north.")
    listed = run("two", "list")
    assert [entry["text"] for entry in listed] == ["Alice drinks green tea in the morning"]
    found = run("two", "search", "harbour light")
    assert "harbour light faces north" in json.dumps(found)
    assert [event["kind"] for event in run("two", "history", entry_id)] == ["add"]
    receipt = run("two", "forget", entry_id, "--now", "--yes")
    assert "write-ahead log" in json.dumps(receipt)
    assert run("one", "list") == []
    assert postgres.url not in json.dumps([run("one", "status"), run("one", "config", "show")])
    execute(["--home", str(tmp_path / "one"), "--store", postgres.url, "backup", str(tmp_path / "x.zip")])
    assert "Back it up with `pg_dump`" in capsys.readouterr().err


def test_an_invalid_url_is_reported_with_the_name_of_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["--home", str(tmp_path), "--store", "mysql://host/db", "search", "tea"]) == 1
    assert capsys.readouterr().err == (
        "memoriter: The setting store.url = *** from --store is not valid: it must be a URL such as "
        "postgresql://user:password@host/database.\n"
    )
