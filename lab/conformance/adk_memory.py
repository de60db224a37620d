"""Google ADK's tests of `InMemoryMemoryService`, on `MemoriterMemoryService`. Loaded by pytest with `-p`."""

from __future__ import annotations

import tempfile

from google.adk.memory import in_memory_memory_service as theirs

from memoriter.extensions.frameworks.adk import MemoriterMemoryService


class StandIn(MemoriterMemoryService):
    """Ours, created without a folder as theirs is."""

    def __init__(self) -> None:
        super().__init__(tempfile.mkdtemp(prefix="memoriter-conformance-"))


theirs.InMemoryMemoryService = StandIn
