"""Anthropic's memory tool (`memory_20250818`), with the notes of a workspace as `/memories`.

Pass it to the SDK's tool runner as ``tools=[MemoriterMemoryTool(memory)]``. `/memories` is the workspace's `memory/`.
Claude can read every note and change its own. They are Markdown files that people can read and edit, and searches find
them.
"""

from __future__ import annotations

import asyncio
from typing import Any

from memoriter.errors import FrameworkMissing

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
    from anthropic.types.beta import BetaCacheControlEphemeralParam
except ImportError as error:
    raise FrameworkMissing("The Anthropic SDK", "anthropic") from error

from memoriter.extensions.anthropic.commands import CommandFailed, MemoryCommands
from memoriter.memory import Memory

__all__ = ["MemoriterAsyncMemoryTool", "MemoriterMemoryTool"]


class _Commands:
    """The commands of the tool by name. The SDK passes each as an object; it runs as the model wrote it."""

    def __init__(
        self,
        memory: Memory,
        *,
        folder: str | None = None,
        session: str | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)  # type: ignore[call-arg]
        self._commands = MemoryCommands(memory, folder, session)

    def _run(self, command: object) -> str:
        try:
            return self._commands.run(command)
        except CommandFailed as error:
            raise ToolError(str(error)) from error

    def view(self, command: Any) -> Any:
        """Run a command."""
        return self.call(command.to_dict())  # type: ignore[attr-defined]

    create = str_replace = insert = delete = rename = view


class MemoriterMemoryTool(_Commands, BetaAbstractMemoryTool):
    """The memory tool for the notes of one workspace.

    ``folder`` is the part of the workspace that Claude sees as `/memories` (default: all of `memory/`).
    """

    def call(self, input: object) -> str:  # noqa: A002 - the name that the SDK uses
        """Run a command as the model wrote it; raise `ToolError` with a message for the model if it fails."""
        return self._run(input)

    def clear_all_memory(self) -> str:
        """Delete every note that Claude wrote. The owner's notes stay."""
        return self._commands.clear()


class MemoriterAsyncMemoryTool(_Commands, BetaAsyncAbstractMemoryTool):
    """The memory tool for the asynchronous client. Each command runs in a thread."""

    async def call(self, input: object) -> str:  # noqa: A002 - the name that the SDK uses
        """Run a command as `MemoriterMemoryTool.call` does."""
        return await asyncio.to_thread(self._run, input)

    async def clear_all_memory(self) -> str:
        """Delete every note that Claude wrote. The owner's notes stay."""
        return await asyncio.to_thread(self._commands.clear)
