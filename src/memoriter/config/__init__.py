"""Settings: one frozen `Settings` from defaults, files, the environment and arguments, with the origin of each value.

Only this package reads settings files and environment variables.

    >>> from memoriter.config import load
    >>> settings = load(arguments={"workspace": "~/notes", "search.max_results": 3}, environ={})
    >>> settings.search.max_results, settings.origin("search.max_results")
    (3, 'overrides')
"""

from __future__ import annotations

from memoriter.config.loading import find_workspace, load
from memoriter.config.settings import Setting, Settings, keys

__all__ = ["Setting", "Settings", "find_workspace", "keys", "load"]
