"""`Store`: where the memory of an agent is kept. `FileStore` keeps it in files; extensions offer stores on servers.

`build.build_store` asks the settings once which of them it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from memoriter.errors import StoreBroken, StoreError
from memoriter.extension import offers, suggest
from memoriter.records import Finding
from memoriter.store.entry_store import open_file
from memoriter.store.index import open_index
from memoriter.store.item_schema import open_items_file
from memoriter.store.protocol import Index, Transactions
from memoriter.store.vectors import EngineSettings


class Store(Protocol):
    """Where the memory of one agent is kept."""

    def may_hold(self, area: str, index: Path) -> bool:
        """Return whether an area may have rows, without opening it. ``index`` is the folder of its index."""
        del area, index
        return True

    def open_rows(self, area: str, index: Index | None = None) -> Transactions:
        """Open the rows of an area: "entries" or "items". ``index`` is derived from them.

        Raises `StoreBroken` if the rows are lost although the index has content.
        """

    def open_index(self, name: str, folder: Path, engine: str) -> Index:
        """Open the index with this name. The folder is for its files on this machine."""

    def share_files(self, folder: Path, names: Sequence[str], owner: str) -> Callable[[], None]:
        """Share the files with these names in a folder with all machines that use the store. Return what ends this."""
        del folder, names, owner  # the files belong to this machine
        return lambda: None

    def check(self) -> list[Finding]:
        """Check what the store depends on."""
        return []


@dataclass(frozen=True, slots=True)
class StoreContext:
    """Everything that opens the store of one agent on a server. An extension offers a callable that takes it."""

    url: str
    tenant: str
    settings: EngineSettings


def open_store(context: StoreContext) -> Store:
    """Open the store that an extension offers for the scheme of the URL."""
    scheme, offered = context.url.partition("://")[0], offers("stores")
    if scheme not in offered:
        raise StoreError(f"No extension offers a store for {scheme}://. {suggest(scheme, tuple(offered))}")
    offer = offered[scheme]
    if not offer.is_installed():
        raise StoreError(f"A store at {scheme}:// needs an extra. Run `{offer.install}`.")
    try:
        store: Store = offer.load()(context)
    except ImportError as error:
        raise StoreError(f"The store for {scheme}:// cannot be loaded: {error}.") from error
    return store


class FileStore(Store):
    """The memory of one agent in files of this machine."""

    def __init__(self, databases: Mapping[str, Path], settings: EngineSettings) -> None:
        self._databases = databases
        self._settings = settings

    def may_hold(self, area: str, index: Path) -> bool:
        """Return whether the file or its index exists: a file that was lost is reported as long as its index exists."""
        return self._databases[area].exists() or (index / "index.db").exists()

    def open_rows(self, area: str, index: Index | None = None) -> Transactions:
        file = self._databases[area]
        if index is not None:
            check_not_lost(file, index, "entries" if area == "entries" else "texts")
        return open_file(file) if area == "entries" else open_items_file(file)

    def open_index(self, name: str, folder: Path, engine: str) -> Index:  # noqa: ARG002 - the folder names it
        return open_index(folder, engine=engine, settings=self._settings)


def check_not_lost(database: Path, index: Index, name: str) -> None:
    """Raise `StoreBroken` if a database of truth is missing or empty although its index has content.

    ``name`` says what the database holds, such as "entries".
    """
    if database.exists() and (database.stat().st_size or not database.is_file()):
        return  # a pipe has no size; the database says what is wrong with it
    if known := index.healing(index.total):
        raise StoreBroken(
            f"{database} is {'empty' if database.exists() else 'missing'}, although its index knows {known} {name}."
            f" Restore the file from a backup, or delete {index.folder} to start without them."
        )
