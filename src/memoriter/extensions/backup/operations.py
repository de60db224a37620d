"""The operations `backups.*`: backups in the folder `backups` of the home.

A restore replaces files that are open. So the gateway shuts down in order, restores, and serves again.
"""

from __future__ import annotations

import base64
import re
import time
from dataclasses import asdict
from functools import partial
from itertools import count
from pathlib import Path

from pydantic import Field

from memoriter import logs
from memoriter.config.fields import described
from memoriter.errors import BackupError, MemoriterError, NotFound, message_of
from memoriter.files import durable
from memoriter.memory import Memory
from memoriter.tools.search import NoArguments
from memoriter.tools.tool import Arguments, Call, Count, Shape, operation

log = logs.get("backup")

#: Bytes in one answer of `backups.read`.
PIECE = 3_000_000
#: The last restore of each home, by a gateway of this process.
_restored: dict[Path, RestoredJson] = {}
_NAME = re.compile(r"memoriter-[\d-]+\.zip")


class BackupJson(Shape):
    """A backup file."""

    name: str
    path: str
    bytes: Count
    at: float


class RestoredJson(Shape):
    """The result of a restore."""

    name: str
    at: float
    before: str = described("", "The backup of what was there before.")
    replaced: str = described("", "The folder with the files that were replaced.")
    error: str = ""


class BackupsResult(Shape):
    """The backups, newest first."""

    backups: list[BackupJson] = Field(default=[])
    restored: RestoredJson | None = described(None, "The last restore by this gateway.")


class NameArguments(Arguments):
    """Arguments of an operation on one backup."""

    name: str = Field(max_length=100, description="The name of the file.")


class RestoreArguments(NameArguments):
    accept: bool = described(
        False, "Restore also the settings and files that `backups.check` names in `brings`."
    )


class ReadArguments(NameArguments):
    offset: int = described(0, "The first byte.", ge=0)


class CheckedResult(Shape):
    """The content of a backup. Every file was compared with its digest."""

    name: str = ""
    path: str = ""
    bytes: Count = 0
    files: Count = 0
    notes: Count = 0
    agents: list[str] = Field(default=[])
    not_included: list[str] = described([], "Folders with notes outside of the workspace.")
    brings: list[str] = described(
        [], "Settings and files that may run a program, send or read text elsewhere, or trust others."
    )


class PieceResult(Shape):
    """A part of a backup file."""

    data: str = described("", "The bytes in base64.")
    next: int | None = described(None, "`offset` of the next part.")


@operation("backups.list", owner_only=True)
def backups(call: Call[NoArguments]) -> BackupsResult:
    """List the backups in the folder `backups` of the home."""
    return _listed(call.memory)


@operation("backups.create", read_only=False, owner_only=True)
def create(call: Call[NoArguments]) -> CheckedResult:
    """Write everything that cannot be rebuilt to one verified file in the folder `backups` of the home."""
    from memoriter import __version__
    from memoriter.extensions.backup.creating import create as create_backup

    report = create_backup(call.memory.settings, _new_file(call.memory), version=__version__)
    found = {**asdict(report), "name": report.path.name, "path": str(report.path)}
    return CheckedResult.model_validate(found)


@operation("backups.check", owner_only=True)
def check(call: Call[NameArguments]) -> CheckedResult:
    """Compare every file of a backup with its digest, and say what the backup contains."""
    from memoriter.extensions.backup.archive import open_archive
    from memoriter.extensions.backup.checking import brings

    path = _file(call.memory, call.arguments.name)
    with open_archive(path) as archive:
        return CheckedResult(
            name=path.name,
            path=str(path),
            files=sum(1 for _ in archive.verify()),
            bytes=path.stat().st_size,
            notes=archive.manifest.notes,
            agents=list(archive.manifest.agents),
            brings=brings(archive, call.memory.settings.home),
        )


@operation("backups.read", owner_only=True)
def read(call: Call[ReadArguments]) -> PieceResult:
    """Read a part of a backup file, to download it."""
    path, start = _file(call.memory, call.arguments.name), call.arguments.offset
    with path.open("rb") as file:
        file.seek(start)
        piece = file.read(PIECE)
    following = start + len(piece)
    more = following < path.stat().st_size
    return PieceResult(data=base64.b64encode(piece).decode(), next=following if more else None)


@operation("backups.restore", read_only=False, destructive=True, owner_only=True)
def restore(call: Call[RestoreArguments]) -> CheckedResult:
    """Restore a backup while the gateway runs. It verifies the backup, backs up what is there, restarts with the
    files of the backup, and keeps those that it replaces. Requests wait meanwhile; `backups.list` has the result."""
    from memoriter import __version__
    from memoriter.extensions.backup.creating import create as create_backup
    from memoriter.extensions.backup.restoring import restore as restore_backup
    from memoriter.extensions.serving.server import SERVING

    settings, arguments = call.memory.settings, call.arguments
    home, path = settings.home, _file(call.memory, arguments.name)
    gateway = SERVING.get(home)
    if gateway is None or settings.store.is_shared:
        raise BackupError(
            f"Only a gateway with its memory in files can do this. Run `memoriter restore {path} --force`."
        )
    restore_now = partial(
        restore_backup, path, home=home, workspace=settings.workspace, force=True, accept=arguments.accept
    )
    found = restore_now(dry_run=True)
    before = create_backup(settings, _new_file(call.memory), version=__version__).path.name

    def work() -> None:
        replaced, wrong = None, ""
        try:
            replaced = restore_now().replaced
        except (MemoriterError, OSError) as error:
            log.exception("%s was not restored", path)
            wrong = message_of(error)
        _restored[home] = RestoredJson(
            name=path.name, at=time.time(), before=before, replaced=str(replaced or ""), error=wrong
        )

    gateway.restart(work)
    return CheckedResult(name=path.name, files=found.files, notes=found.notes, agents=list(found.agents))


@operation("backups.remove", read_only=False, destructive=True, owner_only=True)
def remove(call: Call[NameArguments]) -> BackupsResult:
    """Delete a backup from the folder `backups` of the home. Return the others."""
    durable.remove(_file(call.memory, call.arguments.name))
    return _listed(call.memory)


def _listed(memory: Memory) -> BackupsResult:
    folder = _folder(memory)
    files = [(file, file.stat()) for file in folder.glob("memoriter-*.zip")] if folder.is_dir() else []
    found = [
        BackupJson(name=file.name, path=str(file), bytes=stat.st_size, at=stat.st_mtime)
        for file, stat in files
    ]
    ordered = sorted(found, key=lambda one: -one.at)
    return BackupsResult(backups=ordered, restored=_restored.get(memory.settings.home))


def _folder(memory: Memory) -> Path:
    return memory.settings.home / "backups"


def _new_file(memory: Memory) -> Path:
    """Return the path of a new backup, with the time in its name."""
    durable.make_folder(_folder(memory))
    stem = f"memoriter-{time.strftime('%Y-%m-%d-%H%M%S')}"
    names = (f"{stem}{f'-{number}' if number else ''}.zip" for number in count())
    return next(path for name in names if not (path := _folder(memory) / name).exists())


def _file(memory: Memory, name: str) -> Path:
    path = _folder(memory) / name
    if not _NAME.fullmatch(name) or not path.is_file() or path.is_symlink():
        raise NotFound(f"There is no backup {name!r}.")
    return path
