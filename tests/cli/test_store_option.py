"""Commands on a memory that a Postgres server holds."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from postgres_cluster import PostgresCluster

import memoriter
from memoriter.cli import execute
from memoriter.files.platform import quote


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
    entry_id = added["entry"]["id"]
    run("one", "save", "The harbour light faces north.")
    listed = run("two", "list")
    assert [entry["text"] for entry in listed["entries"]] == ["Alice drinks green tea in the morning"]
    found = run("two", "search", "harbour light")
    assert "harbour light faces north" in json.dumps(found)
    assert [event["kind"] for event in run("two", "history", entry_id)["history"]] == ["add"]
    receipt = run("two", "forget", entry_id, "--now", "--yes")
    assert "write-ahead log" in json.dumps(receipt)
    assert run("one", "list")["entries"] == []
    assert postgres.url not in json.dumps([run("one", "status"), run("one", "config", "show")])
    execute(["--home", str(tmp_path / "one"), "--store", postgres.url, "backup", str(tmp_path / "x.zip")])
    assert "Every file was verified." in capsys.readouterr().out


def test_an_invalid_url_is_reported_with_the_name_of_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["--home", str(tmp_path), "--store", "mysql://host/db", "search", "tea"]) == 1
    assert capsys.readouterr().err == (
        "memoriter: The setting store.url = *** from --store is not valid: it must be a URL such as "
        "postgresql://user:password@host/database.\n"
    )


@pytest.mark.parametrize("command", [["index"], ["search", "light"], ["serve"], ["config", "show"]])
def test_a_workspace_on_the_command_line_is_wrong_usage_with_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    server = ["--home", str(tmp_path), "--store", "postgresql://db.invalid/memory"]
    assert execute([*server, "--workspace", str(tmp_path / "notes"), *command]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"memoriter: The folder {tmp_path / 'notes'} is not read, because a server holds the notes (`store.url`): "
        f"leave out the workspace, and run `memoriter push {quote(str(tmp_path / 'notes'))}` to copy the notes to "
        "the server.\n"
    )


def test_python_refuses_a_workspace_with_a_server(tmp_path: Path) -> None:
    with pytest.raises(memoriter.BadArgument, match="is not read, because a server holds the notes"):
        memoriter.open(
            tmp_path / "notes", home=tmp_path, overrides={"store.url": "postgresql://db.invalid/memory"}
        )


@pytest.mark.integration
def test_the_command_that_the_refusal_names_copies_the_notes(
    postgres: PostgresCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in {
        "STORE__URL": postgres.url,
        "STORE__TENANT": uuid.uuid4().hex,
        "EMBEDDING__PROVIDER": "none",
        "SEARCH__RERANK": "false",
        "HOME": str(tmp_path / "home"),
    }.items():
        monkeypatch.setenv(f"MEMORITER_{name}", value)
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "MEMORY.md").write_text("The harbour light faces north.\n")
    assert execute(["--workspace", str(notes), "index"]) == 2
    monkeypatch.setenv("MEMORITER_WORKSPACE", str(notes))
    assert execute(["search", "light"]) == 1
    command = re.findall("`memoriter (push [^`]+)`", capsys.readouterr().err)
    assert command == [f"push {notes}"] * 2
    monkeypatch.delenv("MEMORITER_WORKSPACE")
    assert execute(command[0].split()) == 0
    assert execute(["search", "harbour light"]) == 0
    assert "The harbour light faces north." in capsys.readouterr().out
