"""Restore a backup into a home and a workspace. Everything is verified before anything is replaced.

The new files are written to a folder inside the home. When all are there, a marker is written and the files are moved
to their places one by one. While the marker exists, the home cannot be opened. The next restore completes the moves.
Nothing is deleted but derived files: whatever is found in a place is moved aside, also if it was written during an
interruption.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memoriter.backup.archive import CONFIG, Archive, Manifest, open_archive
from memoriter.backup.creating import DERIVED, TRANSIENT
from memoriter.config.editing import set_value
from memoriter.config.loading import RESTORE_MARKER, check_text
from memoriter.errors import BackupError, ConfigError
from memoriter.files import durable
from memoriter.records import Progress, ProgressCallback
from memoriter.store.copying import check_database

#: The folder in the home where a restore prepares the new files.
STAGING = RESTORE_MARKER.parent
#: Files of an agent that cannot be rebuilt.
TRUTH = ("memory.db", "items.db", "sessions", "queue")


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What was restored, and where the files that it replaced are now."""

    home: Path
    workspace: Path
    files: int
    notes: int
    agents: tuple[str, ...]
    replaced: Path | None = None
    dry_run: bool = False


def restore(
    path: Path,
    *,
    home: Path,
    workspace: Path | None = None,
    force: bool = False,
    dry_run: bool = False,
    progress: ProgressCallback | None = None,
) -> RestoreReport:
    """Restore a backup.

    ``workspace`` is the folder for the notes (default: where they were). A home that contains data, and notes that
    differ, are replaced only with ``force``. They are kept in the folder that the report names.
    """
    home = home.expanduser().absolute()
    with open_archive(path.expanduser()) as archive:
        manifest = archive.manifest
        completed = None if dry_run else _complete(home)
        for number, name in enumerate(archive.verify(), 1):
            if progress:
                progress(Progress("verify", number, len(manifest.files), name))
        notes = _notes_folder(manifest, home, workspace)
        counts = len(manifest.files), manifest.notes, manifest.agents
        if completed and completed.archive == archive.digest:
            return RestoreReport(home, notes, *counts, replaced=_existing(completed.replaced))
        if not force:
            _refuse_to_replace(archive, home, notes)
        if dry_run:
            return RestoreReport(home, notes, *counts, dry_run=True)
        replaced = _aside(home)
        _stage(archive, home, notes, replaced, progress)
    _complete(home)
    if not force:
        _remove_derived(replaced)
    return RestoreReport(home, notes, *counts, replaced=_existing(replaced))


@dataclass(frozen=True, slots=True)
class _Moves:
    """The content of the marker: which archive is restored, and where its files belong."""

    archive: str
    replaced: Path
    #: Each new file or folder, its place, and the place for what it replaces.
    moves: list[tuple[Path, Path, Path]]

    @classmethod
    def read(cls, marker: Path) -> _Moves:
        data = json.loads(marker.read_text("utf-8"))
        if isinstance(data, list):  # written by an older release
            data = {"archive": "", "replaced": "", "moves": data}
        moves = [(Path(new), Path(place), Path(aside)) for new, place, aside in data["moves"]]
        return cls(data["archive"], Path(data["replaced"]), moves)

    def to_json(self) -> str:
        moves = [[str(path) for path in move] for move in self.moves]
        return json.dumps({"archive": self.archive, "replaced": str(self.replaced), "moves": moves})


def _complete(home: Path) -> _Moves | None:
    """Move the prepared files of a restore to their places. Return its moves, or None if there was no such restore."""
    marker, found = home / RESTORE_MARKER, None
    if marker.is_file():
        found = _Moves.read(marker)
        for move in found.moves:
            _put(*move)
        marker.unlink()
        durable.sync_folder(marker.parent)
    shutil.rmtree(home / STAGING, ignore_errors=True)
    return found


def _put(new: Path, place: Path, aside: Path) -> None:
    """Move a new file or folder to its place, and what is there to a free name."""
    if not new.exists():
        return  # moved before an interruption
    if os.path.lexists(place):
        _relocate(place, _free(aside))
    _relocate(new, place)


def _relocate(source: Path, target: Path) -> None:
    """Move a file or folder. On another disk, the target appears when it is complete."""
    durable.make_folder(target.parent)
    try:
        os.rename(source, target)  # noqa: PTH104 - a test counts these calls
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy, old = (path.with_name(f".{path.name}.moving") for path in (target, source))
        _remove(copy)  # of an interrupted move
        shutil.copytree(source, copy, symlinks=True) if source.is_dir() else shutil.copy2(source, copy)
        getattr(os, "sync", lambda: None)()  # Windows has none
        copy.rename(target)
        source.rename(old)  # in one step, so that a part of it is never taken for the whole
        _remove(old)
    for folder in (target.parent, source.parent):
        durable.sync_folder(folder)


def _free(aside: Path) -> Path:
    number, free = 1, aside
    while os.path.lexists(free):
        number += 1
        free = aside.with_name(f"{aside.name}-{number}")
    return free


def _existing(path: Path) -> Path | None:
    return path if path.exists() and path.name else None


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)


def _remove_derived(replaced: Path) -> None:
    """Remove what can be rebuilt from the files that were moved aside, and folders that are empty then."""
    for path in replaced.glob("agents/*/*"):
        if path.name.startswith(DERIVED) or path.name.endswith(TRANSIENT):
            _remove(path)
    for folder in sorted((path for path in replaced.rglob("*") if path.is_dir()), reverse=True):
        with suppress(OSError):
            folder.rmdir()
    with suppress(OSError):
        replaced.rmdir()


# ---- places -------------------------------------------------------------------------------------------------------


def _notes_folder(manifest: Manifest, home: Path, workspace: Path | None) -> Path:
    if workspace is not None:
        return workspace.expanduser().absolute()
    return home / "workspace" if manifest.workspace_in_home else Path(manifest.workspace)


def _aside(home: Path) -> Path:
    """Return a new folder in the home for what is replaced."""
    number = 1
    while (home / f"replaced-{number}").exists():
        number += 1
    return home / f"replaced-{number}"


def _refuse_to_replace(archive: Archive, home: Path, notes: Path) -> None:
    found = [
        home / CONFIG,
        *(home / "agents" / name / truth for name in archive.manifest.agents for truth in TRUTH),
    ]
    if existing := next((path for path in found if _holds_data(path)), None):
        raise BackupError(
            f"{home} already contains a memory ({existing.relative_to(home)}). Restore into another --home, or "
            "replace it with --force, which keeps the old files."
        )
    for name in archive.manifest.names("notes"):
        place = notes / name.removeprefix("notes/")
        if place.exists() and place.read_bytes() != b"".join(archive.read(name)):
            raise BackupError(
                f"{place} differs from the note in the backup. Restore into another --workspace, or replace it "
                "with --force, which keeps the old files."
            )


def _holds_data(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()


# ---- new files ----------------------------------------------------------------------------------------------------


def _stage(
    archive: Archive,
    home: Path,
    notes: Path,
    replaced: Path,
    progress: ProgressCallback | None,
) -> None:
    """Write the new files into the staging folder, and then the list of moves."""
    staging = home / STAGING
    durable.make_folder(staging)
    names = [name for name in archive.manifest.files if name != CONFIG]
    for number, name in enumerate(names, 1):
        target = staging / name
        _write(target, archive.read(name), archive.manifest.files[name].modified, name.startswith("notes/"))
        if target.suffix == ".db":
            check_database(target)
        if progress:
            progress(Progress("restore", number, len(names), name))
    config = b"".join(archive.read(CONFIG)).decode() if CONFIG in archive.manifest.files else ""
    durable.write(staging / CONFIG, _with_places(config, home, notes).encode())
    moves = _Moves(archive.digest, replaced, list(_moves(archive, home, notes, replaced)))
    durable.write(home / RESTORE_MARKER, moves.to_json().encode())


def _write(target: Path, pieces: Iterator[bytes], modified: float, is_note: bool) -> None:
    durable.make_folder(target.parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with os.fdopen(os.open(target, flags, 0o666 if is_note else 0o600), "wb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())
    os.utime(target, (modified, modified))


def _moves(archive: Archive, home: Path, notes: Path, replaced: Path) -> Iterator[tuple[Path, Path, Path]]:
    """Yield each new file or folder, its place, and the place for what it replaces."""
    staging = home / STAGING
    for agent in archive.manifest.agents:
        yield staging / "agents" / agent, home / "agents" / agent, replaced / "agents" / agent
    for name in archive.manifest.names("notes"):
        yield staging / name, notes / name.removeprefix("notes/"), replaced / name
    yield staging / CONFIG, home / CONFIG, replaced / CONFIG


def _with_places(text: str, home: Path, notes: Path) -> str:
    """Return the settings with the folder of the notes, and with the databases in their usual places."""
    try:
        settings = check_text(home / CONFIG, text)
    except ConfigError:
        return text  # the owner can fix it; `doctor` says what is wrong
    if notes != home / "workspace" or settings.origin("workspace") != "default":
        text = set_value(text, "workspace", str(notes))
    for key in ("entries.database", "entries.index_folder"):
        if settings.origin(key) != "default":
            text = set_value(text, key, None)
    return text
