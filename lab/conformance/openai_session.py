"""The OpenAI Agents SDK's tests of `SQLiteSession`, on `MemoriterSession`. Loaded by pytest with `-p`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import agents
import agents.memory

import memoriter
from memoriter.extensions.openai_agents import MemoriterSession

_memories: dict[str, memoriter.Memory] = {}


def _memory_of(path: str) -> memoriter.Memory:
    """Return the memory in place of a database. Two sessions with one path share it."""
    if path == ":memory:" or path not in _memories:
        folder = Path(tempfile.mkdtemp(prefix="memoriter-conformance-"))
        overrides = {"embedding.provider": "none"}
        _memories[path] = memoriter.open(folder, home=folder / "home", overrides=overrides)
    return _memories[path]


class StandIn(MemoriterSession):
    """Ours in place of `SQLiteSession`."""

    def __init__(self, session_id: str, db_path: str | Path = ":memory:", **options: Any) -> None:
        super().__init__(session_id, _memory_of(str(db_path)), **options)

    def close(self) -> None:
        """Do nothing. Their session owns its database, ours does not."""


agents.SQLiteSession = agents.memory.SQLiteSession = StandIn  # type: ignore[misc,assignment]
