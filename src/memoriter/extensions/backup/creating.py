"""Write a backup. It is one consistent file, also while other processes use the memory."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from memoriter.build import build_workspace
from memoriter.config import Settings
from memoriter.config.layers import WORKSPACE_FILE
from memoriter.errors import BackupError
from memoriter.extension import offers
from memoriter.extensions.backup.archive import CONFIG, Manifest, Writer, open_archive
from memoriter.extensions.backup.copying import copy_database
from memoriter.extensions.backup.migrating import files_below, migrate
from memoriter.files.paths import open_inside
from memoriter.files.platform import replace, set_mode, sync_file, sync_path
from memoriter.records import Progress, ProgressCallback
from memoriter.store.vectors import installed_engines

#: Folders of an agent that hold files as they are. They are read first, see `_agent_files`.
STATE_FOLDERS = ("queue", "hooks", "flushes", "seen_turns", "sessions", "deleted")
#: Folders that can be rebuilt, in the folder of an agent. `items.db`, beside its index in `items`, cannot.
DERIVED = ("workspaces", "entries", "items")


@dataclass(frozen=True, slots=True)
class BackupReport:
    """The content of a backup, and what is left out."""

    path: Path
    bytes: int
    files: int
    notes: int
    agents: tuple[str, ...]
    #: Folders with notes outside of the workspace.
    not_included: tuple[str, ...] = ()


def create(
    settings: Settings,
    path: Path,
    *,
    config: Path | None = None,
    version: str = "",
    force: bool = False,
    progress: ProgressCallback | None = None,
) -> BackupReport:
    """Write everything that cannot be rebuilt to one file, which only its owner may read, and verify it.

    ``config`` is the settings file (default: the one in the home). An existing file is replaced only with ``force``.
    Of a memory on a server, the agent of the settings is copied, without the settings that name the server.
    """
    path = path.expanduser().absolute()
    if path.is_dir():
        path /= f"memoriter-{time.strftime('%Y-%m-%d')}.zip"
    if path.exists() and not force:
        raise BackupError(f"{path} exists already. Choose another name, or replace it with --force.")
    if not path.parent.is_dir():
        raise BackupError(f"The folder {path.parent} does not exist. Create it, or choose another place.")
    with tempfile.TemporaryDirectory(prefix=f".{path.name[:40]}.", dir=path.parent) as folder:
        if settings.store.is_shared:
            home, config = Path(folder, "home"), None
            places = {"home": home, "workspace": home / "workspace"}
            (home / "workspace").mkdir(parents=True, mode=0o700)
            store = settings.store.model_copy(update={"url": None})
            own = settings.model_copy(update={**places, "store": store})
            migrate(settings, own, progress=progress)
            settings = own
        return _create(settings, path, Path(folder), config, version, progress)


def _create(
    settings: Settings,
    path: Path,
    folder: Path,
    config: Path | None,
    version: str,
    progress: ProgressCallback | None,
) -> BackupReport:
    root = Path(os.path.realpath(settings.workspace))
    home = Path(os.path.realpath(settings.home))
    manifest = Manifest(version, time.time(), str(settings.workspace), root.is_relative_to(home))
    target = folder / "backup.zip"
    with os.fdopen(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as file:
        set_mode(target, 0o600)
        outside = list[str]()
        sources = [*_home_files(settings, folder, config), *_notes(settings, root, outside)]
        with closing(Writer(file, manifest)) as writer:
            for number, (name, source) in enumerate(sources, 1):
                source.add(writer, name)
                if progress:
                    progress(Progress("backup", number, len(sources), name))
            writer.finish()
        file.flush()
        sync_file(file.fileno())
    with open_archive(target) as archive:
        for number, name in enumerate(archive.verify(), 1):
            if progress:
                progress(Progress("verify", number, len(manifest.files), name))
    size = target.stat().st_size
    replace(target, path)
    sync_path(path.parent)
    return BackupReport(
        path, size, len(manifest.files), manifest.notes, manifest.agents, tuple(sorted(set(outside)))
    )


# ---- what is read -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Source:
    """One file to add. A file below a ``root`` is opened without following links."""

    path: Path
    root: Path | None = None
    #: Where a copy of a database may be made. None for other files.
    folder: Path | None = None

    def add(self, writer: Writer, name: str) -> None:
        """Add the file to a backup. A file that was deleted in the meantime is left out."""
        if self.folder is not None:
            copy = self.folder / "copy.db"
            copy_database(self.path, copy)
            with copy.open("rb") as stream:
                writer.add(name, stream, modified=self.path.stat().st_mtime)
            copy.unlink()
            return
        with suppress(FileNotFoundError):
            modified = self.path.stat().st_mtime
            if self.root is None:
                with self.path.open("rb") as stream:
                    writer.add(name, stream, modified=modified)
                return
            with (
                open_inside(str(self.root), self.path.relative_to(self.root).as_posix()) as descriptor,
                open(descriptor, "rb", closefd=False) as stream,
            ):
                writer.add(name, stream, modified=modified)


def _home_files(settings: Settings, folder: Path, config: Path | None) -> Iterator[tuple[str, _Source]]:
    file = config or settings.home / CONFIG
    if file.is_file():
        yield CONFIG, _Source(file)
    agents = settings.home / "agents"
    for agent in sorted(agents.iterdir()) if agents.is_dir() else ():
        if agent.is_dir():
            own = settings.model_copy(update={"agent": agent.name})
            yield from _agent_files(own, folder)


def _agent_files(settings: Settings, folder: Path) -> Iterator[tuple[str, _Source]]:
    """List the files of one agent.

    The queue and the progress are read before the database. What an agent learns in between is then processed again
    after a restore and recognised as known. In the other order it would be lost.
    """
    home, prefix = settings.agent_folder, f"agents/{settings.agent}"
    for name in STATE_FOLDERS:
        for file in files_below(home / name):
            yield f"{prefix}/{file.relative_to(home).as_posix()}", _Source(file)
    engines = (engine.folder for engine in installed_engines().values() if engine.folder)
    derived = (*DERIVED, *engines, *offers("engines"))  # the folder of a search engine has its name
    for entry in sorted(home.iterdir()):
        if entry.name in (*STATE_FOLDERS, *derived, "memory.db") or entry.name.startswith("index.db"):
            continue
        for file in files_below(entry):
            name = f"{prefix}/{file.relative_to(home).as_posix()}"
            yield name, _Source(file, folder=folder if file.suffix == ".db" else None)
    if settings.entries_database.is_file():
        yield f"{prefix}/memory.db", _Source(settings.entries_database, folder=folder)


def _notes(settings: Settings, root: Path, outside: list[str]) -> Iterator[tuple[str, _Source]]:
    """List the notes of the workspace. Folders of notes elsewhere are added to ``outside``."""
    for found in build_workspace(settings).scan().files:
        real = found.absolute
        if real.is_relative_to(root):
            yield f"notes/{real.relative_to(root).as_posix()}", _Source(real, root)
        else:
            outside.append(str(real.parent))
    own = root / WORKSPACE_FILE
    if own.is_file() and not own.is_symlink():
        yield f"notes/{WORKSPACE_FILE}", _Source(own, root)
