"""Add our hooks and MCP server to Claude Code's settings, and remove them again.

For each changed file the home folder holds a record: the file's text before, a digest of the text after, and the name
of our part. While the file has not changed since, uninstalling restores it to the byte. Otherwise only our part is
removed.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memoriter.errors import ConfigError
from memoriter.integrations.claude_code import settings_file
from memoriter.integrations.installed_files import FileChange, InstalledFiles, Remove, program

InstallScope = Literal["user", "project"]


@dataclass(frozen=True, slots=True)
class SettingsFiles:
    """Claude Code's settings file and its file of MCP servers."""

    settings: Path
    #: None if the MCP server is not installed.
    servers: Path | None

    @classmethod
    def of(
        cls, scope: InstallScope, settings: Path | None, servers: Path | None, *, with_server: bool
    ) -> SettingsFiles:
        """Return the files of the user, or those of the project in the current folder."""
        if scope == "project":
            defaults = (Path.cwd() / ".claude" / "settings.json", Path.cwd() / ".mcp.json")
        elif folder := os.environ.get("CLAUDE_CONFIG_DIR"):
            defaults = (Path(folder) / "settings.json", Path(folder) / ".claude.json")
        else:
            defaults = (Path.home() / ".claude" / "settings.json", Path.home() / ".claude.json")
        server_file = (servers or defaults[1]).expanduser() if with_server else None
        return cls((settings or defaults[0]).expanduser(), server_file)


# ---- install and uninstall ------------------------------------------------------------------------------------


def install(
    home: Path, files: SettingsFiles, options: Mapping[str, str], server: str, *, dry_run: bool
) -> tuple[FileChange, ...]:
    """Add memoriter's hooks and MCP server to the files, replacing those of an earlier installation."""
    server_name = server if files.servers else ""
    groups = settings_file.hook_groups(lambda event: hook_command(options, server_name, event))
    installed = InstalledFiles(home)

    def add_hooks(*, dry_run: bool) -> FileChange:
        return installed.add(
            files.settings,
            lambda text: settings_file.add_hooks(text, groups),
            settings_file.remove_hooks,
            dry_run=dry_run,
        )

    changes = [add_hooks(dry_run=True)]  # fails before the other file is changed
    if files.servers is not None:
        changes.append(_add_server(installed, files.servers, server, options, dry_run=dry_run))
    if not dry_run:
        changes[0] = add_hooks(dry_run=False)
    return tuple(changes)


def uninstall(home: Path, files: SettingsFiles, server: str, *, dry_run: bool) -> tuple[FileChange, ...]:
    """Remove what `install` added. ``server`` is the name of our MCP server if the record does not have it."""
    installed = InstalledFiles(home)
    changes = [installed.remove(files.settings, settings_file.remove_hooks, dry_run=dry_run)]
    if files.servers is not None:
        remove = _remove_server(installed.part_name(files.servers) or server)
        changes.append(installed.remove(files.servers, remove, dry_run=dry_run))
    return tuple(changes)


def _add_server(
    installed: InstalledFiles, path: Path, name: str, options: Mapping[str, str], *, dry_run: bool
) -> FileChange:
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise ConfigError(f"Invalid MCP server name {name!r}. Use letters, digits, '-' and '_'.")
    command = [*program(), *_flags(options), "mcp", "--slot", "memory-full"]
    return installed.add(
        path,
        lambda text: settings_file.add_server(text, name, command),
        _remove_server(installed.part_name(path) or name),
        dry_run=dry_run,
        part_name=name,
    )


def _remove_server(name: str) -> Remove:
    # Without a record the server may have been added by the user, so it stays.
    return lambda text, before: text if before is None else settings_file.remove_server(text, name, before)


def hook_command(options: Mapping[str, str], server: str, event: str) -> str:
    """Return the command of one hook, quoted for the shell in which Claude Code runs it."""
    server_flag = ["--server", server] if server else []
    words = [*program(), *_flags(options), "hook", "claude-code", event, *server_flag]
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def _flags(options: Mapping[str, str]) -> list[str]:
    return [part for name, value in options.items() for part in (f"--{name}", value)]
