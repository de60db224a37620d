"""What a store outside the database implements: tables of vectors by row number."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from memoriter.store.vectors import Rows, Vector


class VectorTable(Protocol):
    """An open table of vectors by row number."""

    #: The name under which `TableStore.open` finds the table.
    name: str

    def state(self) -> dict[str, Any]:
        """Return what the pointer records, so that a changed table is recognised."""

    def add(self, ids: Rows, matrix: Vector) -> None:
        """Add or replace vectors."""

    def delete(self, ids: Rows) -> None:
        """Delete vectors."""

    def nearest(self, query: Vector, limit: int) -> tuple[Rows, Vector]:
        """Return the nearest rows and their cosines."""

    def is_current(self) -> bool:
        """Return whether the last answer of `nearest` covered every vector that was added."""
        return True

    def tidy(self) -> None:
        """Compact the table if it needs that."""
        return


class TableStore(Protocol):
    """Where the tables of one index are."""

    #: The name for people.
    label: str
    #: The meta key of the pointer.
    key: str
    #: Whether deleted vectors stay in files until the table is replaced.
    keeps_deleted: bool
    #: The greatest limit of `VectorTable.nearest`.
    max_limit: int

    def missing(self) -> str | None:
        """Return what has to be installed or set before the store can be used."""

    def create(self, prefix: str, dimensions: int) -> VectorTable:
        """Create an empty table whose name starts with the prefix."""

    def open(self, name: str, state: Mapping[str, Any]) -> VectorTable:
        """Open a table. Raise an error if it does not match the recorded state."""

    def drop_others(self, name: str) -> None:
        """Delete every table of this index but one, with all older versions."""

    def close(self) -> None:
        """Close connections."""


class FolderStore(TableStore):
    """Tables in a folder of this machine. What is deleted from a table stays in its files."""

    keeps_deleted = True
    max_limit = 2**31

    def __init__(self, folder: Path, missing: str | None) -> None:
        self._folder = folder
        self._missing = missing

    def missing(self) -> str | None:
        return self._missing

    def close(self) -> None:
        """Do nothing: each table closes its own files."""
