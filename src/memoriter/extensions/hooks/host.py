"""The part of a host that calls hooks. Modules load on first use, because a hook must answer fast."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from memoriter.hosts import HookAnswer, HookRequest, QueueState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from memoriter.agent import Agent
    from memoriter.resident.calls import Unanswered
    from memoriter.resident.command_line import HookCommand


class HookHost:
    """A host that calls `memoriter hook`. All such hosts share one queue of sessions."""

    #: The name for people.
    title = ""
    #: How the host names the tools of MCP servers.
    tool_name = "mcp__{server}__{tool}"

    def read_fields(self, sent: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields of an event under the names that Claude Code uses."""
        return sent

    def add_context(self, event: str, text: str) -> dict[str, object]:
        """Return the answer that adds text to the prompt."""
        return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}

    def answer_hook(self, command: HookCommand, unanswered: Unanswered | None = None) -> NoReturn:
        """Answer a hook and end the process."""
        from memoriter.extensions.hooks.hook import main

        main(self, command, unanswered)

    def answer_in_process(self, request: HookRequest) -> HookAnswer:
        """Answer a hook of another process."""
        from memoriter.extensions.hooks import events, hook

        surroundings = events.Surroundings(request.environ, request.open_agent)
        return hook.answer_in_process(self, request, surroundings)

    def process_queue(self, agent: Agent) -> QueueState:
        """Process the sessions that hooks have queued."""
        from memoriter.extensions.hooks import capture

        if agent.error:
            return QueueState()
        done = capture.process_queue(agent)
        queue = capture.session_queue(agent.service.memory.settings)
        waiting = len(queue.pending())
        return QueueState(done, waiting, busy=bool(waiting) and queue.is_draining())
