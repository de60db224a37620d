"""The settings of a host are looked for where its program keeps them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memoriter.config import load
from memoriter.hosts import InstallRequest, find_host

#: Where the programs keep their settings, by their code: `userDataPath.ts` (VS Code), `paths.rs` (Zed), Electron
#: (Claude Desktop), `xdg-basedir` (OpenCode), and the bundle of Gemini CLI.
VARIABLES = ("CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME")
USUAL = {
    "claude-desktop": "home/.config/Claude",
    "codex": "home/.codex",
    "copilot-cli": "home/.copilot",
    "cursor": "home/.cursor",
    "gemini-cli": "home/.gemini",
    "opencode": "home/.config/opencode",
    "vscode": "home/.config/Code/User",
    "windsurf": "home/.codeium/windsurf",
    "zed": "home/.config/zed",
}
NAMED = {
    **USUAL,
    "claude-desktop": "XDG_CONFIG_HOME/Claude",
    "codex": "CODEX_HOME",
    "copilot-cli": "COPILOT_HOME",
    "gemini-cli": "GEMINI_CLI_HOME/.gemini",
    "opencode": "XDG_CONFIG_HOME/opencode",
    "vscode": "XDG_CONFIG_HOME/Code/User",
    "zed": "XDG_CONFIG_HOME/zed",
}
ON_MAC = {
    "claude-desktop": "home/Library/Application Support/Claude",
    "vscode": "home/Library/Application Support/Code/User",
    "zed": "home/.config/zed",
}
ON_WINDOWS = {
    "claude-desktop": "APPDATA/Claude",
    "vscode": "APPDATA/Code/User",
    "zed": "APPDATA/Zed",
}


def folders(tmp_path: Path) -> dict[str, str]:
    """Return where each host is found, below the folder of the test."""
    request = InstallRequest(load(arguments={"home": tmp_path / "memory"}, environ={}), {}, dry_run=True)
    written = {name: find_host(name).install(request).files for name in USUAL}
    return {
        name: files[-1].path.parent.relative_to(tmp_path).as_posix()
        for name, files in written.items()
        if files
    }


@pytest.fixture
def set_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    for variable in (*VARIABLES, "APPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    return monkeypatch


@pytest.mark.parametrize("value", [None, ""])
def test_without_variables_settings_are_in_the_home(
    tmp_path: Path, set_variables: pytest.MonkeyPatch, value: str | None
) -> None:
    set_variables.setattr(sys, "platform", "linux")
    for variable in VARIABLES:
        set_variables.setenv(variable, value or "")
        if value is None:
            set_variables.delenv(variable)
    assert folders(tmp_path) == USUAL


@pytest.mark.parametrize(
    ("system", "differences"),
    [("linux", {}), ("darwin", ON_MAC), ("win32", ON_WINDOWS)],
    ids=lambda one: str(one)[:6],
)
def test_variables_count_where_the_program_of_the_host_reads_them(
    tmp_path: Path, set_variables: pytest.MonkeyPatch, system: str, differences: dict[str, str]
) -> None:
    set_variables.setattr(sys, "platform", system)
    assert folders(tmp_path) == {**NAMED, **differences}
