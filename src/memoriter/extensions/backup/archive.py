"""The format of a backup: a ZIP file with a manifest that has the size and the SHA-256 digest of every file.

Names in the archive: ``config.yaml``, ``agents/<agent>/…`` and ``notes/…``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import struct
import time
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Annotated, Any

from pydantic import ConfigDict, Field, StrictBool, TypeAdapter, ValidationError

from memoriter.config.layers import WORKSPACE_FILE
from memoriter.errors import BackupError, reason_of

FORMAT = "memoriter-backup"
VERSION = 1
MANIFEST = "manifest.json"
FOLDERS = ("agents", "notes")
CONFIG = "config.yaml"
_PIECE = 1 << 20
_MAX_MANIFEST_BYTES = 64 << 20
_PLAIN = ConfigDict(extra="forbid")
#: Characters that no name in a backup has: control characters, single surrogates and the other slash.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
#: What a damaged archive can raise while it is read.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError, OSError)


Time = Annotated[float, Field(strict=True, ge=-1e11, le=1e11, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class Member:
    """One file of a backup."""

    __pydantic_config__ = _PLAIN

    bytes: Annotated[int, Field(strict=True, ge=0)]
    sha256: str
    #: Time of its last change, in seconds since the epoch.
    modified: Time


@dataclass(slots=True)
class Manifest:
    """The content of a backup."""

    __pydantic_config__ = _PLAIN

    memoriter: str
    created_at: Time
    #: The folder of the notes on the machine of the backup, and whether it was inside the home.
    workspace: str
    workspace_in_home: StrictBool
    files: dict[str, Member] = field(default_factory=dict)

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents in the backup."""
        found = (PurePosixPath(name).parts for name in self.files)
        return tuple(sorted({parts[1] for parts in found if parts[0] == "agents"}))

    @property
    def notes(self) -> int:
        """The number of notes. The settings file of the workspace is beside them."""
        return sum(name != f"notes/{WORKSPACE_FILE}" for name in self.names("notes"))

    def names(self, folder: str) -> list[str]:
        """Return the names of the files below a folder."""
        return [name for name in self.files if name.startswith(f"{folder}/")]


class Writer:
    """Writes the files of a backup, and the manifest at the end."""

    def __init__(self, file: IO[bytes], manifest: Manifest) -> None:
        self._archive = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self.manifest = manifest

    def add(self, name: str, source: IO[bytes], *, modified: float) -> None:
        """Add one file."""
        info = zipfile.ZipInfo(name, time.gmtime(max(modified, 315_532_800))[:6])  # ZIP starts in 1980
        info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
        digest, size = hashlib.sha256(), 0
        with self._archive.open(info, "w", force_zip64=True) as target:
            while piece := source.read(_PIECE):
                target.write(piece)
                digest.update(piece)
                size += len(piece)
        self.manifest.files[name] = Member(size, digest.hexdigest(), modified)

    def finish(self) -> None:
        """Write the manifest."""
        text = json.dumps({"format": FORMAT, "version": VERSION, **asdict(self.manifest)}, ensure_ascii=False)
        self._archive.writestr(MANIFEST, text)

    def close(self) -> None:
        """Close the archive."""
        self._archive.close()


class Archive:
    """A backup that is being read."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, manifest: Manifest, digest: str) -> None:
        self.path = path
        self.manifest = manifest
        #: The digest of the manifest, which has the digests of all files.
        self.digest = digest
        self._archive = archive

    def verify(self) -> Iterator[str]:
        """Compare every file with its digest, and yield its name. Raises `BackupError` for a damaged file."""
        for name in self.manifest.files:
            for _ in self.read(name):
                pass
            yield name

    def read(self, name: str) -> Iterator[bytes]:
        """Yield the content of one file. The last step compares it with the manifest."""
        member, digest, size = self.manifest.files[name], hashlib.sha256(), 0
        try:
            with self._archive.open(name) as source:
                while size <= member.bytes and (piece := source.read(_PIECE)):
                    digest.update(piece)
                    size += len(piece)
                    yield piece
        except (*_DAMAGE, KeyError) as error:
            raise _damaged(self.path, f"{name}: {reason_of(error)}") from error
        if (size, digest.hexdigest()) != (member.bytes, member.sha256):
            raise _damaged(self.path, f"{name} differs from its digest")


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open a backup and read its manifest."""
    if not path.is_file():
        raise BackupError(f"There is no file {path}.")
    with contextlib.ExitStack() as stack:
        try:
            archive = stack.enter_context(zipfile.ZipFile(path))
            if archive.getinfo(MANIFEST).file_size > _MAX_MANIFEST_BYTES:
                raise BackupError(f"{path} is not a backup of memoriter: its manifest is too large.")
            text = archive.read(MANIFEST)
            data = json.loads(text)
        except KeyError as error:
            raise BackupError(f"{path} is not a backup of memoriter.") from error
        except _DAMAGE as error:
            raise BackupError(
                f"{path} is not a backup of memoriter, or it is damaged: {reason_of(error)}."
            ) from error
        yield Archive(path, archive, _manifest(path, data), hashlib.sha256(text).hexdigest())


def _manifest(path: Path, data: Any) -> Manifest:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise BackupError(f"{path} is not a backup of memoriter.")
    if data.get("version") != VERSION:
        raise BackupError(f"{path} was written by a newer release of memoriter. Update memoriter.")
    data = {name: value for name, value in data.items() if name not in ("format", "version")}
    try:
        manifest = TypeAdapter(Manifest).validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part)[:80] for part in first["loc"])
        raise _damaged(path, f"{place!r} in its manifest is not valid ({first['type']})") from error
    for name in manifest.files:
        _check_name(path, name)
    return manifest


def _check_name(path: Path, name: str) -> None:
    """Refuse a name that would lead out of the folders of a backup, and hidden names of notes."""
    parts = name.split("/")
    in_folder = parts[0] in FOLDERS and len(parts) > (2 if parts[0] == "agents" else 1)
    is_plain = all(
        part not in ("", ".", "..") and not _UNSAFE.search(part) and len(part.encode()) <= 255
        for part in parts
    )
    is_hidden = (
        parts[0] == "notes"
        and name != f"notes/{WORKSPACE_FILE}"
        and any(part.startswith(".") for part in parts)
    )
    if not is_plain or is_hidden or not (in_folder or name == CONFIG):
        raise _damaged(path, f"it contains the unsafe name {name[:200]!r}")


def _damaged(path: Path, reason: str) -> BackupError:
    return BackupError(f"{path} is damaged: {reason}. Use another backup.")
