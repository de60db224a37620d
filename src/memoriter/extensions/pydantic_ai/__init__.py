"""Pydantic AI: the memory as a capability and as a toolset."""

from typing import TYPE_CHECKING

from memoriter.extension import Extension
from memoriter.extensions.frameworks import on_first_use

if TYPE_CHECKING:
    from memoriter.extensions.pydantic_ai.toolset import MemoriterMemory, MemoriterToolset

__all__ = ["MemoriterMemory", "MemoriterToolset", "extension"]

extension = Extension(name="pydantic_ai")
__getattr__ = on_first_use(__name__, "toolset", __all__)
