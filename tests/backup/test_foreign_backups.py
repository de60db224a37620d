"""A restore of a backup from someone else writes notes below the workspace that the owner named, and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from memoriter.errors import BackupError
from memoriter.extensions.backup.restoring import restore
from memoriter.files import platform


def forge(
    file: Path, content: dict[str, bytes], *, member: dict[str, object] | None = None, **manifest: object
) -> Path:
    """Write a backup with these files and a manifest that matches them, except for what is given."""
    members: dict[str, Any] = {
        name: {
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
            "modified": 1_700_000_000.0,
            **(member or {}),
        }
        for name, data in content.items()
    }
    head = {
        "format": "memoriter-backup",
        "version": 1,
        "memoriter": "0",
        "created_at": 1.0,
        "workspace": "",
        "workspace_in_home": True,
        "files": members,
        **manifest,
    }
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
        archive.writestr("manifest.json", json.dumps(head))
    return file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "foreign.zip"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.mark.parametrize(
    "name",
    [
        ".ssh/authorized_keys",
        ".config/autostart/x.md",
        "memory/.hidden.md",
        "sub/.memoriter.yaml",
        ".bashrc",
        "\ud800.md",
        "a\nb.md",
    ],
)
def test_hidden_and_odd_names_are_refused(file: Path, home: Path, tmp_path: Path, name: str) -> None:
    digest = hashlib.sha256(b"").hexdigest()
    forge(file, {}, files={f"notes/{name}": {"bytes": 0, "sha256": digest, "modified": 1.0}})
    with pytest.raises(BackupError, match="unsafe name"):
        restore(file, home=home, workspace=tmp_path / "notes", force=True, accept=True)
    assert (home.exists(), (tmp_path / "notes").exists()) == (False, False)


def test_files_that_are_not_text_need_consent(file: Path, home: Path, tmp_path: Path) -> None:
    forge(file, {"notes/MEMORY.md": b"Tabs.\n", "notes/bin/run.sh": b"#!/bin/sh\n"})
    notes = tmp_path / "notes"
    with pytest.raises(BackupError, match=r"the file bin/run\.sh\. If you trust .* with --yes"):
        restore(file, home=home, workspace=notes)
    assert not notes.exists()
    restore(file, home=home, workspace=notes, accept=True)
    assert platform.is_private(notes / "bin/run.sh")
    assert not os.access(notes / "bin/run.sh", os.X_OK) or os.name == "nt"


@pytest.mark.parametrize("where", ["elsewhere", "../relative", "~/notes"])
def test_a_workspace_that_only_the_backup_names_is_refused(
    file: Path, home: Path, tmp_path: Path, where: str
) -> None:
    workspace = str(tmp_path / where) if where == "elsewhere" else where
    forge(file, {"notes/MEMORY.md": b"Tabs.\n"}, workspace=workspace, workspace_in_home=False)
    with pytest.raises(BackupError, match=r"Name the folder for them with --workspace"):
        restore(file, home=home, accept=True)
    assert (home.exists(), (tmp_path / "elsewhere").exists()) == (False, False)


def test_the_configured_workspace_needs_no_option(file: Path, home: Path, tmp_path: Path) -> None:
    notes = tmp_path / "elsewhere"
    forge(file, {"notes/MEMORY.md": b"Tabs.\n"}, workspace=str(notes), workspace_in_home=False)
    home.mkdir()
    (home / "config.yaml").write_text(f"workspace: {notes}\n", "utf-8")
    restore(file, home=home, force=True)
    assert (notes / "MEMORY.md").read_text("utf-8") == "Tabs.\n"


@pytest.mark.parametrize("force", [False, True])
def test_a_link_in_the_workspace_is_not_followed(file: Path, home: Path, tmp_path: Path, force: bool) -> None:
    notes, outside = tmp_path / "notes", tmp_path / "outside"
    notes.mkdir()
    outside.mkdir()
    (notes / "memory").symlink_to(outside)
    forge(file, {"notes/memory/a.md": b"Tabs.\n"})
    with pytest.raises(BackupError, match="symbolic link"):
        restore(file, home=home, workspace=notes, force=force)
    assert (list(outside.iterdir()), home.exists()) == ([], False)


def test_a_folder_that_becomes_a_link_during_the_restore_is_not_followed(
    file: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, outside = tmp_path / "notes", tmp_path / "outside"
    notes.mkdir()
    outside.mkdir()
    forge(file, {"agents/main/sessions/a.jsonl": b"{}\n", "notes/memory/a.md": b"Tabs.\n"})
    rename = os.rename

    def swap(source: Path, target: Path) -> None:
        rename(source, target)
        if not (notes / "memory").exists():
            (notes / "memory").symlink_to(outside)

    with monkeypatch.context() as patch:
        patch.setattr("os.rename", swap)
        with pytest.raises(BackupError, match="symbolic link"):
            restore(file, home=home, workspace=notes)
    assert list(outside.iterdir()) == []
    (notes / "memory").unlink()
    restore(file, home=home, workspace=notes)
    assert (notes / "memory/a.md").read_text("utf-8") == "Tabs.\n"


def test_settings_that_name_programs_and_addresses_are_shown_and_need_consent(file: Path, home: Path) -> None:
    config = b"memory:\n  qmd:\n    command: /tmp/evil\nembedding:\n  base_url: http://evil.example\n"
    forge(file, {"config.yaml": config})
    with pytest.raises(BackupError) as refused:
        restore(file, home=home)
    assert str(refused.value) == (
        f"{file} brings what may run a program, send or read text elsewhere, or trust others: "
        "embedding.base_url = http://evil.example, "
        "memory.qmd.command = /tmp/evil. If you trust its author, restore it with --yes."
    )
    assert not home.exists()
    restore(file, home=home, accept=True)
    assert (home / "config.yaml").read_bytes() == config
    restore(file, home=home, force=True)  # the owner has these settings already


@pytest.mark.parametrize(
    ("config", "shown"),
    [
        ("files:\n  extra_paths: [/etc]\n", 'files.extra_paths = ["/etc"]'),
        ("collections:\n- path: /root\n", "collections"),
        ("embedding:\n  provider: openai\n  openai_api_key: sk-theirs\n", "embedding.openai_api_key, "),
        ("index:\n  vector_engine: pinecone\n", "index.vector_engine = pinecone"),
        ("memory:\n  backend: qmd\n", "memory.backend = qmd"),
        ("memory:\n  scope:\n    default: allow\n", "memory.scope.default = allow"),
        ("sessions:\n  local_tools: ['*']\n", 'sessions.local_tools = ["*"]'),
        ("sessions:\n  owner_names: [Mallory]\n", 'sessions.owner_names = ["Mallory"]'),
        ("embedding:\n  redact: false\n", "embedding.redact = false"),
        (
            "search:\n  reranker: gguf\nreranker:\n  path: /net/host/a.gguf\n",
            'reranker.path = "/net/host/a.gguf"',
        ),
        (
            "entries:\n  database: /elsewhere/m.db\nsearch:\n  max_results: many\n",
            "search.max_results = 'many'",
        ),
    ],
)
def test_settings_that_read_elsewhere_or_trust_others_need_consent(
    file: Path, home: Path, config: str, shown: str
) -> None:
    forge(file, {"config.yaml": config.encode()})
    if os.name == "nt":  # a path gets the drive of the home, and JSON doubles its separators
        shown = shown.replace("/", "\\\\").replace('"\\\\', f'"{home.drive}\\\\')
    with pytest.raises(BackupError) as refused:
        restore(file, home=home)
    assert shown in str(refused.value)
    assert "sk-theirs" not in str(refused.value)
    assert not home.exists()


def test_what_stays_on_this_machine_needs_no_consent(file: Path, home: Path, tmp_path: Path) -> None:
    config = (
        b"embedding:\n  provider: local\nmemory:\n  scope:\n    default: deny\nentries:\n  approval: all\n"
    )
    forge(file, {"config.yaml": config, "notes/report.qmd": b"# Report\n", "notes/lease.pdf": b"%PDF-1.4"})
    restore(file, home=home, workspace=tmp_path / "notes")
    assert (tmp_path / "notes" / "report.qmd").is_file()


def test_secret_addresses_are_not_printed(file: Path, home: Path) -> None:
    forge(file, {"config.yaml": b"store:\n  url: postgresql://me:hunter2@db.example/x\n"})
    with pytest.raises(BackupError, match=r"store\.url\.") as refused:
        restore(file, home=home)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("manifest", "member"),
    [
        ({"files": []}, None),
        ({"files": {"notes/a.md": 3}}, None),
        ({"files": None}, None),
        ({"workspace": 3}, None),
        ({"workspace_in_home": "yes"}, None),
        ({"created_at": "now"}, None),
        ({}, {"bytes": "3"}),
        ({}, {"bytes": -1}),
        ({}, {"sha256": None}),
        ({}, {"modified": "x"}),
        ({}, {"modified": 1e300}),
        ({}, {"modified": float("nan")}),
        ({}, {"more": 1}),
    ],
)
def test_a_forged_manifest_is_one_sentence(
    file: Path, home: Path, manifest: dict[str, object], member: dict[str, object] | None
) -> None:
    forge(file, {"notes/a.md": b"abc"}, member=member, **manifest)
    with pytest.raises(BackupError, match="is damaged"):
        restore(file, home=home)
    assert not home.exists()


def test_names_that_are_a_file_and_a_folder_are_one_sentence(file: Path, home: Path) -> None:
    forge(file, {"agents/main/a": b"x", "agents/main/a/b": b"x"})
    with pytest.raises(BackupError, match="was not restored"):
        restore(file, home=home)
    assert not (home / "agents").exists()


def test_settings_that_are_not_text_are_one_sentence(file: Path, home: Path) -> None:
    forge(file, {"config.yaml": b"\xff\xfe"})
    with pytest.raises(BackupError, match=r"config\.yaml is not UTF-8"):
        restore(file, home=home)


def test_an_archive_that_expands_without_measure_is_refused(
    file: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoriter.extensions.backup.checking.FREE_BYTES", 1 << 20)
    forge(file, {"agents/main/sessions/a.jsonl": bytes(3 << 20)})
    with pytest.raises(BackupError, match="expands to 3 MB"):
        restore(file, home=home)
    assert not home.exists()


def test_restored_notes_belong_to_their_owner_alone(file: Path, home: Path, tmp_path: Path) -> None:
    forge(file, {"notes/memory/a.md": b"Tabs.\n", "notes/.memoriter.yaml": b"search:\n  max_results: 4\n"})
    notes = tmp_path / "notes"
    restore(file, home=home, workspace=notes)
    private = {path.relative_to(notes).as_posix(): platform.is_private(path) for path in notes.rglob("*")}
    assert private == {"memory": True, "memory/a.md": True, ".memoriter.yaml": True}
