"""`install claude-code` writes the plugin and registers it with Claude Code's own commands. `uninstall` undoes both."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_claude_code import Ran, Run

from memoriter import __version__
from memoriter.extensions import claude_code
from memoriter.extensions.clients.installed_files import plugin_folder
from memoriter.extensions.clients.parts import JsonHooks
from memoriter.extensions.clients.table import CLAUDE_EVENTS
from memoriter.files.platform import quote

Memoriter = Callable[..., Ran]

#: Stand in for the program: each records its arguments and fails if a file of that name exists.
CLAUDE = """#!/bin/sh
echo "$@" >> "$HOME/calls"
if [ -e "$HOME/broken" ]; then echo "✘ The marketplace is broken." >&2; exit 1; fi
if [ -e "$HOME/removed" ]; then echo "✘ Failed to remove: \"$3\" not found in installed plugins" >&2; exit 1; fi
"""

CLAUDE_OF_NPM = f"""@echo off
"{sys.executable}" "%~dp0claude.py" %*
"""
CLAUDE_PY = """
import os, pathlib, sys
home = pathlib.Path(os.environ["HOME"])
with (home / "calls").open("a", encoding="utf-8", newline="\\n") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
sys.stderr.reconfigure(encoding="utf-8")
if (home / "broken").exists():
    sys.exit("✘ The marketplace is broken.")
if (home / "removed").exists():
    sys.exit(f'✘ Failed to remove: "{sys.argv[3]}" not found in installed plugins')
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    for name in ("user", "project", "bin"):
        (tmp_path / name).mkdir()
    home, programs = str(tmp_path / "user"), tmp_path / "bin"
    if sys.platform == "win32":
        (programs / "claude.cmd").write_text(CLAUDE_OF_NPM)
        (programs / "claude.py").write_text(CLAUDE_PY)
        path = f"{programs};{os.environ['PATH']}"
    else:
        (programs / "claude").write_text(CLAUDE)
        (programs / "claude").chmod(0o755)
        path = f"{programs}:/usr/bin:/bin"
    places = {"PATH": path, "HOME": home, "USERPROFILE": home}
    return {**os.environ, **places, "MEMORITER_EMBEDDING__PROVIDER": "none"}


@pytest.fixture
def memoriter(environment: dict[str, str], tmp_path: Path, forked: Run) -> Memoriter:
    return lambda *arguments: forked(list(arguments), b"", environment, tmp_path / "project")


def calls(tmp_path: Path) -> list[str]:
    file = tmp_path / "user" / "calls"
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.requirement("X13")
def test_the_plugin_is_registered_and_removed(memoriter: Memoriter, tmp_path: Path) -> None:
    notes, folder = tmp_path / "my notes", tmp_path / "user" / ".memoriter" / "claude-code" / "memoriter"
    shown = memoriter("--workspace", str(notes), "install", "claude-code", "--dry-run")
    assert (shown.code, list((tmp_path / "user").iterdir())) == (0, [])
    install = "plugin install memoriter@memoriter --scope user"
    to_copy = [
        f"claude plugin marketplace add {quote(str(folder))} --scope user",
        f"claude plugin install {quote('memoriter@memoriter')} --scope user",
    ]
    assert shown.output.decode().splitlines() == [f"plugin: {folder}", *to_copy]

    done = memoriter("--workspace", str(notes), "install", "claude-code", "--json")
    assert json.loads(done.output) == {
        "host": "claude-code",
        "dryRun": False,
        "workspace": str(notes),
        "plugin": str(folder),
        "commands": to_copy,
    }
    assert calls(tmp_path) == [f"plugin marketplace add {folder} --scope user", install]
    marketplace = json.loads((folder / ".claude-plugin" / "marketplace.json").read_text())
    assert [plugin["source"] for plugin in marketplace["plugins"]] == ["./plugin"]

    assert memoriter("uninstall", "claude-code").code == 0
    assert calls(tmp_path)[2:] == [
        "plugin uninstall memoriter@memoriter --scope user",
        "plugin marketplace remove memoriter --scope user",
    ]
    assert not folder.exists()
    assert memoriter("uninstall", "claude-code").code == 0  # nothing is left to remove
    assert len(calls(tmp_path)) == 4


@pytest.mark.posix("/bin/sh")
def test_the_commands_of_the_plugin_run_in_a_shell(
    memoriter: Memoriter, environment: dict[str, str], tmp_path: Path
) -> None:
    notes = tmp_path / "my notes & 'more' $HOME"
    memoriter("--workspace", str(notes), "install", "claude-code")
    plugin = tmp_path / "user" / ".memoriter" / "claude-code" / "memoriter" / "plugin"
    hooks = json.loads((plugin / "hooks" / "hooks.json").read_text())["hooks"]
    assert list(hooks) == ["SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd"]
    command = hooks["SessionStart"][0]["hooks"][0]["command"]
    assert shlex.split(command)[-7:] == [
        *("--workspace", str(notes), "hook", "claude-code", "SessionStart"),
        *("--server", "plugin_memoriter_memoriter"),
    ]
    server = json.loads((plugin / ".mcp.json").read_text())["mcpServers"]["memoriter"]
    assert server["args"][-5:] == ["--workspace", str(notes), "mcp", "--slot", "memory-full"]
    answered = subprocess.run(
        ["/bin/sh", "-c", command + " --deadline 20"],
        input='{"source": "startup", "session_id": "s"}',
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    context = json.loads(answered.stdout)["hookSpecificOutput"]["additionalContext"]
    assert "`mcp__plugin_memoriter_memoriter__memory_search`" in context


@pytest.mark.skipif(sys.platform != "win32", reason="only Windows has shells that call a path differently")
def test_on_windows_a_program_outside_the_search_path_is_started_without_a_shell(
    memoriter: Memoriter, environment: dict[str, str], tmp_path: Path
) -> None:
    notes = tmp_path / "my notes & 'more' $HOME"
    memoriter("--workspace", str(notes), "install", "claude-code")
    plugin = tmp_path / "user" / ".memoriter" / "claude-code" / "memoriter" / "plugin"
    hook = json.loads((plugin / "hooks" / "hooks.json").read_text())["hooks"]["SessionStart"][0]["hooks"][0]
    answered = subprocess.run(
        [hook["command"], *hook["args"], "--deadline", "20"],
        input=b'{"source": "startup", "session_id": "s"}',
        capture_output=True,
        env=environment,
        check=True,
    )
    context = json.loads(answered.stdout)["hookSpecificOutput"]["additionalContext"]
    assert "`mcp__plugin_memoriter_memoriter__memory_search`" in context


def test_in_a_folder_that_init_set_up_the_plugin_uses_that_folder(
    memoriter: Memoriter, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / ".memoriter.yaml").touch()
    assert memoriter("install", "claude-code").code == 0
    (file,) = (tmp_path / "user").rglob(".mcp.json")
    server = json.loads(file.read_text())["mcpServers"]["memoriter"]
    assert server["args"][-5:] == ["--workspace", str(project), "mcp", "--slot", "memory-full"]


def test_a_project_has_its_own_plugin(memoriter: Memoriter, tmp_path: Path) -> None:
    (tmp_path / "project" / "memory").mkdir()  # not a workspace: it may hold code
    assert memoriter("--agent", "work", "install", "claude-code", "--scope", "project").code == 0
    (folder,) = (tmp_path / "user" / ".memoriter" / "claude-code").iterdir()
    assert folder.name.startswith("memoriter-")
    assert calls(tmp_path) == [
        f"plugin marketplace add {folder} --scope project",
        f"plugin install memoriter@{folder.name} --scope project",
    ]
    server = json.loads((folder / "plugin" / ".mcp.json").read_text())["mcpServers"]["memoriter"]
    assert server["args"][-7:] == [
        *("--workspace", str(tmp_path / "user" / ".memoriter" / "workspace"), "--agent", "work"),
        *("mcp", "--slot", "memory-full"),
    ]


def test_a_failure_of_claude_code_is_one_sentence(memoriter: Memoriter, tmp_path: Path) -> None:
    (tmp_path / "user" / "broken").touch()
    done = memoriter("install", "claude-code")
    assert (done.code, done.output) == (1, b"")
    (line,) = done.error.decode().splitlines()
    assert line.endswith("--scope user` failed: The marketplace is broken.")


def test_a_plugin_that_was_removed_in_claude_code_is_uninstalled(
    memoriter: Memoriter, tmp_path: Path
) -> None:
    memoriter("install", "claude-code")
    folder = tmp_path / "user" / ".memoriter" / "claude-code" / "memoriter"
    (tmp_path / "user" / "broken").touch()
    assert memoriter("uninstall", "claude-code").code == 1
    assert folder.is_dir()
    (tmp_path / "user" / "broken").rename(tmp_path / "user" / "removed")
    done = memoriter("uninstall", "claude-code")
    assert (done.code, done.error) == (0, b"")
    assert not folder.exists()


def test_without_claude_code_the_message_says_what_to_enter(memoriter: Memoriter, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "bin")
    done = memoriter("install", "claude-code")
    folder = tmp_path / "user" / ".memoriter" / "claude-code" / "memoriter"
    assert done.error.decode() == (
        f"memoriter: The program claude was not found. The plugin is in {folder}. Without the program, enter in "
        f"Claude Code: /plugin marketplace add {folder} and then /plugin install memoriter@memoriter.\n"
    )
    assert (folder / "plugin" / ".claude-plugin" / "plugin.json").is_file()


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_an_unknown_host_is_wrong_usage(memoriter: Memoriter, command: str) -> None:
    done = memoriter(command, "emacs")
    assert (done.code, done.output) == (2, b"")
    assert "Unknown host 'emacs'. Available: claude-code, claude-desktop, codex, " in done.error.decode()


def test_the_repository_is_a_marketplace() -> None:
    root = Path(__file__).parents[2]
    marketplace = json.loads((root / ".claude-plugin" / "marketplace.json").read_text())
    (plugin,) = marketplace["plugins"]
    folder = root / plugin["source"]
    assert folder.samefile(plugin_folder(Path(claude_code.__file__).parent, "claude-code"))
    manifest = json.loads((folder / ".claude-plugin" / "plugin.json").read_text())
    assert (manifest["name"], manifest["version"]) == (plugin["name"], __version__)
    assert [path.name for path in (folder / "commands").iterdir()] == ["memory.md"]
    assert [path.name for path in (folder / "skills").iterdir()] == ["memory"]


@pytest.mark.parametrize("host", ["codex", "cursor"])
def test_codex_and_cursor_use_the_skill_and_the_server(host: str) -> None:
    folder = plugin_folder(Path(claude_code.__file__).parent, "claude-code")
    manifest = json.loads((folder / f".{host}-plugin" / "plugin.json").read_text())
    assert (manifest["name"], manifest["version"]) == ("memoriter", __version__)
    assert (folder / manifest["skills"] / "memory" / "SKILL.md").is_file()
    assert (folder / manifest["mcpServers"]).is_file()
    # Without this member, both install hooks/hooks.json, which is for Claude Code.
    assert manifest["hooks"] == {"codex": "./hooks/codex.json", "cursor": {}}[host]


def test_the_plugin_of_codex_calls_the_hooks_that_install_writes() -> None:
    folder = plugin_folder(Path(claude_code.__file__).parent, "claude-code")
    written = JsonHooks("hooks.json", "codex", CLAUDE_EVENTS).add("", ["memoriter"])
    assert json.loads((folder / "hooks" / "codex.json").read_text()) == json.loads(written)
