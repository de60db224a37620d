"""Configurations of clients, which must work from any folder."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

from memoriter.cli.app import app
from memoriter.extensions.mcp.commands import Client, client_entry

BESIDE = Path(sys.executable).with_name("memoriter")
PROGRAM = [str(BESIDE)] if BESIDE.exists() else [sys.executable, "-m", "memoriter"]


def slashed(words: Iterable[str]) -> list[str]:
    """Return words with the paths that every shell of Windows reads."""
    return [word.replace(os.sep, "/") for word in words]


def printed(*arguments: str) -> tuple[str, str]:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def test_the_configuration_for_claude_starts_this_program_with_this_workspace(workspace: Path) -> None:
    settings, advice = printed("--workspace", str(workspace), "mcp", "--print-config", "claude-code")
    server = json.loads(settings)["mcpServers"]["memoriter"]
    assert [server["command"], *server["args"]] == [*PROGRAM, "--workspace", str(workspace), "mcp"]
    assert shlex.split(advice.partition("or run: ")[2]) == slashed(
        [
            *("claude", "mcp", "add", "--scope", "user", "memoriter", "--"),
            *(*PROGRAM, "--workspace", str(workspace), "mcp"),
        ]
    )


def test_every_client_gets_the_same_command_in_its_own_format(workspace: Path, tmp_path: Path) -> None:
    before = ["--workspace", str(workspace), "--home", str(tmp_path / "my home"), "--agent", "bird"]
    after = ["--access", "read", "--slot", "memory-full"]
    started = [*PROGRAM, *before, "mcp", *after]
    forms = {
        client: printed(*before, "mcp", *after, "--print-config", client)[0] for client in get_args(Client)
    }
    entries = {
        **{
            client: json.loads(forms[client])["mcpServers"]["memoriter"]
            for client in ("claude-code", "claude-desktop", "cursor", "gemini", "windsurf")
        },
        "vscode": json.loads(forms["vscode"])["servers"]["memoriter"],
        "zed": json.loads(forms["zed"])["context_servers"]["memoriter"],
        "codex": tomllib.loads(forms["codex"])["mcp_servers"]["memoriter"],
        "openclaw": json.loads(forms["openclaw"])["mcp"]["servers"]["memoriter"],
        "json": json.loads(forms["json"])["memoriter"],
    }
    assert entries.keys() == forms.keys()
    assert {name: [one["command"], *one["args"]] for name, one in entries.items()} == dict.fromkeys(
        entries, started
    )


def test_codex_waits_for_the_memory(workspace: Path) -> None:
    settings, advice = printed("--workspace", str(workspace), "mcp", "--print-config", "codex")
    server = tomllib.loads(settings)["mcp_servers"]["memoriter"]
    assert (server["required"], server["startup_timeout_sec"]) == (True, 60)
    assert "`codex exec` answers the first prompt without the tools" in advice


def test_the_configuration_for_codex_escapes_any_path() -> None:
    started = ["/opt/鹭 \U0001f426/memoriter", "--workspace", 'C:\\a "b"', "mcp"]
    server = tomllib.loads(client_entry("codex", started))["mcp_servers"]["memoriter"]
    assert [server["command"], *server["args"]] == started


def test_the_command_for_openclaw_matches_its_configuration(workspace: Path) -> None:
    settings, advice = printed("--workspace", str(workspace), "mcp", "--print-config", "openclaw")
    *before, server = shlex.split(advice.partition("or run: ")[2])
    assert before == ["openclaw", "mcp", "set", "memoriter"]
    written = json.loads(settings)["mcp"]["servers"]["memoriter"]
    assert json.loads(server) == {
        "command": written["command"].replace(os.sep, "/"),
        "args": slashed(written["args"]),
    }


def test_the_command_for_vs_code_matches_its_configuration(workspace: Path) -> None:
    settings, advice = printed("--workspace", str(workspace), "mcp", "--print-config", "vscode")
    *before, server = shlex.split(advice.partition("or run: ")[2])
    assert before == ["code", "--add-mcp"]
    written = json.loads(settings)["servers"]["memoriter"]
    assert json.loads(server) == {
        "name": "memoriter",
        "type": "stdio",
        "command": written["command"].replace(os.sep, "/"),
        "args": slashed(written["args"]),
    }


def test_the_configuration_names_the_current_folder(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)
    settings, _ = printed("mcp", "--print-config", "json")
    assert json.loads(settings)["memoriter"]["args"] == [*PROGRAM[1:], "--workspace", str(workspace), "mcp"]
