"""Anthropic: its models, and its memory tool over the notes of a workspace."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from memoriter.extension import Extension, Offer

if TYPE_CHECKING:
    from memoriter.extensions.anthropic.memory_tool import MemoriterAsyncMemoryTool, MemoriterMemoryTool

__all__ = ["MemoriterAsyncMemoryTool", "MemoriterMemoryTool", "extension"]

extension = Extension(
    name="anthropic",
    chats={"anthropic": Offer("memoriter.extensions.anthropic.chat:AnthropicChat", extra="anthropic")},
    environment=("ANTHROPIC_",),
)


def __getattr__(name: str) -> object:
    # The class needs its framework, so it is loaded on first use.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.memory_tool"), name)
