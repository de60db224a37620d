"""Pydantic AI: the memory as a capability and as a toolset."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from memoriter.extension import Extension

if TYPE_CHECKING:
    from memoriter.extensions.pydantic_ai.toolset import MemoriterMemory, MemoriterToolset

__all__ = ["MemoriterMemory", "MemoriterToolset", "extension"]

extension = Extension(name="pydantic_ai")


def __getattr__(name: str) -> object:
    # The class needs its framework, so it is loaded on first use.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.toolset"), name)
