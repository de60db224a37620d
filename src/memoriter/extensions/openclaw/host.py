"""OpenClaw as a host: memoriter fills its memory slot."""

from __future__ import annotations

from dataclasses import replace

from memoriter.errors import NotFound
from memoriter.extensions.clients.host import report_of
from memoriter.extensions.openclaw import install as slot
from memoriter.extensions.openclaw.importing import import_openclaw
from memoriter.hosts import Connection, HostWithoutHooks, InstallReport, InstallRequest, State, program


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
        report = report_of(changes, request.dry_run)
        return replace(report, lines=report.lines if request.dry_run else lines, imports=reports)

    def uninstall(self, request: InstallRequest) -> InstallReport:
        """Take the plugin out of the slot and delete it."""
        settings, host = request.settings, slot.OpenClawHost.find(request.home)
        is_installed = host.plugin.is_dir()
        remark = slot.remove_record(host) if is_installed and not request.dry_run else None
        changes = slot.uninstall(settings.home, host, dry_run=request.dry_run)
        report = report_of(changes, request.dry_run)
        if request.dry_run:
            return report
        result = f"{host.plugin}: {'removed' if is_installed else 'not installed'}"
        lines = [
            *report.lines,
            result,
            f"The memory stays in {settings.home}.",
            *([remark] if remark else []),
        ]
        return replace(report, lines=lines)

    def find(self, request: InstallRequest) -> Connection | None:
        """Return whether the plugin is in the slot; None without OpenClaw."""
        try:
            host = slot.OpenClawHost.find(request.home)
        except NotFound:
            return None
        state: State = "connected" if host.plugin.is_dir() else "not connected"
        return Connection("OpenClaw", state, host.state)


OPENCLAW = OpenClawSlot()
