"""Copy the memory of an agent from files to a server, or back: entries, items, notes and state files.

The source is only read. An interrupted migration continues when it is run again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.build import SHARED_FILES, build_store, build_workspace, share_files
from memoriter.errors import BackupError
from memoriter.extensions.backup.table_copy import CopiedTable, copy_area
from memoriter.files import durable, shared
from memoriter.records import Progress, ProgressCallback

if TYPE_CHECKING:
    from memoriter.config import Settings

#: The part of the shared files that holds the notes.
NOTES = "workspace"
#: Endings of files that belong to a running process.
TRANSIENT = (".lock", ".tmp", ".new", "-wal", "-shm")
#: An index alone has nothing to copy.
NO_INDEX = Path()


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """The result of a copy. Every table and file was compared afterwards."""

    agent: str
    tables: tuple[CopiedTable, ...]
    notes: int
    #: Transcripts and state files.
    files: int
    #: Folders with notes outside of the workspace, which stay where they are.
    not_included: tuple[str, ...] = ()


def migrate(
    source: Settings, target: Settings, *, progress: ProgressCallback | None = None
) -> MigrationReport:
    """Copy the memory of the agent that both settings name, and verify it."""
    if source.store.is_shared == target.store.is_shared:
        raise BackupError("Migrate from `sqlite` to the URL of a server, or from such a URL to `sqlite`.")
    tables = list[CopiedTable]()
    for area in ("entries", "items"):
        if build_store(source).may_hold(area, NO_INDEX):
            with (
                closing(build_store(source).open_rows(area)) as old,
                closing(build_store(target).open_rows(area)) as new,
            ):
                tables += copy_area(area, old, new, progress)
    with _sharing(source), _sharing(target):
        files = _copy_files(source, target, progress)
    notes = sum(name.startswith(f"{NOTES}/") for name in files)
    outside = tuple(str(extra.path) for extra in source.extra_paths)
    return MigrationReport(source.agent, tuple(tables), notes, len(files) - notes, outside)


@contextmanager
def _sharing(settings: Settings) -> Iterator[None]:
    release = share_files(settings, build_store(settings))
    try:
        shared.refresh(settings.agent_folder)
        yield
    finally:
        release()


def _place(settings: Settings, name: str) -> Path:
    """Return the file with this name, which starts with its part of the shared files."""
    part, _, inside = name.partition("/")
    root = settings.workspace if part == NOTES else settings.agent_folder / part
    return root / inside if inside else root


def _copy_files(source: Settings, target: Settings, progress: ProgressCallback | None) -> list[str]:
    """Copy the notes and state files that differ. A file that differs in the target already is not replaced."""
    names = list(_names(source))
    new = [name for name in names if not _is_same(source, target, name)]
    for name in new:
        if _place(target, name).exists():
            raise BackupError(
                f"{name} exists in the target with another content. Choose an agent or a workspace without it."
            )
    with shared.changing(*(_place(target, name) for name in new)):
        for number, name in enumerate(new, 1):
            place, old = _place(target, name), _place(source, name)
            durable.write(place, old.read_bytes())
            os.utime(place, ns=(old.stat().st_atime_ns, old.stat().st_mtime_ns))
            if progress:
                progress(Progress("migrate", number, len(new), name))
    different = [name for name in names if not _is_same(source, target, name)]
    if different:
        raise BackupError(f"{different[0]} changed during the migration. Run it again.")
    return names


def _names(settings: Settings) -> Iterator[str]:
    root = Path(os.path.realpath(settings.workspace))
    for note in build_workspace(settings).scan().files:
        if note.absolute.is_relative_to(root):
            yield f"{NOTES}/{note.absolute.relative_to(root).as_posix()}"
    for part in SHARED_FILES:
        for file in files_below(settings.agent_folder / part) if part != NOTES else ():
            yield file.relative_to(settings.agent_folder).as_posix()


def files_below(path: Path) -> list[Path]:
    """Return a file, or the files below a folder, without those of running processes."""
    found = [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else []
    own = [file for file in found if file.is_file() and not file.is_symlink()]
    return [file for file in own if not file.name.endswith(TRANSIENT) and ".broken-" not in file.name]


def _is_same(source: Settings, target: Settings, name: str) -> bool:
    place = _place(target, name)
    return place.is_file() and _digest(place) == _digest(_place(source, name))


def _digest(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest()
