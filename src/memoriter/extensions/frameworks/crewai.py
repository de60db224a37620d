"""A storage backend of CrewAI's memory.

Use it as ``Memory(storage=storage, embedder=storage.embed)``. With this embedder, CrewAI needs no key for vectors.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memoriter.errors import EmbeddingError, FrameworkMissing
from memoriter.extensions.langgraph.items import Items, items_of
from memoriter.extensions.langgraph.items.store import Put
from memoriter.memory import Memory, parts_of

try:
    from crewai.memory.storage.backend import EmbeddingDimensionMismatchError
    from crewai.memory.types import MemoryRecord, ScopeInfo
except ImportError as error:
    raise FrameworkMissing("CrewAI", "crewai") from error

__all__ = ["MemoriterStorage"]


class MemoriterStorage:
    """Keeps CrewAI's records as items of one memory. ``name`` separates stores that share the memory."""

    def __init__(self, memory: Memory, *, name: str = "crewai") -> None:
        self._memory, self._namespace = memory, (name,)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return vectors of the memory's own embedder."""
        embedder = parts_of(self._memory).embedder
        if embedder is None:
            raise EmbeddingError("This memory has no embedder. Remove `embedding.provider: none`.")
        return [[float(number) for number in row] for row in embedder.embed(list(texts))]

    def save(self, records: list[MemoryRecord]) -> None:
        """Store records, all of them or none. A record with the same id is replaced."""
        stored = next((one.embedding for one in self._records() if one.embedding), None)
        for one in records:
            _check_dimensions(stored, one.embedding)
        values = [{**one.model_dump(mode="json"), "embedding": one.embedding} for one in records]
        self._items.put([Put(self._namespace, one["id"], one) for one in values])

    def update(self, record: MemoryRecord) -> None:
        """Replace the record with the same id."""
        self.save([record])

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the records with the highest cosine similarity. Records without a vector are not found."""
        import numpy as np

        asked = np.asarray(query_embedding, np.float32)
        found = list[tuple[MemoryRecord, float]]()
        for one in self._records(scope_prefix, categories, metadata_filter):
            if one.embedding:
                _check_dimensions(one.embedding, query_embedding)
                vector = np.asarray(one.embedding, np.float32)
                length = float(np.linalg.norm(asked) * np.linalg.norm(vector))
                found.append((one, max(0.0, float(asked @ vector) / length) if length else 0.0))
        return sorted((one for one in found if one[1] >= min_score), key=lambda one: -one[1])[:limit]

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the records that meet every condition. Their bytes are erased soon after."""
        gone = [
            one.id
            for one in self._records(scope_prefix, categories, metadata_filter)
            if (record_ids is None or one.id in record_ids)
            and (older_than is None or one.created_at < older_than)
        ]
        self._items.put([Put(self._namespace, record_id, None) for record_id in gone])
        return len(gone)

    def get_record(self, record_id: str) -> MemoryRecord | None:
        item = self._items.get(self._namespace, record_id)
        return MemoryRecord.model_validate(item.value) if item else None

    def list_records(
        self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0
    ) -> list[MemoryRecord]:
        """Return records, newest first."""
        newest = sorted(self._records(scope_prefix), key=lambda one: one.created_at, reverse=True)
        return newest[max(offset, 0) :][: max(limit, 0)]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        records = self._records(scope)
        times = [one.created_at for one in records]
        return ScopeInfo(
            path=_path(scope),
            record_count=len(records),
            categories=sorted({category for one in records for category in one.categories}),
            oldest_record=min(times, default=None),
            newest_record=max(times, default=None),
            child_scopes=self.list_scopes(scope),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the scopes directly below one."""
        start = _path(parent).rstrip("/") + "/"
        below = (_path(one.scope) for one in self._records(parent))
        return sorted({start + path[len(start) :].split("/")[0] for path in below if len(path) > len(start)})

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        return dict(Counter(category for one in self._records(scope_prefix) for category in one.categories))

    def count(self, scope_prefix: str | None = None) -> int:
        return len(self._records(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete every record of a scope, or all of them."""
        self.delete(scope_prefix)

    async def asave(self, records: list[MemoryRecord]) -> None:
        await asyncio.to_thread(self.save, records)

    async def asearch(self, *args: Any, **options: Any) -> list[tuple[MemoryRecord, float]]:
        return await asyncio.to_thread(self.search, *args, **options)

    async def adelete(self, *args: Any, **options: Any) -> int:
        return await asyncio.to_thread(self.delete, *args, **options)

    @property
    def _items(self) -> Items:
        return items_of(self._memory)

    def _records(
        self,
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> list[MemoryRecord]:
        """Return the records of a scope and those below it, with one of the categories and all of the metadata."""
        root, wanted = _path(scope or "/"), set(categories or ())

        def admits(value: Mapping[str, Any]) -> bool:
            return (
                f"{_path(value['scope'])}/".startswith(f"{root}/" if root != "/" else root)
                and (not wanted or not wanted.isdisjoint(value["categories"]))
                and (value["metadata"] or {}).items() >= (metadata or {}).items()
            )

        hits = self._items.search(self._namespace, matching=admits, limit=sys.maxsize)
        return [MemoryRecord.model_validate(hit.item.value) for hit in hits]


def _path(scope: str) -> str:
    """Return a scope as CrewAI writes it: from the root, without empty parts."""
    return "/" + "/".join(filter(None, scope.split("/")))


def _check_dimensions(stored: Sequence[float] | None, new: Sequence[float] | None) -> None:
    if stored and new and len(stored) != len(new):
        raise EmbeddingDimensionMismatchError(len(stored), len(new))
