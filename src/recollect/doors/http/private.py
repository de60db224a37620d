"""Files for the owner alone: folders 0700, files 0600, whatever the umask says; written whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from pathlib import Path


def folder(path: Path) -> Path:
    """The folder, made if it is missing, and those above it that are: for the owner alone."""
    for missing in reversed([part for part in (path, *path.parents) if not part.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    if path.stat().st_mode & 0o077:
        path.chmod(0o700)
    return path


def write(path: Path, data: object) -> None:
    """Write data as JSON beside the file, then put it in its place: a reader sees the old or the new one."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            json.dump(data, opened, ensure_ascii=False, indent=1)
            opened.flush()
            os.fsync(handle)
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
