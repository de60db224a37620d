"""Checks before a restore. A backup may come from someone else, and its digests prove nothing about its author.

Notes go only to a folder that the owner named. Settings and files that may run a program, send or read text
elsewhere, or trust others, need the owner's consent. Nothing is written before all checks have passed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from memoriter.config.layers import WORKSPACE_FILE, Layer, from_file, is_secret, printable, read
from memoriter.config.loading import check_text
from memoriter.errors import BackupError, ConfigError, PathRefused, SourceError
from memoriter.extensions.backup.archive import CONFIG, Archive, Manifest
from memoriter.files.paths import open_inside

#: Files of an agent that cannot be rebuilt.
TRUTH = ("memory.db", "items.db", "sessions", "queue")
#: Endings of notes. Other files need consent.
NOTE_SUFFIXES = (
    *(".md", ".markdown", ".mdx", ".rmd", ".qmd", ".txt", ".text", ".rst", ".org", ".adoc", ".tex"),
    *(".pdf", ".docx"),
)
#: Last parts of the settings that decide what runs, where text goes, what is read and who is trusted; their endings.
OUTSIDE_NAMES = (
    *("command", "backend", "model_path", "provider", "fallback", "vector_engine"),
    *("host", "allowed_hosts", "servers", "extra_paths", "paths", "collections", "workspaces", "files"),
    *("path", "default", "rules", "local_tools", "owner_names", "approval", "redact"),
)
OUTSIDE_ENDINGS = ("url", "api_key")
#: Values that keep text on this machine and add no trust.
HARMLESS = ("auto", "local", "none", "builtin", "scan", "deny", "agent", "all", True)
#: An archive may expand to this many bytes, and a larger one to this many times its size.
FREE_BYTES, MAX_RATIO = 256 << 20, 100


def notes_folder(manifest: Manifest, home: Path, workspace: Path | None) -> Path:
    """Return the folder for the notes. A folder that neither the caller nor the settings name is refused."""
    if workspace is not None:
        return workspace.expanduser().absolute()
    if manifest.workspace_in_home:
        return home / "workspace"
    configured = _own_settings(home).get("workspace")
    if configured and str(configured.value) == manifest.workspace:
        return Path(manifest.workspace)
    raise BackupError(
        f"The notes of this backup were in {printable(manifest.workspace[:400])}. Name the folder for them with "
        "--workspace, this one or another."
    )


def check_size(archive: Archive, home: Path) -> None:
    """Refuse an archive that expands to more than its size explains, or than the disk can hold."""
    total, size = sum(member.bytes for member in archive.manifest.files.values()), archive.path.stat().st_size
    if total > max(FREE_BYTES, MAX_RATIO * size):
        raise BackupError(
            f"{archive.path} has {size >> 10} kB and expands to {total >> 20} MB. No backup does. It was not restored."
        )
    disk = next(folder for folder in (home, *home.parents) if folder.is_dir())
    if total > (free := shutil.disk_usage(disk).free):
        raise BackupError(
            f"The backup needs {total >> 20} MB, and the disk of {home} has {free >> 20} MB left. Free some space."
        )


def check_consent(archive: Archive, home: Path) -> None:
    """Refuse a backup that brings programs, addresses, folders or rules of trust, and name them."""
    if brought := brings(archive, home):
        shown = ", ".join(brought[:10]) + (f" and {len(brought) - 10} more" if len(brought) > 10 else "")
        raise BackupError(
            f"{archive.path} brings what may run a program, send or read text elsewhere, or trust others: {shown}. "
            "If you trust its author, restore it with --yes."
        )


def brings(archive: Archive, home: Path) -> list[str]:
    """Return the settings and files of a backup that need the owner's consent."""
    return [*_foreign_settings(archive, home), *_foreign_files(archive.manifest)]


def _foreign_settings(archive: Archive, home: Path) -> Iterator[str]:
    errors = list[ConfigError]()
    own, new = _own_settings(home), from_file(home / CONFIG, config_text(archive), errors)
    for key, (value, _) in sorted(new.items()):
        name = key.rpartition(".")[2]
        if (not name.endswith(OUTSIDE_ENDINGS) and name not in OUTSIDE_NAMES) or value in HARMLESS:
            continue
        if key not in own or own[key].value != value:
            shown = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
            yield key if is_secret(key) else f"{key} = {printable(shown[:200])}"
    try:
        check_text(home / CONFIG, config_text(archive))
    except ConfigError as error:
        errors.append(error)  # such a file is restored unchanged, also with the places of another machine
    if errors:
        yield f"settings that this installation does not accept ({errors[0]})"


def _foreign_files(manifest: Manifest) -> Iterator[str]:
    for name in manifest.names("notes"):
        if name != f"notes/{WORKSPACE_FILE}" and PurePosixPath(name.lower()).suffix not in NOTE_SUFFIXES:
            yield f"the file {name.removeprefix('notes/')}"


def config_text(archive: Archive) -> str:
    """Return the settings file in a backup, or an empty text."""
    if CONFIG not in archive.manifest.files:
        return ""
    try:
        return b"".join(archive.read(CONFIG)).decode()
    except UnicodeDecodeError as error:
        raise BackupError(f"{archive.path} is damaged: {CONFIG} is not UTF-8. Use another backup.") from error


def _own_settings(home: Path) -> Layer:
    try:
        text = read(home / CONFIG, follow_links=True)
    except ConfigError:
        return {}
    return from_file(home / CONFIG, text, []) if text is not None else {}


def check_places(archive: Archive, home: Path, notes: Path, *, force: bool) -> None:
    """Refuse links in the workspace, and without ``force`` also a memory or notes that would be replaced."""
    agents = (home / "agents" / name for name in archive.manifest.agents)
    found = [home / CONFIG, *(agent / truth for agent in agents for truth in TRUTH)]
    existing = next((path for path in found if _holds_data(path)), None)
    if existing and not force:
        raise BackupError(
            f"{home} already contains a memory ({existing.relative_to(home)}). Restore into another --home, or "
            "replace it with --force, which keeps the old files."
        )
    for name in archive.manifest.names("notes"):
        digest = digest_of_note(notes, name.removeprefix("notes/"))
        if not force and digest not in (None, archive.manifest.files[name].sha256):
            raise BackupError(
                f"{notes / name.removeprefix('notes/')} differs from the note in the backup. Restore into another "
                "--workspace, or replace it with --force, which keeps the old files."
            )


def digest_of_note(root: Path, path: str) -> str | None:
    """Return the digest of a note, or None if it does not exist. A link raises `BackupError`."""
    if not root.is_dir():
        return None
    try:
        with (
            open_inside(os.path.realpath(root), path) as descriptor,
            os.fdopen(os.dup(descriptor), "rb") as file,
        ):
            return hashlib.file_digest(file, "sha256").hexdigest()
    except PathRefused as error:
        raise BackupError(f"{root / path} was not restored. {error}") from error
    except SourceError as error:
        if not (root / path).exists():
            return None
        raise BackupError(f"{root / path} was not restored. {error}") from error


def _holds_data(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()
