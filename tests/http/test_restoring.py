"""The owner restores a backup while the gateway runs. Requests wait until the memory is open again."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import httpx
from gateways import Start, ask, poll


def texts(client: httpx.Client) -> set[str]:
    return {one["text"] for one in ask(client, "entries.list")["entries"]}


def restored(client: httpx.Client, name: str, **arguments: object) -> dict[str, Any]:
    """Restore a backup, wait until the gateway has done it, and return what it says."""
    ask(client, "backups.restore", name=name, **arguments)
    found = list[dict[str, Any]]()

    def is_done() -> bool:
        try:  # a request that the gateway has accepted when it shuts down may fail
            answer = client.post("/v1/agents/main/backups.list", json={})
        except httpx.TransportError:
            return False
        last = answer.json()["restored"] if answer.status_code == 200 else None
        found[:] = [last] if last else []
        return bool(last) and last["name"] == name

    poll(is_done)
    return found[0]


def test_a_backup_is_restored_and_what_was_there_can_be_restored_again(start: Start, workspace: Path) -> None:
    note = workspace / "MEMORY.md"
    note.write_text("# Facts\n\nThe quay is long.\n", "utf-8")
    gateway = start()
    client, page = gateway.caller(), gateway.page()
    ask(client, "entries.add", text="Tea at four")
    name = ask(client, "backups.create")["name"]
    note.write_text("# Facts\n\nThe quay is short.\n", "utf-8")
    (workspace / "memory").mkdir(exist_ok=True)
    (workspace / "memory/later.md").write_text("Written later.\n", "utf-8")
    ask(client, "entries.add", text="Coffee at nine")

    done = restored(client, name)

    assert done["error"] == ""
    assert Path(done["replaced"]).is_dir()
    assert texts(client) == {"Tea at four"}
    assert "long" in note.read_text("utf-8")
    assert (workspace / "memory/later.md").is_file()  # not in the backup, so it stays
    assert "long" in ask(client, "memory.search", query="how long is the quay?")["results"][0]["snippet"]
    assert page.get("/v1/agents").status_code == 200  # the browser is still signed in
    (before,) = [one["name"] for one in ask(client, "backups.list")["backups"] if one["name"] != name]
    assert before == done["before"]
    restored(client, before)
    assert texts(client) == {"Tea at four", "Coffee at nine"}


def test_a_damaged_backup_changes_nothing(start: Start) -> None:
    gateway = start()
    client = gateway.caller()
    ask(client, "entries.add", text="Tea at four")
    made = ask(client, "backups.create")
    path = Path(made["path"])
    path.write_bytes(path.read_bytes()[:-400])
    answer = client.post("/v1/agents/main/backups.restore", json={"name": made["name"]})
    assert (answer.status_code, answer.json()["code"]) == (400, "backup_failed")
    assert texts(client) == {"Tea at four"}
    assert ask(client, "backups.list")["restored"] is None


def test_settings_that_need_consent_are_named_before_they_are_restored(start: Start, tmp_path: Path) -> None:
    home, gateway = tmp_path / "home", start()
    client = gateway.caller()
    made = ask(client, "backups.create")
    with zipfile.ZipFile(made["path"]) as archive:
        has_settings = "config.yaml" in archive.namelist()
    assert not has_settings
    (home / "config.yaml").write_text("llm:\n  base_url: http://other.example/v1\n", "utf-8")
    second = home / "backups/memoriter-2026-01-01-000000.zip"
    Path(ask(client, "backups.create")["path"]).rename(second)
    (home / "config.yaml").unlink()
    assert ask(client, "backups.check", name=made["name"])["brings"] == []
    brings = ask(client, "backups.check", name=second.name)["brings"]
    assert brings == ["llm.base_url = http://other.example/v1"]
    refused = client.post("/v1/agents/main/backups.restore", json={"name": second.name})
    assert (refused.status_code, "llm.base_url" in refused.json()["error"]) == (400, True)
    assert restored(client, second.name, accept=True)["error"] == ""
    assert "other.example" in (home / "config.yaml").read_text("utf-8")
