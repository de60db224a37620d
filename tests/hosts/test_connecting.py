"""Hosts with settings files are connected and disconnected, whatever state their files are in."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest

from memoriter.config import Settings, load
from memoriter.errors import BadArgument, ConfigError
from memoriter.files.platform import hook_command
from memoriter.hosts import InstallRequest, find_host

CLIENTS = (
    "claude-desktop",
    "codex",
    "copilot-cli",
    "cursor",
    "gemini-cli",
    "opencode",
    "vscode",
    "windsurf",
    "zed",
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load(arguments={"home": tmp_path / "memory", "workspace": tmp_path / "notes"}, environ={})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "host"


def request(settings: Settings, folder: Path, **more: bool) -> InstallRequest:
    return InstallRequest(settings, {"workspace": "/my notes"}, home=folder, **more)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_each_client_gets_the_server_in_its_own_form(settings: Settings, folder: Path) -> None:
    written = {}
    for name in CLIENTS:
        find_host(name).install(request(settings, folder / name))
        for file, data in contents(folder / name).items():
            if file.endswith(".js"):
                continue
            loads = tomllib.loads if file.endswith(".toml") else json.loads
            written[f"{name} {file}"] = loads(data.decode())
    hooks = written.pop("codex hooks.json")["hooks"]
    gemini = written.pop("gemini-cli settings.json")
    assert {event: groups[0]["hooks"][0]["timeout"] for event, groups in gemini["hooks"].items()} == {
        "SessionStart": 10_000,
        "BeforeAgent": 10_000,
        "AfterAgent": 30_000,
        "SessionEnd": 3_000,
    }
    assert gemini["mcpServers"]["memoriter"]["args"][-3:] == ["mcp", "--slot", "memory-full"]
    copilot = written.pop("copilot-cli memoriter.json")["hooks"]
    assert list(copilot) == ["sessionStart", "userPromptSubmitted", "agentStop", "sessionEnd"]
    assert copilot["agentStop"][0]["bash"].endswith(" hook copilot-cli Stop --server memoriter")
    commands = [hook["command"] for groups in hooks.values() for group in groups for hook in group["hooks"]]
    cursor = written["cursor mcp.json"]["mcpServers"]["memoriter"]
    program, *module = (
        cursor["command"],
        *cursor["args"][:-3],
    )  # without an own program, `python -m memoriter`
    server = {"command": program, "args": [*module, "--workspace", "/my notes", "mcp"]}
    codex = {
        "command": program,
        "args": [*server["args"], "--slot", "memory-full"],
        "startup_timeout_sec": 60,
    }
    assert written == {
        "claude-desktop claude_desktop_config.json": {"mcpServers": {"memoriter": server}},
        "codex config.toml": {"mcp_servers": {"memoriter": codex}},
        "copilot-cli mcp-config.json": {
            "mcpServers": {
                "memoriter": {
                    "type": "local",
                    "tools": ["*"],
                    "command": program,
                    "args": [*server["args"], "--slot", "memory-full"],
                }
            }
        },
        "opencode opencode.json": {
            "mcp": {
                "memoriter": {
                    "type": "local",
                    "command": [program, *server["args"], "--slot", "memory-full"],
                }
            }
        },
        "cursor mcp.json": {"mcpServers": {"memoriter": server}},
        "vscode mcp.json": {"servers": {"memoriter": {"type": "stdio", **server}}},
        "windsurf mcp_config.json": {"mcpServers": {"memoriter": server}},
        "zed settings.json": {"context_servers": {"memoriter": server}},
    }
    events = ["SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd"]
    words = [program, *module, "--workspace", "/my notes", "hook", "codex"]
    # On Windows, Codex starts PowerShell, which calls a program in quotes only after `&`.
    call = "& " if sys.platform == "win32" else ""
    expected = [call + hook_command([*words, event, "--server", "memoriter"]) for event in events]
    assert commands == expected


TEXTS = {
    "missing": None,
    "empty": b"",
    "with a byte order mark": b'\xef\xbb\xbf{"a": 1}',
    "with CRLF": b'{\r\n  "a": {"b": [1]}\r\n}\r\n',
    "with comments": b'// mine\n{"a": 1, /* x */}\n',
}


@pytest.mark.parametrize("name", [name for name in CLIENTS if name != "codex"])
@pytest.mark.parametrize("before", TEXTS.values(), ids=TEXTS)
def test_uninstall_restores_every_byte(
    settings: Settings, folder: Path, name: str, before: bytes | None
) -> None:
    find_host(name).install(request(settings, folder))
    (file,) = (path for path in folder.iterdir() if path.is_file())
    find_host(name).uninstall(request(settings, folder))
    if before is not None:
        file.write_bytes(before)
    kept = contents(folder)
    find_host(name).install(request(settings, folder))
    find_host(name).install(request(settings, folder))
    assert contents(folder) != kept
    state = find_host(name).find(request(settings, folder))
    assert state is not None
    assert state.state == "connected"
    find_host(name).uninstall(request(settings, folder))
    assert contents(folder) == kept


@pytest.mark.parametrize(
    "config", [b"", b'\xef\xbb\xbfmodel = "x"\r\n', b'model = "x"\n[mcp_servers.other]\ncommand = "y"']
)
def test_uninstall_restores_the_files_of_codex(settings: Settings, folder: Path, config: bytes) -> None:
    folder.mkdir()
    (folder / "config.toml").write_bytes(config)
    (folder / "hooks.json").write_bytes(
        b'{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}'
    )
    before = contents(folder)
    find_host("codex").install(request(settings, folder))
    assert json.loads(contents(folder)["hooks.json"])["hooks"]["Stop"][0]["hooks"][0]["command"] == "x"
    find_host("codex").uninstall(request(settings, folder))
    assert contents(folder) == before


def test_what_the_owner_changed_since_stays(settings: Settings, folder: Path) -> None:
    host = find_host("codex")
    host.install(request(settings, folder))
    config, hooks = folder / "config.toml", folder / "hooks.json"
    config.write_text(f'{config.read_text()}\n[projects."/p"]\ntrust_level = "trusted"\n')
    changed = json.loads(hooks.read_text())
    changed["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "mine"}]})
    hooks.write_text(json.dumps(changed))
    host.uninstall(request(settings, folder))
    assert tomllib.loads(config.read_text()) == {"projects": {"/p": {"trust_level": "trusted"}}}
    assert json.loads(hooks.read_text()) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}
    }


def test_a_half_removed_installation_is_shown_and_repaired(settings: Settings, folder: Path) -> None:
    host = find_host("codex")
    host.install(request(settings, folder))
    (folder / "config.toml").unlink()
    found = host.find(request(settings, folder))
    assert found is not None
    assert found.state == "incomplete"
    host.install(request(settings, folder))
    (folder / "hooks.json").unlink()
    host.uninstall(request(settings, folder))
    host.uninstall(request(settings, folder))
    assert contents(folder) == {}


def test_two_hosts_that_share_a_file_both_arrive(settings: Settings, folder: Path) -> None:
    """Cursor and VS Code can be told to use one folder."""
    find_host("cursor").install(request(settings, folder))
    find_host("vscode").install(request(settings, folder))
    written = json.loads((folder / "mcp.json").read_text())
    assert sorted(written) == ["mcpServers", "servers"]
    find_host("cursor").uninstall(request(settings, folder))
    assert sorted(json.loads((folder / "mcp.json").read_text())) == ["servers"]
    find_host("vscode").uninstall(request(settings, folder))
    assert json.loads((folder / "mcp.json").read_text()) == {}


@pytest.mark.parametrize("text", [b"[]", b'{"mcpServers": 1}', b"{", b"\xff"])
def test_a_damaged_file_is_named_and_stays(settings: Settings, folder: Path, text: bytes) -> None:
    folder.mkdir()
    (folder / "mcp.json").write_bytes(text)
    with pytest.raises(ConfigError, match=r"mcp\.json.*The file was not changed\."):
        find_host("cursor").install(request(settings, folder))
    assert contents(folder) == {"mcp.json": text}


def test_an_unknown_host_is_one_sentence() -> None:
    with pytest.raises(BadArgument, match=r"Unknown host 'codx'\. Did you mean 'codex'\?"):
        find_host("codx")


def test_a_dry_run_changes_nothing(settings: Settings, folder: Path) -> None:
    report = find_host("codex").install(request(settings, folder, dry_run=True))
    assert "+[mcp_servers.memoriter]" in "\n".join(report.lines)
    assert not folder.exists()
