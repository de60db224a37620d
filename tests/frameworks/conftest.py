"""A memory, and Anthropic's memory tool over it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from anthropic_tool import open_tool

from memoriter import Memory

if TYPE_CHECKING:
    from memoriter.extensions.anthropic.memory_tool import MemoriterMemoryTool


@pytest.fixture
def memory(open_memory: Callable[..., Memory]) -> Memory:
    """The memory of the workspace."""
    return open_memory()


@pytest.fixture
def tool(memory: Memory) -> MemoriterMemoryTool:
    """Anthropic's memory tool over the memory."""
    return open_tool(memory)
