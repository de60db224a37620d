"""Open the entries of an agent: in files of its folder, or in any database with any index."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.entries.collection import INDEX_NAME, Entries, EntryOptions
from memoriter.store.entry_store import EntryStore, open_file
from memoriter.store.index import open_index
from memoriter.store.opening import check_not_lost

if TYPE_CHECKING:
    from memoriter.embedding import Embedder
    from memoriter.store import Index
    from memoriter.store.transactions import Transactions


def open_entries(
    folder: Path,
    embedder: Embedder | None = None,
    *,
    engine: str = "scan",
    options: EntryOptions | None = None,
    clock: Callable[[], float] = time.time,
) -> Entries:
    """Open the entries in an agent's folder."""
    index = open_index(folder / INDEX_NAME, engine=engine)
    file = folder / "memory.db"

    def open_() -> Transactions:
        check_not_lost(file, index, "entries")
        return open_file(file)

    return connect_entries(open_, index, embedder, options=options, clock=clock)


def connect_entries(
    open_database: Callable[[], Transactions],
    index: Index,
    embedder: Embedder | None = None,
    *,
    options: EntryOptions | None = None,
    clock: Callable[[], float] = time.time,
) -> Entries:
    """Open the entries in a database, with an index that follows it. If that fails, both are closed."""
    from memoriter.embedding import Batched

    batched = Batched(embedder) if embedder else None
    database: Transactions | None = None
    try:
        database = open_database()
        return Entries(EntryStore(database), index, embedder, batched, options, clock=clock)
    except BaseException:
        if database is not None:
            database.close()
        index.close()
        raise
