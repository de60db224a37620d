"""LangGraph: a store for its graphs, and the items that it keeps."""

from typing import TYPE_CHECKING

from memoriter.extension import Extension
from memoriter.extensions.frameworks import on_first_use

if TYPE_CHECKING:
    from memoriter.extensions.langgraph.store import MemoriterStore

__all__ = ["MemoriterStore", "extension"]

extension = Extension(name="langgraph", checks=("memoriter.extensions.langgraph.check:check_items",))
__getattr__ = on_first_use(__name__, "store", __all__)
