"""Anthropic's memory tool (`memory_20250818`), with the notes of a workspace as `/memories`.

Pass it to the SDK's tool runner as ``tools=[MemoriterMemoryTool(memory)]``. `/memories` is the workspace's `memory/`.
Claude can read every note and change its own. They are Markdown files that people can read and edit, and searches find
them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from memoriter.errors import FrameworkMissing

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )
except ImportError as error:
    raise FrameworkMissing("The Anthropic SDK", "anthropic") from error

from memoriter.extensions.anthropic.commands import CommandFailed, MemoryCommands

if TYPE_CHECKING:
    from memoriter.memory import Memory

__all__ = ["MemoriterAsyncMemoryTool", "MemoriterMemoryTool"]


class MemoriterMemoryTool(BetaAbstractMemoryTool):
    """The memory tool for the notes of one workspace.

    ``folder`` is the part of the workspace that Claude sees as `/memories` (default: all of `memory/`).
    """

    def __init__(
        self,
        memory: Memory,
        *,
        folder: str | None = None,
        session: str | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._commands = MemoryCommands(memory, folder, session)

    def call(self, input: object) -> str:  # noqa: A002 - the name that the SDK uses
        """Run a command as the model wrote it; raise `ToolError` with a message for the model if it fails."""
        return _run(self._commands, input)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return the lines of a note, or list a folder."""
        return self.call(command.to_dict())

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a note."""
        return self.call(command.to_dict())

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace text that occurs once in a note."""
        return self.call(command.to_dict())

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines into a note."""
        return self.call(command.to_dict())

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a note or a folder."""
        return self.call(command.to_dict())

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Rename a note or a folder."""
        return self.call(command.to_dict())

    def clear_all_memory(self) -> str:
        """Delete every note that Claude wrote. The owner's notes stay."""
        return self._commands.clear()


class MemoriterAsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool for the asynchronous client. Each command runs in a thread."""

    def __init__(
        self,
        memory: Memory,
        *,
        folder: str | None = None,
        session: str | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._commands = MemoryCommands(memory, folder, session)

    async def call(self, input: object) -> str:  # noqa: A002 - the name that the SDK uses
        """Run a command as `MemoriterMemoryTool.call` does."""
        return await asyncio.to_thread(_run, self._commands, input)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return the lines of a note, or list a folder."""
        return await self.call(command.to_dict())

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a note."""
        return await self.call(command.to_dict())

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace text that occurs once in a note."""
        return await self.call(command.to_dict())

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines into a note."""
        return await self.call(command.to_dict())

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a note or a folder."""
        return await self.call(command.to_dict())

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Rename a note or a folder."""
        return await self.call(command.to_dict())

    async def clear_all_memory(self) -> str:
        """Delete every note that Claude wrote. The owner's notes stay."""
        return await asyncio.to_thread(self._commands.clear)


def _run(commands: MemoryCommands, command: object) -> str:
    try:
        return commands.run(command)
    except CommandFailed as error:
        raise ToolError(str(error)) from error
