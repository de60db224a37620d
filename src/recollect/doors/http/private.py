"""Files for the owner alone: folders 0700, files 0600, whatever the umask says; written whole or not at all."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from recollect import durable, logs
from recollect.errors import StoreBroken

log = logs.get("http.private")


def folder(path: Path) -> Path:
    """The folder, made if it is missing, and those above it that are: for the owner alone."""
    for missing in reversed([part for part in (path, *path.parents) if not part.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    if path.stat().st_mode & 0o077:
        path.chmod(0o700)
    return path


def check(path: Path) -> None:
    """Raise where somebody else may write the file; what they may only read is closed to them from now on."""
    stat = path.stat()
    if sys.platform == "win32" or not stat.st_mode & 0o077:
        return
    if stat.st_mode & 0o022:
        raise StoreBroken(f"others may write {path}: look at what stands in it, then `chmod 600` it.")
    path.chmod(0o600)
    log.warning("others could read %s; it is closed to them now", path)


def write(path: Path, data: object) -> None:
    """Put data as JSON in the file's place: a reader sees the old or the new one, and what was revoked stays so."""
    durable.write(path, json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8", "surrogateescape"))
