"""Memory for frameworks that agents are built with: one module each, in the form that the framework asks for.

Each module needs its framework, which an extra of the same name brings: `pip install 'memoriter[langgraph]'`.
"""

from __future__ import annotations

from memoriter.errors import MemoriterError


class FrameworkMissing(MemoriterError, ImportError):
    """The framework that a module joins is not installed."""

    def __init__(self, framework: str, extra: str) -> None:
        super().__init__(f"{framework} is not installed: run `pip install 'memoriter[{extra}]'`.")
