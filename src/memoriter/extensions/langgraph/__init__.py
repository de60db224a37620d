"""LangGraph: a store for its graphs, and the items that it keeps."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from memoriter.extension import Extension

if TYPE_CHECKING:
    from memoriter.extensions.langgraph.store import MemoriterStore

__all__ = ["MemoriterStore", "extension"]

extension = Extension(name="langgraph", checks=("memoriter.extensions.langgraph.check:check_items",))


def __getattr__(name: str) -> object:
    # The class needs its framework, so it is loaded on first use.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.store"), name)
