"""Restore a backup into a home and a workspace. Everything is verified before anything is replaced.

The new files are written to a folder inside the home. When all are there, a marker is written and the files are moved
to their places one by one. While the marker exists, the home cannot be opened. The next restore completes the moves.
Nothing is deleted but derived files: whatever is found in a place is moved aside, also if it was written during an
interruption.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

from memoriter.config.loading import RESTORE_MARKER, check_text
from memoriter.errors import BackupError, ConfigError, NotFound, PathRefused, message_of
from memoriter.extensions.backup.archive import CONFIG, Archive, open_archive
from memoriter.extensions.backup.checking import (
    check_consent,
    check_places,
    check_size,
    config_text,
    digest_of_note,
    notes_folder,
)
from memoriter.extensions.backup.copying import check_database
from memoriter.extensions.backup.creating import DERIVED
from memoriter.extensions.backup.migrating import TRANSIENT
from memoriter.extensions.settings.editing import set_value
from memoriter.files import durable
from memoriter.files.paths import open_folder, open_inside
from memoriter.files.platform import sync_file, sync_path
from memoriter.records import Progress, ProgressCallback

#: The folder in the home where a restore prepares the new files.
STAGING = RESTORE_MARKER.parent


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """The result of a restore, with the places of the files that it replaced."""

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
    accept: bool = False,
    dry_run: bool = False,
    progress: ProgressCallback | None = None,
) -> RestoreReport:
    """Restore a backup.

    ``workspace`` is the folder for the notes (default: where they were, if that is in the home or in the settings). A
    home that contains data, and notes that differ, are replaced only with ``force``. They are kept in the folder that
    the report names. ``accept`` also restores settings and files that need consent (`checking`).
    """
    home = home.expanduser().absolute()
    with open_archive(path.expanduser()) as archive:
        manifest = archive.manifest
        completed = None if dry_run else _complete(home)
        check_size(archive, home)
        for number, name in enumerate(archive.verify(), 1):
            if progress:
                progress(Progress("verify", number, len(manifest.files), name))
        notes = notes_folder(manifest, home, workspace)
        counts = len(manifest.files), manifest.notes, manifest.agents
        if completed and completed.archive == archive.digest:
            return RestoreReport(home, notes, *counts, replaced=_existing(completed.replaced))
        if not accept:
            check_consent(archive, home)
        check_places(archive, home, notes, force=force)
        if dry_run:
            return RestoreReport(home, notes, *counts, dry_run=True)
        replaced = _free(home / "replaced-1")
        try:
            _stage(archive, home, notes, replaced, progress)
        except OSError as error:
            shutil.rmtree(home / STAGING, ignore_errors=True)
            raise BackupError(f"{path} was not restored: {message_of(error)}.") from error
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
        try:
            found = _Moves.read(marker)
            for new, place, aside in found.moves:
                if new.is_relative_to(home / STAGING / "notes"):
                    _put_note(new, place, aside, new.relative_to(home / STAGING / "notes"))
                else:
                    _put(new, place, aside)
            marker.unlink()
            sync_path(marker.parent)
        except OSError as error:
            raise BackupError(
                f"The restore into {home} is not complete: {message_of(error)}. Run the same `memoriter restore` "
                "again, which completes it."
            ) from error
    shutil.rmtree(home / STAGING, ignore_errors=True)
    return found


def _put(new: Path, place: Path, aside: Path) -> None:
    """Move a new file or folder to its place, and what is there to a free name."""
    if not new.exists():
        return  # moved before an interruption
    if os.path.lexists(place):
        _relocate(place, _free(aside))
    _relocate(new, place)


def _put_note(new: Path, place: Path, aside: Path, path: Path) -> None:
    """Write a note below the workspace without following links. Another version of it is copied aside first."""
    root = place.parents[len(path.parts) - 1]
    durable.make_folder(root)
    if (digest := digest_of_note(root, path.as_posix())) == _digest(new):
        return
    try:
        with open_folder(root, path.parent.parts, make=True) as folder:
            target = folder / path.name
            if digest is not None:
                with open_inside(os.path.realpath(root), path.as_posix()) as old:
                    durable.write(_free(aside), os.read(old, os.fstat(old).st_size))
            temporary = durable.write_beside(target, [new.read_bytes()])
            os.utime(temporary, (new.stat().st_atime, new.stat().st_mtime))
            temporary.replace(target)
            sync_path(folder)
    except (PathRefused, NotFound) as error:
        raise BackupError(f"{place} was not restored. {error}") from error


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


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
        sync_path(folder)


def _free(aside: Path) -> Path:
    """Return a path with this name, or with a number after it, that does not exist."""
    stem, number, free = aside.name.removesuffix("-1"), 1, aside
    while os.path.lexists(free):
        number += 1
        free = aside.with_name(f"{stem}-{number}")
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


# ---- new files ----------------------------------------------------------------------------------------------------


def _stage(
    archive: Archive, home: Path, notes: Path, replaced: Path, progress: ProgressCallback | None
) -> None:
    """Write the new files into the staging folder, and then the list of moves."""
    staging = home / STAGING
    durable.make_folder(staging)
    names = [name for name in archive.manifest.files if name != CONFIG]
    for number, name in enumerate(names, 1):
        target = staging / name
        _write(target, archive.read(name), archive.manifest.files[name].modified)
        if target.suffix == ".db":
            check_database(target)
        if progress:
            progress(Progress("restore", number, len(names), name))
    old = Path(archive.manifest.workspace)
    durable.write(staging / CONFIG, _with_places(config_text(archive), home, old, notes).encode())
    moves = _Moves(archive.digest, replaced, list(_moves(archive, home, notes, replaced)))
    durable.write(home / RESTORE_MARKER, moves.to_json().encode())


def _write(target: Path, pieces: Iterator[bytes], modified: float) -> None:
    durable.make_folder(target.parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with os.fdopen(os.open(target, flags, 0o600), "wb") as file:
        file.writelines(pieces)
        file.flush()
        sync_file(file.fileno())
    os.utime(target, (modified, modified))


def _moves(archive: Archive, home: Path, notes: Path, replaced: Path) -> Iterator[tuple[Path, Path, Path]]:
    """Yield each new file or folder, its place, and the place for what it replaces."""
    staging = home / STAGING
    for agent in archive.manifest.agents:
        yield staging / "agents" / agent, home / "agents" / agent, replaced / "agents" / agent
    for name in archive.manifest.names("notes"):
        yield staging / name, notes / name.removeprefix("notes/"), replaced / name
    yield staging / CONFIG, home / CONFIG, replaced / CONFIG


def _with_places(text: str, home: Path, old: Path, notes: Path) -> str:
    """Return the settings with the folder of the notes and folders in it, and the databases in their usual places."""
    try:
        settings = check_text(home / CONFIG, text)
    except ConfigError:
        return text  # the owner can fix it; `doctor` says what is wrong
    if text.lstrip().startswith("{"):  # settings in braces cannot be edited line by line
        text = yaml.safe_dump(yaml.safe_load(text), allow_unicode=True, sort_keys=False)
    if notes != home / "workspace" or settings.origin("workspace") != "default":
        text = set_value(text, "workspace", str(notes))
    extra = settings.files.extra_paths
    moved = tuple(notes / path.relative_to(old) if path.is_relative_to(old) else path for path in extra)
    if moved != extra:
        text = set_value(text, "files.extra_paths", list(map(str, moved)))
    for key in ("home", "entries.database", "entries.index_folder"):
        if settings.origin(key) != "default":
            text = set_value(text, key, None)
    return text
