"""Claude Code as a host: its plugin and its hooks."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.extensions.hooks.host import HookHost
from memoriter.files.platform import command_line
from memoriter.hosts import Connection, InstallReport, InstallRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memoriter.extensions.claude_code.install import ClaudePlugin


class ClaudeCode(HookHost):
    """Connects Claude Code. Modules load on first use, because a hook must answer fast."""

    title = "Claude Code"

    def install(self, request: InstallRequest) -> InstallReport:
        """Register the plugin with Claude Code's own commands."""
        from memoriter.extensions.claude_code.install import ClaudePlugin

        settings = request.settings
        plugin = ClaudePlugin.of(settings.home, request.scope)
        if not request.dry_run:
            plugin.install(request.options)
        done = [] if request.dry_run else [f"Installed: claude-code, workspace {settings.workspace}"]
        if done and settings.origin("workspace") == "default":
            done.append("To use another folder of notes, run `memoriter init` in it, and then this again.")
        return _report(plugin, plugin.install_commands, done)

    def uninstall(self, request: InstallRequest) -> InstallReport:
        """Remove the plugin, and stop the process that served its hooks."""
        from memoriter.extensions.claude_code.install import ClaudePlugin
        from memoriter.resident.commands import stop_process

        plugin = ClaudePlugin.of(request.settings.home, request.scope)
        is_installed = plugin.folder.is_dir()
        if not request.dry_run:
            plugin.uninstall()
            stop_process(request.settings)  # a command starts it again
        done = [] if request.dry_run else ["Uninstalled: claude-code"]
        return _report(plugin, plugin.uninstall_commands if is_installed else (), done)

    def find(self, request: InstallRequest) -> Connection | None:
        """Return whether the plugin is there; None without Claude Code."""
        from memoriter.extensions.claude_code.install import ClaudePlugin

        folder = Path(os.environ.get("CLAUDE_CONFIG_DIR") or "~/.claude").expanduser()
        if not (folder.is_dir() or shutil.which("claude")):
            return None
        plugin = ClaudePlugin.of(request.settings.home, request.scope)
        return Connection(self.title, "connected" if plugin.folder.is_dir() else "not connected", folder)


CLAUDE_CODE = ClaudeCode()


def _report(plugin: ClaudePlugin, commands: Sequence[Sequence[str]], done: Sequence[str]) -> InstallReport:
    lines = [command_line(["claude", *command]) for command in commands]
    return InstallReport((f"plugin: {plugin.folder}", *lines, *done), plugin=plugin.folder, commands=lines)
