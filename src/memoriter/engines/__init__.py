"""Engines answer search, read, status and sync for one agent.

The rest of the package uses the `Engine` interface only. `builtin` searches the index of this package. Extensions may
offer other engines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from memoriter.records import Answer, Excerpt, Hit, ProgressCallback, Query, Status, SyncReport

if TYPE_CHECKING:
    from memoriter.embedding import Choice
    from memoriter.embedding.protocol import Matrix
    from memoriter.store import Index

__all__ = ["Engine"]


class Engine(Protocol):
    """Answers queries about one workspace. An engine that inherits it implements what it needs."""

    #: The embedder to share with other parts of the memory, or None if the engine has none.
    choice: Choice | None = None
    #: The index of notes and transcripts, or None if an external engine keeps its own.
    index: Index | None = None
    #: Whether the engine works in the background.
    busy: bool = False

    @property
    def knows_notes(self) -> bool:
        """Whether the index holds notes of this workspace."""
        return False

    def search(self, query: Query) -> Answer:
        """Return the hits that answer the query, best first. The answer describes failures."""

    def near(self, _line: str, _vector: Matrix, _query: Query, _limit: int, /) -> tuple[Hit, ...]:
        """Return the lines of notes and transcripts nearest to a line with this vector. External engines find none."""
        return ()

    def read_file(self, rel_path: str, from_line: int = 1, lines: int | None = None) -> Excerpt:
        """Read some lines of one file of the workspace."""

    def status(self, *, deep: bool = False) -> Status:
        """Describe the index and the embedder. ``deep`` also tries the embedder and checks the store."""

    def count_stale(self) -> int | None:
        """Count the files that differ from the index by their stat, or None if an external engine does not say."""
        return None

    def sync(
        self,
        *,
        force: bool = False,
        verify: bool = False,
        batch: bool = False,
        vectors_s: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> SyncReport:
        """Bring the index up to date with the files. ``batch`` uses the batch API of the embedding provider.

        ``vectors_s`` limits the time for vectors.
        """

    def purge(self) -> None:
        """Overwrite what the index still stores of text that is no longer in the files."""
        return

    def mark_changed(self) -> None:
        """Make the next search index recent changes first. It waits a limited time for that."""
        return

    def start(self) -> None:
        """Keep the index up to date in the background until the engine is closed."""
        return

    def probe_embedding(self) -> str | None:
        """Embed one text. Return None if that works, otherwise an error message."""

    def probe_vector(self) -> str | None:
        """Run one vector search. Return None if that works, otherwise an error message."""

    def close(self) -> None:
        """Close files and stop threads."""
