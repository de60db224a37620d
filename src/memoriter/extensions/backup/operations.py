"""The operations `backups.*`: backups in the folder `backups` of the home. To restore one, a person runs a command."""

from __future__ import annotations

import base64
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from memoriter.errors import NotFound
from memoriter.files import durable
from memoriter.tools.search import NoArguments
from memoriter.tools.tool import Arguments, Call, Count, Shape, operation

if TYPE_CHECKING:
    from memoriter.memory import Memory

#: Bytes in one answer of `backups.read`.
PIECE = 3_000_000
_NAME = re.compile(r"memoriter-[\d-]+\.zip")


class BackupJson(Shape):
    """A backup file."""

    name: str
    path: str
    bytes: Count
    at: float


class BackupsResult(Shape):
    """The backups, newest first."""

    backups: list[BackupJson] = Field(default=[])


class NameArguments(Arguments):
    """Arguments of an operation on one backup."""

    name: str = Field(max_length=100, description="The name of the file.")


class ReadArguments(NameArguments):
    """Arguments of `backups.read`."""

    offset: int = Field(default=0, ge=0, description="The first byte.")


class CheckedResult(Shape):
    """The content of a backup. Every file was compared with its digest."""

    name: str = ""
    path: str = ""
    bytes: Count = 0
    files: Count = 0
    notes: Count = 0
    agents: list[str] = Field(default=[])
    not_included: list[str] = Field(default=[], description="Folders with notes outside of the workspace.")


class PieceResult(Shape):
    """A part of a backup file."""

    data: str = Field(default="", description="The bytes in base64.")
    next: int | None = Field(default=None, description="`offset` of the next part.")


@operation("backups.list", owner_only=True)
def backups(call: Call[NoArguments]) -> BackupsResult:
    """List the backups in the folder `backups` of the home."""
    return _listed(call.memory)


@operation("backups.create", read_only=False, owner_only=True)
def create(call: Call[NoArguments]) -> CheckedResult:
    """Write everything that cannot be rebuilt to one verified file in the folder `backups` of the home."""
    from memoriter import __version__
    from memoriter.extensions.backup.creating import create as create_backup

    folder = _folder(call.memory)
    durable.make_folder(folder)
    path = folder / f"memoriter-{time.strftime('%Y-%m-%d-%H%M%S')}.zip"
    report = create_backup(call.memory.settings, path, version=__version__)
    return CheckedResult(
        name=path.name,
        path=str(path),
        bytes=report.bytes,
        files=report.files,
        notes=report.notes,
        agents=list(report.agents),
        not_included=list(report.not_included),
    )


@operation("backups.check", owner_only=True)
def check(call: Call[NameArguments]) -> CheckedResult:
    """Compare every file of a backup with its digest, and say what the backup contains."""
    from memoriter.extensions.backup.archive import open_archive

    path = _file(call.memory, call.arguments.name)
    with open_archive(path) as archive:
        files = sum(1 for _ in archive.verify())
        notes, agents = archive.manifest.notes, list(archive.manifest.agents)
    size = path.stat().st_size
    return CheckedResult(name=path.name, path=str(path), bytes=size, files=files, notes=notes, agents=agents)


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
    return BackupsResult(backups=sorted(found, key=lambda one: -one.at))


def _folder(memory: Memory) -> Path:
    return memory.settings.home / "backups"


def _file(memory: Memory, name: str) -> Path:
    path = _folder(memory) / name
    if not _NAME.fullmatch(name) or not path.is_file() or path.is_symlink():
        raise NotFound(f"There is no backup {name!r}.")
    return path
