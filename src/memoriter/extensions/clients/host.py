"""A host whose settings are files: what belongs into them is added, shown and removed in one way for all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from string import Template

from memoriter.errors import BadArgument, ConfigError
from memoriter.extensions.clients.installed_files import Add, FileChange, InstalledFiles, Remove
from memoriter.extensions.clients.parts import Part
from memoriter.extensions.hooks.host import HookHost
from memoriter.hosts import (
    ChangedFile,
    Connection,
    HostWithoutHooks,
    InstallReport,
    InstallRequest,
    State,
    program,
)

#: Variables that programs read for the folders of their settings, and what stands for those that are not set.
VARIABLES = {
    "CODEX_HOME": "~/.codex",
    "COPILOT_HOME": "~/.copilot",
    "GEMINI_CLI_HOME": "~",
    "XDG_CONFIG_HOME": "~/.config",
}


@dataclass(frozen=True, slots=True)
class Folder:
    """Where a host keeps its settings. Names of variables stand for their values."""

    user: str
    #: The folders on systems that have another one.
    windows: str = ""
    mac: str = ""

    def find(self) -> Path:
        """Return the folder on this system."""
        found = {"win32": self.windows, "darwin": self.mac}.get(sys.platform) or self.user
        values = VARIABLES | {name: value for name, value in os.environ.items() if value}
        return Path(Template(found).safe_substitute(values)).expanduser().absolute()


@dataclass(frozen=True, eq=False)
class ClientHost(HostWithoutHooks):
    """Connects one client over MCP, by what belongs into its settings."""

    name: str
    title: str
    folder: Folder
    parts: tuple[Part, ...]
    #: The programs of the host, by which it is found on this machine.
    programs: tuple[str, ...]
    #: The folder of a project; none if the host has no settings of projects.
    project: str | None = None
    #: What its owner does next.
    next_step: str = ""

    def install(self, request: InstallRequest) -> InstallReport:
        """Add our parts to the settings files."""
        command = [
            *program(),
            *(word for name, value in request.options.items() for word in (f"--{name}", value)),
        ]
        installed = InstalledFiles(request.settings.home, self.name)
        changes = [
            installed.add(path, _adding(parts, command), _removing(parts), dry_run=request.dry_run)
            for path, parts in self._files(request).items()
        ]
        report, step = report_of(changes, request.dry_run), self.next_step
        return replace(report, lines=[*report.lines, step]) if step and not request.dry_run else report

    def uninstall(self, request: InstallRequest) -> InstallReport:
        """Remove our parts."""
        installed = InstalledFiles(request.settings.home, self.name)
        changes = [
            installed.remove(path, _removing(parts), dry_run=request.dry_run)
            for path, parts in self._files(request).items()
        ]
        return report_of(changes, request.dry_run)

    def find(self, request: InstallRequest) -> Connection | None:
        """Return how the host is connected; None if it is not on this machine."""
        folder = self._folder(request)
        if not (folder.is_dir() or any(map(shutil.which, self.programs))):
            return None
        found = [_contains(path, part) for path, parts in self._files(request).items() for part in parts]
        state: State = "connected" if all(found) else "incomplete" if any(found) else "not connected"
        return Connection(self.title, state, folder)

    def _folder(self, request: InstallRequest) -> Path:
        if request.scope == "project" and request.home is None:
            if self.project is None:
                raise BadArgument(f"{self.title} has no settings for one project.")
            return Path.cwd() / self.project
        return (request.home or self.folder.find()).expanduser().absolute()

    def _files(self, request: InstallRequest) -> dict[Path, list[Part]]:
        """Return our parts of each file."""
        files, folder = dict[Path, list[Part]](), self._folder(request)
        for part in self.parts:
            files.setdefault(folder / part.file, []).append(part)
        return files


class ClientHookHost(HookHost, ClientHost):
    """Connects a client that also calls hooks."""


def _adding(parts: Sequence[Part], command: Sequence[str]) -> Add:
    return lambda text: reduce(lambda done, part: part.add(done, command), parts, text)


def _removing(parts: Sequence[Part]) -> Remove:
    return lambda text, _: reduce(lambda done, part: part.remove(done), parts, text)


def _contains(path: Path, part: Part) -> bool:
    try:
        return part.is_in(path.read_bytes().decode("utf-8", "replace"))
    except (OSError, ConfigError):
        return False


def report_of(changes: Sequence[FileChange], dry_run: bool) -> InstallReport:
    """Return what was changed in files; in a dry run, with the differences."""
    lines = [
        one.diff().rstrip("\n")
        if dry_run and one.is_change
        else f"{one.path}: {'changed' if one.is_change else 'unchanged'}"
        for one in changes
    ]
    files = [ChangedFile(one.path, one.is_change, one.diff() if dry_run else None) for one in changes]
    return InstallReport(lines, files=files)
