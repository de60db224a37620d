"""Anthropic's memory tool (`memory_20250818`) over the workspace: what Claude writes to `/memories` are notes.

Give it to the SDK's tool runner as ``tools=[MemoriterMemoryTool(memory)]``. `/memories` is the workspace's `memory/`:
Claude sees every note and changes its own. They are Markdown that people read and edit, and every search finds them.
This module keeps the reference's rules and words; the notes are held by `Memory.shelf`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from memoriter.integrations import FrameworkMissing

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

from memoriter.integrations.memory_commands import MemoryCommands, WrongCommand

if TYPE_CHECKING:
    from memoriter.memory import Memory

__all__ = ["MemoriterAsyncMemoryTool", "MemoriterMemoryTool"]


class MemoriterMemoryTool(BetaAbstractMemoryTool):
    """The memory tool over the notes of one workspace.

    ``folder`` is the part of the workspace that Claude calls `/memories`, by default all of `memory/`.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        folder: str = "memory",
        session_key: str | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._commands = MemoryCommands(memory, folder, session_key)

    def call(self, input: object) -> str:  # noqa: A002 - the SDK's own name
        """Run a command as the model wrote it; whatever is wrong with it is a `ToolError` in words."""
        return _run(self._commands, input)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """The lines of a note, or what a folder holds."""
        return self.call(command.to_dict())

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Make a new note."""
        return self.call(command.to_dict())

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that stands in a note once."""
        return self.call(command.to_dict())

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines into a note."""
        return self.call(command.to_dict())

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a note, or a folder."""
        return self.call(command.to_dict())

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Give a note, or a folder, another name."""
        return self.call(command.to_dict())

    def clear_all_memory(self) -> str:
        """Delete every note of Claude's own; the owner's stay."""
        return self._commands.clear()


class MemoriterAsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """As `MemoriterMemoryTool`, for the asynchronous client; each command runs in a thread."""

    def __init__(
        self,
        memory: Memory,
        *,
        folder: str = "memory",
        session_key: str | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._commands = MemoryCommands(memory, folder, session_key)

    async def call(self, input: object) -> str:  # noqa: A002 - the SDK's own name
        """As `MemoriterMemoryTool.call`."""
        return await asyncio.to_thread(_run, self._commands, input)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """The lines of a note, or what a folder holds."""
        return await self.call(command.to_dict())

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Make a new note."""
        return await self.call(command.to_dict())

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that stands in a note once."""
        return await self.call(command.to_dict())

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines into a note."""
        return await self.call(command.to_dict())

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a note, or a folder."""
        return await self.call(command.to_dict())

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Give a note, or a folder, another name."""
        return await self.call(command.to_dict())

    async def clear_all_memory(self) -> str:
        """Delete every note of Claude's own; the owner's stay."""
        return await asyncio.to_thread(self._commands.clear)


def _run(commands: MemoryCommands, given: object) -> str:
    try:
        return commands.run(given)
    except WrongCommand as error:
        raise ToolError(str(error)) from error
