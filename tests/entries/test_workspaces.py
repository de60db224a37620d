"""Entries record the workspace in which they were learned, and can be limited to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from memoriter.memory import Memory
from memoriter.records import Entry, Selection
from memoriter.testing import HashEmbedder


@contextmanager
def opened(root: Path, workspace: str, **overrides: object) -> Iterator[Memory]:
    with Memory.open(
        root / workspace, home=root / "home", overrides=overrides, embedder=HashEmbedder()
    ) as memory:
        yield memory


ONLY = {"entries.workspace_only": True}


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Two workspaces of one home, with one entry learned in each."""
    for name, text in (("work", "We deploy with Ansible"), ("family", "The cat is called Luna")):
        (tmp_path / name).mkdir()
        with opened(tmp_path, name) as memory:
            memory.remember(text)
    return tmp_path


def texts(entries: list[Entry]) -> set[str]:
    return {entry.text for entry in entries}


def test_an_entry_records_its_workspace_and_is_shared_by_default(two: Path) -> None:
    with opened(two, "work") as memory:
        recorded = {entry.text: entry.workspace for entry in memory.entries.list()}
    assert recorded == {
        "We deploy with Ansible": str(two / "work"),
        "The cat is called Luna": str(two / "family"),
    }


def test_a_filter_limits_lists_searches_and_exports_to_a_workspace(two: Path) -> None:
    work = str(two / "work")
    with opened(two, "family") as memory:
        entries = memory.entries
        assert texts(entries.list(workspace=work)) == {"We deploy with Ansible"}
        found = entries.search("cat Luna Ansible deploy", threshold=0, workspace=work).hits
        assert [hit.entry.text for hit in found] == ["We deploy with Ansible"]
        exported = [json.loads(line) for line in entries.export(workspace=work)]
        assert [line["entry"]["text"] for line in exported if "entry" in line] == ["We deploy with Ansible"]


def test_the_setting_hides_entries_of_other_workspaces(two: Path) -> None:
    with opened(two, "work", **ONLY) as memory:
        assert texts(memory.entries.list()) == {"We deploy with Ansible"}
        assert texts(list(memory.entries.page().entries)) == {"We deploy with Ansible"}
        assert memory.search("cat Luna", source="entries").hits == ()
        assert "Luna" not in memory.recall("what is the cat called? Luna").text
    with opened(two, "family", **ONLY) as memory:
        assert "Luna" in memory.recall("what is the cat called? Luna").text


def test_with_the_setting_a_statement_does_not_change_entries_of_other_workspaces(two: Path) -> None:
    with opened(two, "work", **ONLY) as memory:
        remembered = memory.remember("The cat is called Luna")
        assert remembered.action == "added"
    with opened(two, "family") as memory:
        places = [entry.workspace for entry in memory.entries.list() if "Luna" in entry.text]
    assert sorted(filter(None, places)) == [str(two / "family"), str(two / "work")]


def test_forgetting_names_the_other_workspaces_whose_notes_it_does_not_reach(two: Path) -> None:
    with opened(two, "work") as memory:
        receipt = memory.erase(Selection(query="We deploy with Ansible"))
    assert "notes of other workspaces, and their indexes: family. Forget it there too" in receipt.not_covered


def test_an_export_and_an_import_keep_the_workspace(two: Path, tmp_path: Path) -> None:
    with opened(two, "work") as memory:
        lines = "\n".join(memory.entries.export())
    with Memory.open(two / "work", home=tmp_path / "other", embedder=HashEmbedder()) as memory:
        memory.entries.import_(lines)
        assert {entry.workspace for entry in memory.entries.list()} == {
            str(two / "work"),
            str(two / "family"),
        }


def test_a_database_without_workspaces_is_opened_and_its_entries_belong_to_every_workspace(two: Path) -> None:
    database = two / "home/agents/main/memory.db"
    connection = apsw.Connection(str(database))
    for name, table in connection.execute(
        "select name, tbl_name from sqlite_schema where type = 'trigger'"
    ).fetchall():
        connection.execute(f"drop trigger {name}")
        if name.endswith("_inserted"):
            connection.execute(f"alter table {table} drop column checksum")
    connection.execute("alter table entries drop column workspace")
    connection.execute("pragma user_version = 5")
    connection.close()
    with opened(two, "work", **ONLY) as memory:
        assert {entry.text: entry.workspace for entry in memory.entries.list()} == {
            "We deploy with Ansible": None,
            "The cat is called Luna": None,
        }
