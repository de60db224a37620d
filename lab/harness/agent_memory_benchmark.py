"""A provider for agent-memory-benchmark. It runs in the process of the harness, with one memory for each user."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from memory_bench.memory.base import MemoryProvider
from memory_bench.models import Document

import memoriter


class MemoriterProvider(MemoryProvider):
    """Keeps each document as a transcript or a note, and returns the lines that a search finds."""

    name = "memoriter"
    description = "Local hybrid search over notes and transcripts, without a language model"
    kind = "local"
    concurrency = 1

    def prepare(self, store_dir: Path, unit_ids: set[str] | None = None) -> None:
        """Remember where the memories are."""
        del unit_ids
        self._folder = Path(store_dir)
        self._memories: dict[str, memoriter.Memory] = {}

    def cleanup(self) -> None:
        """Close the memories."""
        for memory in getattr(self, "_memories", {}).values():
            memory.close()

    def _memory(self, user: str | None) -> memoriter.Memory:
        name = hashlib.sha256((user or "").encode()).hexdigest()[:16]
        if name not in self._memories:
            folder = self._folder / name
            (folder / "memory").mkdir(parents=True, exist_ok=True)
            self._memories[name] = memoriter.open(folder, home=folder / "home")
        return self._memories[name]

    def ingest(self, documents: list[Document]) -> None:
        """Write each document as a note of its day."""
        for document in documents:
            memory = self._memory(document.user_id)
            day = (document.timestamp or "")[:10]
            name = hashlib.sha256(document.id.encode()).hexdigest()[:12]
            note = memory.settings.workspace / "memory" / f"{day or 'undated'}-{name}.md"
            note.write_text(f"# {document.id} {day}\n\n{document.content}\n", encoding="utf-8")
        for memory in self._memories.values():
            memory.sync()

    def retrieve(
        self, query: str, k: int = 10, user_id: str | None = None, query_timestamp: str | None = None
    ) -> tuple[list[Document], dict[str, Any] | None]:
        """Return the lines that answer, each as a document with its citation."""
        del query_timestamp
        answer = self._memory(user_id).search(query, max_results=k)
        found = [
            Document(hit.citation or hit.path, hit.snippet, user_id=user_id, timestamp=hit.date)
            for hit in answer.hits
        ]
        return found, {"degraded": answer.degraded, "relevant": answer.relevant}
