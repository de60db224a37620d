"""LangGraph's tests of `InMemoryStore`, on `MemoriterStore`. Loaded by pytest with `-p`."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from langgraph.store import memory as theirs

import memoriter
from memoriter.extensions.langgraph import MemoriterStore
from memoriter.records import Identity


class TheirEmbedder:
    """The embedder that a test passes to its store, as the memory's own."""

    def __init__(self, embed: Any, dims: int) -> None:
        self._embed = embed
        self.identity = Identity("langgraph", "characters", dims)

    def embed(self, texts: Any) -> Any:
        return np.array(self._embed.embed_documents(list(texts)), dtype=np.float32)

    def embed_query(self, text: str) -> Any:
        return np.array(self._embed.embed_query(text), dtype=np.float32)

    def close(self) -> None:
        """Do nothing."""


class StandIn(MemoriterStore):
    """A `MemoriterStore` that is created as their store is: empty, with their index configuration."""

    def __init__(self, *, index: Mapping[str, Any] | None = None) -> None:
        self.index_config = index
        folder = Path(tempfile.mkdtemp(prefix="memoriter-conformance-"))
        memory = memoriter.open(
            folder,
            home=folder / "home",
            embedder=TheirEmbedder(index["embed"], index["dims"]) if index else None,
            overrides={} if index else {"embedding.provider": "none"},
        )
        super().__init__(memory, index={"fields": index["fields"]} if index and "fields" in index else None)


theirs.InMemoryStore = StandIn  # type: ignore[misc,assignment]
