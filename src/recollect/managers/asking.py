"""What was asked of a search, as one value: it may have to be asked of a second manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from recollect.records import Answer, Source

if TYPE_CHECKING:
    from recollect.managers import Manager


class Asked(NamedTuple):
    """The arguments of `Manager.search`."""

    query: str
    max_results: int | None
    min_score: float | None
    source: Source | None
    path_prefix: str | None
    session_key: str | None

    def of(self, manager: Manager) -> Answer:
        """The manager's answer."""
        return manager.search(
            self.query,
            max_results=self.max_results,
            min_score=self.min_score,
            source=self.source,
            path_prefix=self.path_prefix,
            session_key=self.session_key,
        )
