"""Vector engines: each finds the rows whose vectors are nearest to a query.

The embedding cache stores the vectors. An engine stores only what can be rebuilt from the cache. New rows always have
greater numbers than all rows before. A deleted row may stay in an engine until its next refresh, so callers drop it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from memoriter import logs
from memoriter.errors import StoreError
from memoriter.extension import offers, suggest

if TYPE_CHECKING:
    import apsw
    import numpy as np
    import numpy.typing as npt

    from memoriter.store.database import Database
    from memoriter.store.vectors.nearest import VectorIndex

    Vector = npt.NDArray[np.float32]
    Rows = npt.NDArray[np.int64]
    """Ascending rowids."""


log = logs.get("store")

S = TypeVar("S")

#: The file that records when the digests of vector files were compared last.
VERIFIED = "verified"


class EngineSettings(Protocol):
    """The settings of a memory, as far as an engine needs them."""

    @property
    def agent(self) -> str:
        """The name of the agent."""

    def section(self, kind: type[S]) -> S:
        """Return the settings that an extension declares by this class."""


class DefaultSettings:
    """The settings of an engine that is opened without any: the defaults of its section."""

    agent = "main"

    def section(self, kind: type[S]) -> S:
        """Return the defaults."""
        return kind()


@dataclass(frozen=True, slots=True)
class EngineContext:
    """Everything that opens a vector engine for one index."""

    database: Database
    #: For the files of the engine. It may not exist yet.
    folder: Path
    settings: EngineSettings
    #: What has to be installed before the engine can work, in a sentence.
    missing: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorEngine:
    """A vector engine as an extension offers it in `Extension.vector_engines`."""

    open: Callable[[EngineContext], VectorIndex]
    #: The name for people.
    label: str
    #: The name of the folder for its files, beside the database of the index. Empty: it has none.
    folder: str = ""
    #: Whether it sends vectors to other machines. Its folder then stays when another engine is chosen, as a sign that
    #: vectors are left there.
    is_remote: bool = False
    #: Prepares every new connection to the database.
    on_connect: Callable[[apsw.Connection], None] | None = None


def find_engine(name: str) -> VectorEngine:
    """Return the engine with this name: `scan`, or one that an extension offers."""
    if name == "scan":
        return SCAN
    offered = offers("vector_engines")
    if name not in offered:
        raise StoreError(f"Unknown vector engine {name!r}. {suggest(name, ('scan', *offered))}")
    try:
        engine = offered[name].load()
    except (ImportError, AttributeError) as error:
        raise StoreError(f"The vector engine {name!r} cannot be loaded: {error}.") from error
    if not isinstance(engine, VectorEngine):
        raise StoreError(
            f"The vector engine {name!r} cannot be loaded: {offered[name].code} is not a VectorEngine."
        )
    return engine


def installed_engines() -> dict[str, VectorEngine]:
    """Return every engine by name. One that cannot be loaded is left out."""
    found = {"scan": SCAN}
    for name in offers("vector_engines"):
        try:
            found[name] = find_engine(name)
        except StoreError as error:
            log.warning("%s", error)
    return found


def open_engine(name: str, database: Database, beside: Path, settings: EngineSettings) -> VectorIndex:
    """Open the engine with this name. Its folder is in the folder ``beside``."""
    engine, offer = find_engine(name), offers("vector_engines").get(name) if name != "scan" else None
    missing = None
    if offer and not offer.is_installed():
        missing = f"{engine.label} is not installed. Run: {offer.install}"
    return engine.open(EngineContext(database, beside / (engine.folder or name), settings, missing))


def remove_unused(folder: Path, used: str) -> tuple[str, ...]:
    """Delete the files of engines that are no longer used. Return the engines that may still have vectors elsewhere."""
    others = {name: engine for name, engine in installed_engines().items() if name != used and engine.folder}
    for engine in others.values():
        if not engine.is_remote:
            shutil.rmtree(folder / engine.folder, ignore_errors=True)
    return tuple(engine.label for engine in others.values() if (folder / engine.folder).is_dir())


def distrust_files(folder: Path) -> None:
    """Let the next use of vector files compare their digests. Damage by a disk does not change the stats of files."""
    for stamp in (folder / SCAN.folder).glob(f"*/{VERIFIED}"):
        stamp.unlink(missing_ok=True)


def _open_scan(context: EngineContext) -> VectorIndex:
    from memoriter.store.vectors.scan import VectorScan

    return VectorScan(context.database, context.folder)


SCAN = VectorEngine(open=_open_scan, label="scan", folder="vectors")
