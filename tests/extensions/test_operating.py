"""The operations with which an owner runs a memory: tokens, backups, hosts and settings."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from memoriter import Memory
from memoriter.tools.table import OPERATIONS
from memoriter.tools.toolbox import Toolbox


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace/MEMORY.md").write_text("# Facts\n", "utf-8")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.yaml").write_text("# mine\nembedding:\n  provider: none\n", "utf-8")
    with Memory.open(tmp_path / "workspace", home=home) as opened:
        opened.remember("Tea at four")
        yield opened


def ask(memory: Memory, operation: str, /, **arguments: object) -> dict[str, Any]:
    return Toolbox(memory, tools=OPERATIONS, access="admin").call(operation, arguments)


NAMES = [name for name in OPERATIONS if name.split(".")[0] in ("tokens", "backups", "hosts", "settings")]


@pytest.mark.parametrize("name", NAMES)
def test_only_the_owner_operates_a_memory(name: str) -> None:
    assert OPERATIONS[name].access == "admin"


def test_a_token_is_made_named_limited_listed_and_revoked(memory: Memory) -> None:
    made = ask(memory, "tokens.create", name="laptop", access="read", agents=["main"])
    assert made["token"].startswith("mmr_")
    (listed,) = ask(memory, "tokens.list")["tokens"]
    assert (listed["id"], listed["name"], listed["access"], listed["agents"]) == (
        made["id"],
        "laptop",
        "read",
        ["main"],
    )
    assert made["token"] not in str(listed)
    assert ask(memory, "tokens.revoke", id=made["id"])["revoked"] == made["id"]
    assert ask(memory, "tokens.list")["tokens"] == []


@pytest.mark.parametrize(
    "arguments",
    [{"name": "x", "access": "admin"}, {"name": "x", "agents": ["unknown"]}, {"name": " "}],
)
def test_a_token_that_would_permit_too_much_or_that_has_no_name_is_not_made(
    memory: Memory, arguments: dict[str, object]
) -> None:
    assert ask(memory, "tokens.create", **arguments)["error"]
    assert ask(memory, "tokens.list")["tokens"] == []


def test_a_backup_is_made_checked_read_in_parts_and_deleted(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ask(memory, "backups.create")
    assert (made["notes"], made["agents"]) == (1, ["main"])
    (listed,) = ask(memory, "backups.list")["backups"]
    assert (listed["name"], listed["bytes"]) == (made["name"], made["bytes"])
    checked = ask(memory, "backups.check", name=made["name"])
    assert (checked["files"], checked["notes"]) == (made["files"], 1)
    monkeypatch.setattr("memoriter.extensions.backup.operations.PIECE", 1000)
    content, offset = b"", 0
    while offset is not None:
        piece = ask(memory, "backups.read", name=made["name"], offset=offset)
        content, offset = content + base64.b64decode(piece["data"]), piece["next"]
    assert content == Path(made["path"]).read_bytes()
    assert ask(memory, "backups.remove", name=made["name"])["backups"] == []


@pytest.mark.parametrize("name", ["../config.yaml", "memoriter-1.zip", "/etc/passwd", "config.yaml"])
def test_only_backups_are_read_or_deleted(memory: Memory, name: str) -> None:
    for operation in ("backups.read", "backups.check", "backups.remove", "backups.restore"):
        assert "There is no backup" in ask(memory, operation, name=name)["error"]
    assert (memory.settings.home / "config.yaml").is_file()


def test_only_a_gateway_restores_a_backup(memory: Memory) -> None:
    made = ask(memory, "backups.create")
    said = ask(memory, "backups.restore", name=made["name"])["error"]
    assert f"Run `memoriter restore {made['path']} --force`" in said


def test_settings_are_listed_changed_and_reset_and_comments_stay(memory: Memory) -> None:
    listed = {one["key"]: one for one in ask(memory, "settings.list")["settings"]}
    assert listed["entries.approval"]["choices"] == ["none", "agent", "all"]
    assert listed["entries.capture"] == {
        "key": "entries.capture",
        "kind": "switch",
        "value": True,
        "default": True,
        "choices": [],
    }
    assert (listed["search.max_results"]["kind"], listed["search.max_results"]["least"]) == ("number", 1)
    file = memory.settings.home / "config.yaml"
    assert ask(memory, "settings.set", key="entries.approval", value="agent")["path"] == str(file)
    assert file.read_text("utf-8").startswith("# mine\n")
    assert "approval: agent" in file.read_text("utf-8")
    ask(memory, "settings.set", key="entries.approval")
    assert "approval" not in file.read_text("utf-8")


@pytest.mark.parametrize(
    ("key", "value"),
    [("llm.base_url", "https://example.org"), ("nothing", "1"), ("search.max_results", "many")],
)
def test_settings_that_name_an_address_and_wrong_values_are_refused(
    memory: Memory, key: str, value: str
) -> None:
    before = (memory.settings.home / "config.yaml").read_bytes()
    assert ask(memory, "settings.set", key=key, value=value)["error"]
    assert (memory.settings.home / "config.yaml").read_bytes() == before


def test_hosts_and_agents_are_listed_with_their_last_recall(memory: Memory) -> None:
    memory.recall("when is tea?")
    listed = ask(memory, "hosts.list")
    (agent,) = listed["agents"]
    assert (agent["name"], agent["workspace"]) == ("main", str(memory.settings.workspace))
    assert all(host["state"] in ("connected", "incomplete", "not connected") for host in listed["hosts"])


def test_a_settings_file_in_braces_is_left_to_the_owner(memory: Memory) -> None:
    file = memory.settings.home / "config.yaml"
    file.write_text('{"embedding": {"provider": "none"}}', "utf-8")
    refused = ask(memory, "settings.set", key="entries.approval", value="agent")
    assert "cannot be set automatically in this file. Edit it by hand." in refused["error"]
    assert file.read_text("utf-8") == '{"embedding": {"provider": "none"}}'
