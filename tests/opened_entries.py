"""Entries in the files of an agent's folder, opened without a memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from memoriter.embedding import Embedder
from memoriter.entries import Entries, EntryOptions
from memoriter.entries.collection import connect_entries
from memoriter.store.opening import FileStore
from memoriter.store.vectors import DefaultSettings


def open_entries(
    folder: Path,
    embedder: Embedder | None = None,
    *,
    engine: str = "scan",
    options: EntryOptions | None = None,
    clock: Callable[[], float] = time.time,
) -> Entries:
    """Open the entries in an agent's folder."""
    store = FileStore({"entries": folder / "memory.db"}, DefaultSettings())
    index = store.open_index("entries", folder / "entries", engine)
    return connect_entries(
        lambda: store.open_rows("entries", index), index, embedder, options=options, clock=clock
    )
