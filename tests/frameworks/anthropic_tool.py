"""Anthropic's memory tool over a memory, and its errors."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from memoriter import Memory

if TYPE_CHECKING:
    from memoriter.extensions.anthropic.memory_tool import MemoriterMemoryTool

EXAMPLES = 500 if os.environ.get("MEMORITER_SOAK") else 20
HEAD = '---\ntrust: "agent"\n---\n\n'

# The SDK takes seconds to load. It is loaded in the worker that runs these tests, not in every one.


def open_tool(memory: Memory, **options: Any) -> MemoriterMemoryTool:
    from memoriter.extensions.anthropic.memory_tool import MemoriterMemoryTool

    return MemoriterMemoryTool(memory, **options)


def tool_error() -> type[Exception]:
    from anthropic.lib.tools import ToolError

    return ToolError


def error_of(tool: Any, **command: Any) -> str:
    with pytest.raises(tool_error()) as error:
        tool.call(command)
    return str(error.value)
