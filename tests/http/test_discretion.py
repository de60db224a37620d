"""Only `admin` callers see absolute paths. The text of notes is never changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path, PureWindowsPath

import pytest
from gateways import Running, Start, ask

from memoriter import Memory
from memoriter.tools.table import OPERATIONS
from memoriter.tools.toolbox import Toolbox, hide_folders


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("The workspace /srv/mira/日记 is not a folder.", "The workspace …/日记 is not a folder."),
        ("(/srv/a b/c.db: the disk is full)", "(…/a b/c.db: the disk is full)"),
        (r"C:\Users\mira\notes\x.md is gone", "…/x.md is gone"),
        ("C:/Users/mira/notes/x.md is gone", "…/x.md is gone"),
        (r"\\server\share\x.md is gone", "…/x.md is gone"),
        (r"\d+\s\w is a pattern", r"\d+\s\w is a pattern"),
        ("memory/2026-02-08.md is as it was", "memory/2026-02-08.md is as it was"),
        ("see http://127.0.0.1:8377/v1/agents/x", "see http://127.0.0.1:8377/v1/agents/x"),
        ("~/.memoriter/config.yaml", "~/.memoriter/config.yaml"),
        ("3 / 4 / 5", "3 / 4 / 5"),
    ],
)
def test_paths_are_shortened_to_the_file_name_and_other_text_stays(text: str, seen: str) -> None:
    assert hide_folders(text) == seen


def test_the_home_folder_is_hidden_even_with_spaces_in_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, "/homes/Mira de Sá")
    assert hide_folders("no /homes/Mira de Sá here") == "no ~ here"
    assert hide_folders("no /homes/Mira de Sá/acme/notes.md here") == "no …/notes.md here"


def test_a_folder_that_shares_a_prefix_with_the_home_folder_is_not_hidden_as_home(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, "/homes/mi")
    assert hide_folders("no /homes/mira/acme/notes.md here") == "no …/notes.md here"
    assert hide_folders("no /homes/mi-2/acme/notes.md, in /homes/mi.") == "no …/notes.md, in ~."


def test_folders_of_the_memory_are_recognized_with_spaces_in_their_names() -> None:
    places = [Path("/mnt/a deal/notes"), Path("/mnt/a deal/notes/my state")]
    for text, seen in (
        ("/mnt/a deal/notes", "…/notes"),
        ("in /mnt/a deal/notes: 3 files", "in …/notes: 3 files"),
        ("/mnt/a deal/notes/my state/agents/main/index.db", "…/index.db"),
        ("/mnt/a deal/notes/memory/x.md is gone", "…/x.md is gone"),
    ):
        assert hide_folders(text, places) == seen


@pytest.mark.parametrize("separator", ["\\", "/"])
def test_folders_of_windows_are_recognized_with_either_separator(separator: str) -> None:
    places = [PureWindowsPath("D:/a deal/notes"), PureWindowsPath("//server/a deal/state")]
    for text, seen in (
        ("in D:/a deal/notes: 3 files", "in …/notes: 3 files"),
        ("D:/a deal/notes/memory/x.md is gone", "…/x.md is gone"),
        ("//server/a deal/state/agents/index.db", "…/index.db"),
    ):
        hidden = hide_folders(text.replace("/", separator), places)  # type: ignore[arg-type]
        assert hidden == seen


def test_tools_hide_the_folders_of_a_memory_from_readers(tmp_path: Path) -> None:
    notes = tmp_path / "a deal" / "notes"
    notes.mkdir(parents=True)
    state = notes.with_name("state")
    with Memory.open(notes, home=state, overrides={"embedding.provider": "none"}) as memory:
        status = Toolbox(memory, tools=OPERATIONS, access="read").call("memory.status")
    assert (status["workspace"], status["indexPath"]) == ("…/notes", "…/index.db")


def responses(gateway: Running, access: str, *names: str) -> str:
    caller = gateway.caller(access)  # type: ignore[arg-type]
    return json.dumps([caller.post(f"/v1/agents/main/{name}", json={}).json() for name in names])


def test_only_admin_callers_see_absolute_paths(gateway: Running, tmp_path: Path, workspace: Path) -> None:
    names = ("memory.status", "health.get", "memory.probe", "memory_stats")
    in_json = {path: json.dumps(str(path)).strip('"') for path in (workspace, tmp_path)}
    assert in_json[workspace] in responses(gateway, "admin", *names)
    for access in ("read", "write"):
        assert in_json[tmp_path] not in responses(gateway, access, *names)
    status = ask(gateway.caller("read"), "memory.status")
    assert (status["workspace"], status["indexPath"]) == (f"…/{workspace.name}", "…/index.db")


def test_no_operation_shows_readers_the_path_of_a_missing_workspace(
    start: Start, tmp_path: Path, workspace: Path
) -> None:
    with Memory.open(workspace, home=tmp_path / "home", overrides={"embedding.provider": "none"}) as memory:
        memory.sync()
    shutil.rmtree(workspace)
    caller = start(watch__enabled=False).caller("read")
    given = {"query": "backup", "path": "memory/x.md", "id": "1f0c2a9e", "name": "Mira", "sentence": "backup"}
    for name, tool in OPERATIONS.items():
        if tool.access == "read":
            needed = {argument: given[argument] for argument in tool.schema()["required"]}
            answer = caller.post(f"/v1/agents/main/{name}", json=needed)
            assert json.dumps(str(tmp_path)).strip('"') not in answer.text, (name, answer.text)
    assert f"…/{workspace.name} is not a folder" in caller.post("/v1/agents/main/health.get", json={}).text


def test_paths_inside_notes_are_not_changed(gateway: Running, workspace: Path) -> None:
    (workspace / "memory" / "places.md").write_text("The archive is in /srv/archive/2024/photos.\n", "utf-8")
    reader = gateway.caller("read")
    ask(gateway.caller(), "memory.sync")
    assert "/srv/archive/2024/photos" in ask(reader, "memory_get", path="memory/places.md")["text"]
    [hit] = ask(reader, "memory.search", query="archive", maxResults=1)["results"]
    assert "/srv/archive/2024/photos" in hit["snippet"]
