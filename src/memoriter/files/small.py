"""State files in one folder: list them by age, and remove what killed writers left behind."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def by_age(folder: Path) -> list[Path]:
    """The files of a folder that hold our JSON, newest first."""
    found = list[tuple[float, str]]()
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".json") and not entry.name.startswith("."):
                found.append((entry.stat().st_mtime, entry.path))
    return [Path(path) for _, path in sorted(found, reverse=True)]


def sweep(folder: Path, older_than: float) -> None:
    """Remove what killed writers left behind before that time."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith(".tmp"):
                with contextlib.suppress(OSError):
                    if entry.stat().st_mtime < older_than:
                        Path(entry.path).unlink()
