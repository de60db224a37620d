"""Claude Code as a host: its plugin, its hooks and its queued sessions."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NoReturn

from memoriter.hosts import HookAnswer, HookRequest, InstallReport, InstallRequest, QueueState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memoriter.agent import Agent
    from memoriter.agent.service import MemoryService
    from memoriter.extensions.claude_code.install import ClaudePlugin
    from memoriter.resident.calls import Unanswered
    from memoriter.resident.command_line import HookCommand


class ClaudeCode:
    """Connects Claude Code. Modules load on first use, because a hook must answer fast."""

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

    def answer_hook(self, command: HookCommand, unanswered: Unanswered | None = None) -> NoReturn:
        """Answer a hook and end the process."""
        from memoriter.extensions.claude_code.hook import main

        main(command, unanswered)

    def answer_in_process(self, request: HookRequest) -> HookAnswer:
        """Answer a hook of another process."""
        from memoriter.extensions.claude_code import events, hook

        surroundings = events.Surroundings(request.environ, request.open_agent)
        return hook.answer_in_process(request.arguments, request.data, request.deadline_s, surroundings)

    def process_queue(self, agent: Agent) -> QueueState:
        """Process the sessions that hooks have queued."""
        from memoriter.extensions.claude_code import capture

        done = capture.process_queue(agent)
        queue = capture.session_queue(agent.service.memory.settings)
        waiting = len(queue.pending())
        return QueueState(done, waiting, busy=bool(waiting) and queue.is_draining())

    def process_sessions(self, service: MemoryService) -> None:
        """Process the queued sessions with a memory that is already open."""
        from memoriter.extensions.claude_code.capture import process_queue_of

        process_queue_of(service)


CLAUDE_CODE = ClaudeCode()


def _report(plugin: ClaudePlugin, commands: Sequence[Sequence[str]], done: Sequence[str]) -> InstallReport:
    lines = [shlex.join(["claude", *command]) for command in commands]
    return InstallReport((f"plugin: {plugin.folder}", *lines, *done), plugin=plugin.folder, commands=lines)
