"""Anthropic: its models, and its memory tool over the notes of a workspace."""

from typing import TYPE_CHECKING

from memoriter.extension import Extension, Offer
from memoriter.extensions.frameworks import on_first_use

if TYPE_CHECKING:
    from memoriter.extensions.anthropic.memory_tool import MemoriterAsyncMemoryTool, MemoriterMemoryTool

__all__ = ["MemoriterAsyncMemoryTool", "MemoriterMemoryTool", "extension"]

extension = Extension(
    name="anthropic",
    chats={"anthropic": Offer("memoriter.extensions.anthropic.chat:AnthropicChat", extra="anthropic")},
    environment=("ANTHROPIC_",),
)
__getattr__ = on_first_use(__name__, "memory_tool", __all__)
