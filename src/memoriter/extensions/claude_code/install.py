"""Register the plugin for Claude Code with Claude Code's own commands, and remove it again.

The home folder of memoriter holds a marketplace with one plugin: a copy of the one in this package, with the path of
the program and the options of the memory in its commands. Claude Code reads the plugin from there.

When Claude Code exits, it gives the hooks of plugins 1.5 seconds in all, whatever their timeout. The hook of SessionEnd
therefore starts another process (`--detach`) and ends.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from memoriter.errors import MemoriterError, NotFound, WriteError
from memoriter.extensions.clients.installed_files import plugin_folder, run_program
from memoriter.files.durable import write
from memoriter.files.platform import command_line, hook_command
from memoriter.hosts import program

PLUGIN = "memoriter"

InstallScope = Literal["user", "project"]


@dataclass(frozen=True, slots=True)
class ClaudePlugin:
    """The plugin of one user or of one project."""

    scope: InstallScope
    #: The name of the marketplace.
    name: str
    #: The folder of the marketplace.
    folder: Path

    @classmethod
    def of(cls, home: Path, scope: InstallScope) -> ClaudePlugin:
        """Return the plugin of the user, or of the project in the current folder."""
        digest = hashlib.sha256(os.fsencode(Path.cwd())).hexdigest()[:8]
        name = PLUGIN if scope == "user" else f"{PLUGIN}-{digest}"
        return cls(scope, name, home / "claude-code" / name)

    @property
    def install_commands(self) -> tuple[tuple[str, ...], ...]:
        """Return the arguments of `claude` that register the plugin."""
        return (
            ("plugin", "marketplace", "add", str(self.folder), "--scope", self.scope),
            ("plugin", "install", f"{PLUGIN}@{self.name}", "--scope", self.scope),
        )

    @property
    def uninstall_commands(self) -> tuple[tuple[str, ...], ...]:
        """Return the arguments of `claude` that remove the plugin."""
        return (
            ("plugin", "uninstall", f"{PLUGIN}@{self.name}", "--scope", self.scope),
            ("plugin", "marketplace", "remove", self.name, "--scope", self.scope),
        )

    def install(self, options: Mapping[str, str]) -> None:
        """Write the plugin and register it. An earlier one is replaced."""
        self._write(options)
        claude = _claude(
            f"The plugin is in {self.folder}. Without the program, enter in Claude Code: "
            f"/plugin marketplace add {self.folder} and then /plugin install {PLUGIN}@{self.name}"
        )
        for arguments in self.install_commands:
            _run(claude, arguments)

    def uninstall(self) -> None:
        """Remove the plugin from Claude Code, if it is still there, and its folder."""
        if self.folder.is_dir():
            claude = _claude("The plugin is still registered")
            for arguments in self.uninstall_commands:
                try:
                    _run(claude, arguments)
                except MemoriterError as error:
                    if "not found" not in str(error):  # what Claude Code says after `/plugin uninstall`
                        raise
            shutil.rmtree(self.folder)

    # ---- files ------------------------------------------------------------------------------------------------

    def _write(self, options: Mapping[str, str]) -> None:
        plugin = self.folder / "plugin"
        try:
            with suppress(FileNotFoundError):
                shutil.rmtree(plugin)
        except OSError as error:
            raise WriteError(f"{plugin} cannot be replaced: {error.strerror}.") from error
        shutil.copytree(plugin_folder(Path(__file__).parent, "claude-code"), plugin)
        before = [*program(), *(part for name, value in options.items() for part in (f"--{name}", value))]
        _edit(plugin / "hooks" / "hooks.json", lambda found: _with_hook_commands(found, before))
        _edit(plugin / ".mcp.json", lambda found: _with_server_command(found, before))
        manifest = json.loads((plugin / ".claude-plugin" / "plugin.json").read_bytes())
        marketplace = {
            "name": self.name,
            "owner": {"name": PLUGIN},
            "plugins": [{"name": PLUGIN, "source": "./plugin", "description": manifest["description"]}],
        }
        write(self.folder / ".claude-plugin" / "marketplace.json", json.dumps(marketplace, indent=2).encode())


def _edit(file: Path, change: Any) -> None:
    write(file, json.dumps(change(json.loads(file.read_bytes())), indent=2, ensure_ascii=False).encode())


def _with_hook_commands(found: dict[str, Any], before: Sequence[str]) -> dict[str, Any]:
    quoted = hook_command(before)
    for groups in found["hooks"].values():
        for group in groups:
            for hook in group["hooks"]:
                words = hook["command"].split()[1:]
                hook["command"] = f"{quoted} {' '.join(words)}"
                # Windows: Git Bash and PowerShell call it differently, so without a shell
                if quoted.startswith('"'):
                    hook.update(command=before[0], args=[*before[1:], *words])
    return found


def _with_server_command(found: dict[str, Any], before: Sequence[str]) -> dict[str, Any]:
    server = found["mcpServers"][PLUGIN]
    server.update(command=before[0], args=[*before[1:], *server["args"]])
    return found


# ---- Claude Code ----------------------------------------------------------------------------------------------


def _claude(otherwise: str) -> str:
    found = shutil.which("claude")
    if found is None:
        raise NotFound(f"The program claude was not found. {otherwise}.")
    return found


def _run(claude: str, arguments: Sequence[str]) -> None:
    command = [claude, *arguments]
    if failed := run_program(command):
        raise MemoriterError(f"`{command_line(command)}` failed: {failed.lstrip('✘ ')}")
