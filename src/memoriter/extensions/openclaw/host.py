"""OpenClaw as a host: memoriter fills its memory slot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memoriter.errors import NotFound
from memoriter.extensions.openclaw import install as slot
from memoriter.extensions.openclaw.importing import import_openclaw
from memoriter.hosts import (
    ChangedFile,
    Connection,
    HostWithoutHooks,
    InstallReport,
    InstallRequest,
    State,
    program,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memoriter.extensions.clients.installed_files import FileChange


class OpenClawSlot(HostWithoutHooks):
    """Connects OpenClaw. Its plugin calls operations, so it needs no hooks."""

    def install(self, request: InstallRequest) -> InstallReport:
        """Copy the plugin, select it, and import what OpenClaw has learned if that is wanted."""
        settings, host = request.settings, slot.OpenClawHost.find(request.home)
        memory_home = settings.home if settings.origin("home") != "default" else None
        changes = slot.install(settings.home, host, program(), memory_home, dry_run=request.dry_run)
        remark = None if request.dry_run else slot.record(host)
        workspaces = host.workspaces()
        reports = []
        if request.with_import and request.open_memory:
            for agent, workspace in workspaces.items():
                # The notes of the agent are used in place.
                with request.open_memory(agent, workspace) as memory:
                    reports.append(import_openclaw(memory, host.state, dry_run=request.dry_run))
        lines = [
            f"{host.settings}: memory slot and plugin settings"
            if changes[0].is_change
            else f"{host.settings}: unchanged",
            f"{host.plugin}: plugin",
            *(f"Agent {agent}: workspace {workspace}" for agent, workspace in workspaces.items()),
            f"memoriter keeps its data in {settings.home}.",
            "OpenClaw applies the change while it runs. Check it with: openclaw memory status",
            *([remark] if remark else []),
        ]
        shown = _lines(changes, dry_run=True) if request.dry_run else lines
        return InstallReport(shown, files=_files(changes, request.dry_run), imports=reports)

    def uninstall(self, request: InstallRequest) -> InstallReport:
        """Take the plugin out of the slot and delete it."""
        settings, host = request.settings, slot.OpenClawHost.find(request.home)
        is_installed = host.plugin.is_dir()
        remark = slot.remove_record(host) if is_installed and not request.dry_run else None
        changes = slot.uninstall(settings.home, host, dry_run=request.dry_run)
        lines = _lines(changes, dry_run=request.dry_run)
        if not request.dry_run:
            result = "removed" if is_installed else "not installed"
            lines += [f"{host.plugin}: {result}", f"The memory stays in {settings.home}."]
            lines += [remark] if remark else []
        return InstallReport(lines, files=_files(changes, request.dry_run))

    def find(self, request: InstallRequest) -> Connection | None:
        """Return whether the plugin is in the slot; None without OpenClaw."""
        try:
            host = slot.OpenClawHost.find(request.home)
        except NotFound:
            return None
        state: State = "connected" if host.plugin.is_dir() else "not connected"
        return Connection("OpenClaw", state, host.state)


OPENCLAW = OpenClawSlot()


def _files(changes: Sequence[FileChange], dry_run: bool) -> list[ChangedFile]:
    return [ChangedFile(one.path, one.is_change, one.diff() if dry_run else None) for one in changes]


def _lines(changes: Sequence[FileChange], *, dry_run: bool) -> list[str]:
    return [
        one.diff().rstrip("\n")
        if dry_run and one.is_change
        else f"{one.path}: {'changed' if one.is_change else 'unchanged'}"
        for one in changes
    ]
