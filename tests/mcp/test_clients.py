"""What a client's settings must say: entries to copy, right from any folder."""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recollect.doors.cli.app import app

BESIDE = Path(sys.executable).with_name("recollect")


def printed(*arguments: str) -> tuple[str, str]:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


def test_the_entry_for_claude_starts_this_program_over_this_workspace(workspace: Path) -> None:
    entry, told = printed("--workspace", str(workspace), "mcp", "--print-config", "claude")
    server = json.loads(entry)["mcpServers"]["recollect"]
    assert [server["command"], *server["args"]] == [str(BESIDE), "--workspace", str(workspace), "mcp"]
    assert told.rstrip().endswith(
        f"claude mcp add recollect -- {shlex.join([str(BESIDE), '--workspace', str(workspace), 'mcp'])}"
    )


def test_every_client_is_given_the_same_command_in_its_own_form(workspace: Path, tmp_path: Path) -> None:
    before = ["--workspace", str(workspace), "--home", str(tmp_path / "my home"), "--agent", "bird"]
    after = ["--access", "read", "--slot", "memory-full"]
    started = [str(BESIDE), *before, "mcp", *after]
    forms = {
        client: printed(*before, "mcp", *after, "--print-config", client)[0]
        for client in ("claude", "cursor", "codex", "json")
    }
    entries = {
        "claude": json.loads(forms["claude"])["mcpServers"]["recollect"],
        "cursor": json.loads(forms["cursor"])["mcpServers"]["recollect"],
        "codex": tomllib.loads(forms["codex"])["mcp_servers"]["recollect"],
        "json": json.loads(forms["json"])["recollect"],
    }
    assert {name: [one["command"], *one["args"]] for name, one in entries.items()} == dict.fromkeys(
        entries, started
    )


def test_the_folder_one_stands_in_is_named_in_the_entry(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    entry, _ = printed("mcp", "--print-config", "json")
    assert json.loads(entry)["recollect"]["args"] == ["--workspace", str(workspace), "mcp"]


def test_http_is_pointed_to_the_gateway() -> None:
    done = CliRunner().invoke(app, ["mcp", "--http"])
    assert done.exit_code == 2
    assert "`recollect serve` offers it at /mcp" in " ".join(done.stderr.split())
