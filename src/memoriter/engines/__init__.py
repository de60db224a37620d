"""Who answers for this agent?

A manager answers search, read, status and sync for one agent. Other rooms know the `Engine` interface only, so that
engines can be exchanged and paired: `builtin` is our own index, `qmd` an outside program, `fallback` the two together,
and `select` decides.
"""

from __future__ import annotations

from typing import Protocol

from memoriter.records import Answer, Excerpt, ProgressCallback, Query, Status, SyncReport

__all__ = ["Engine"]


class Engine(Protocol):
    """What every engine offers."""

    def search(self, query: Query) -> Answer:
        """The hits that answer the query, best first; failures are said in the answer."""

    def read_file(self, rel_path: str, from_line: int = 1, lines: int | None = None) -> Excerpt:
        """Some lines of one file of the workspace."""

    def status(self, *, deep: bool = False) -> Status:
        """What this manager holds and how it is; ``deep`` also tries the embedder and checks the store."""

    def sync(
        self, *, force: bool = False, verify: bool = False, progress: ProgressCallback | None = None
    ) -> SyncReport:
        """Bring the index up to date with the files."""

    def changed(self) -> None:
        """Something was just written: the next search takes it in first, waiting a bounded time for that."""

    def start(self) -> None:
        """Keep the index fresh from now on, also while nobody searches, until closed."""

    def probe_embedding(self) -> str | None:
        """Try to embed one text: None when it works, otherwise one sentence."""

    def probe_vector(self) -> str | None:
        """Try one vector search: None when it works, otherwise one sentence."""

    def close(self) -> None:
        """Give back files and threads."""
