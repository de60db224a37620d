"""Integrations with agent frameworks, and with programs that run agents.

The classes for frameworks are loaded on first use: ``from memoriter.integrations import MemoriterStore``. Each needs
its framework, which an extra of memoriter installs: ``pip install 'memoriter[langgraph]'``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from memoriter.errors import MemoriterError

if TYPE_CHECKING:
    from memoriter.integrations.anthropic import MemoriterAsyncMemoryTool, MemoriterMemoryTool
    from memoriter.integrations.langgraph import MemoriterStore
    from memoriter.integrations.openai_agents import MemoriterSession
    from memoriter.integrations.pydantic_ai import MemoriterMemory, MemoriterToolset

__all__ = [
    "FrameworkMissing",
    "MemoriterAsyncMemoryTool",
    "MemoriterMemory",
    "MemoriterMemoryTool",
    "MemoriterSession",
    "MemoriterStore",
    "MemoriterToolset",
]

_MODULES = {
    "MemoriterAsyncMemoryTool": "anthropic",
    "MemoriterMemory": "pydantic_ai",
    "MemoriterMemoryTool": "anthropic",
    "MemoriterSession": "openai_agents",
    "MemoriterStore": "langgraph",
    "MemoriterToolset": "pydantic_ai",
}


class FrameworkMissing(MemoriterError, ImportError):
    """The framework of an integration is not installed."""

    def __init__(self, framework: str, extra: str) -> None:
        super().__init__(f"{framework} is not installed. Run `pip install 'memoriter[{extra}]'`.")


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
