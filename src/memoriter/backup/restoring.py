"""Restore a backup into a home and a workspace. Everything is verified before anything is replaced.

The new files are written to a folder inside the home. When all are there, a marker is written and the files are moved
to their places one by one. An interrupted move is completed by the next restore.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memoriter.backup.archive import CONFIG, Archive, Manifest, open_archive
from memoriter.config.editing import set_value
from memoriter.config.loading import check_text
from memoriter.errors import BackupError, ConfigError
from memoriter.files import durable
from memoriter.records import Progress, ProgressCallback
from memoriter.store.copying import check_database

#: The folder in the home where a restore prepares the new files.
STAGING = ".restoring"
#: Written when all new files are in the staging folder. It lists where they belong.
MARKER = "moves.json"
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
    finish_interrupted(home)
    with open_archive(path.expanduser()) as archive:
        manifest = archive.manifest
        for number, name in enumerate(archive.verify(), 1):
            if progress:
                progress(Progress("verify", number, len(manifest.files), name))
        notes = _notes_folder(manifest, home, workspace)
        if not force:
            _refuse_to_replace(archive, home, notes)
        counts = len(manifest.files), manifest.notes, manifest.agents
        if dry_run:
            return RestoreReport(home, notes, *counts, dry_run=True)
        replaced = _aside(home)
        _stage(archive, home, notes, replaced, progress)
    finish_interrupted(home)
    if not force:  # only derived files were there
        shutil.rmtree(replaced, ignore_errors=True)
    return RestoreReport(home, notes, *counts, replaced=replaced if replaced.exists() else None)


def is_interrupted(home: Path) -> bool:
    """Return whether a restore was interrupted while it moved files to their places."""
    return (home / STAGING / MARKER).is_file()


def finish_interrupted(home: Path) -> None:
    """Move the files of a restore to their places. What is there is moved aside first."""
    staging = home / STAGING
    if is_interrupted(home):
        for new, place, aside in json.loads((staging / MARKER).read_text("utf-8")):
            _move(Path(new), Path(place), Path(aside))
    shutil.rmtree(staging, ignore_errors=True)


def _move(new: Path, place: Path, aside: Path) -> None:
    if not new.exists():
        return  # moved before an interruption
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists() and aside.exists():
        _remove(place)  # a part of the new file, from an interrupted move to another disk
    elif place.exists():
        durable.make_folder(aside.parent)
        shutil.move(place, aside)
    shutil.move(new, place)
    durable.sync_folder(place.parent)


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


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
    moves = [[str(part) for part in move] for move in _moves(archive, home, notes, replaced)]
    durable.write(staging / MARKER, json.dumps(moves).encode())


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
