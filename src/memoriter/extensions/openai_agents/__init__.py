"""The OpenAI Agents SDK: a session that is part of the memory."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from memoriter.extension import Extension

if TYPE_CHECKING:
    from memoriter.extensions.openai_agents.session import MemoriterSession

__all__ = ["MemoriterSession", "extension"]

extension = Extension(name="openai_agents")


def __getattr__(name: str) -> object:
    # The class needs its framework, so it is loaded on first use.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.session"), name)
