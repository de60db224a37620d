"""What is set, and where was it set?

One frozen `Settings` for the whole program, from defaults, the owner's file, the workspace's own file, the
environment and arguments, in that order. This room alone reads settings files and environment variables;
what a setting does is the duty of the room it is named after.

    >>> from memoriter.config import load
    >>> settings = load(arguments={"workspace": "~/notes", "search.max_results": 3}, environ={})
    >>> settings.search.max_results, settings.origin("search.max_results")
    (3, '--max-results')
"""

from __future__ import annotations

from memoriter.config.embedding import Embedding
from memoriter.config.loading import load
from memoriter.config.settings import (
    Chunking,
    Files,
    Index,
    Logging,
    MemorySettings,
    Search,
    Setting,
    Settings,
    keys,
)

__all__ = [
    "Chunking",
    "Embedding",
    "Files",
    "Index",
    "Logging",
    "MemorySettings",
    "Search",
    "Setting",
    "Settings",
    "keys",
    "load",
]
