"""Opening the keeper of one agent's folder: the truth, the derived index beside it, and the embedder between them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.entries.keeper import Keeper, Ways
from recollect.store.entries import Entries
from recollect.store.index import open_index

if TYPE_CHECKING:
    from recollect.embedding import Embedder

INDEX_FOLDER = "entries"  #: everything in it is derived from memory.db


def open_keeper(
    folder: Path,
    embedder: Embedder | None = None,
    *,
    engine: str = "scan",
    ways: Ways | None = None,
    clock: Callable[[], float] = time.time,
) -> Keeper:
    """The keeper of the entries in an agent's folder."""
    from recollect.embedding import Batched

    index = open_index(folder / INDEX_FOLDER, engine=engine)
    batched = Batched(embedder) if embedder else None
    return Keeper(Entries(folder), index, embedder, batched, ways, clock=clock)
