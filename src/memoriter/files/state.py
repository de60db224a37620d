"""Small JSON files that outlive a process: the progress of sessions, the tokens of a day, and the like.

A file that is missing or unreadable is an empty state, so every user works without it and loses no text.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from memoriter.errors import LockTimeout
from memoriter.files import durable, platform, shared
from memoriter.files.locks import file_lock, state_errors, state_lock

T = TypeVar("T")


def read_state(file: Path) -> dict[str, Any]:
    """Return the values of a state file; none if it is missing or unreadable."""
    shared.refresh(file.parent)
    try:
        values = json.loads(platform.sharing(file.read_bytes)) if file.is_file() else {}  # a pipe would wait
    except (OSError, ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def write_state(file: Path, values: Mapping[str, Any]) -> None:
    """Replace the values of a state file. They are on disk when this returns. Raises `WriteError`."""
    with state_errors(file.parent):
        durable.write(file, json.dumps(values).encode())


#: The adapter of each dataclass, built once.
_adapter: Callable[..., TypeAdapter[Any]] = cache(TypeAdapter)


def as_record(kind: type[T], values: object) -> T | None:
    """Return the values of a file as this dataclass; None if one is missing or has another type."""
    try:
        found: T = _adapter(kind).validate_json(json.dumps(values), strict=True)
    except ValidationError:
        return None
    return found


class SessionStates:
    """One state file for each session in a folder. Beyond ``limit`` sessions, the oldest are removed by `prune`."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self._limit = limit

    def get(self, session: str) -> dict[str, Any]:
        """Return the state of a session."""
        return read_state(self._file(session))

    def put(self, session: str, values: Mapping[str, Any]) -> None:
        """Store the state of a session."""
        write_state(self._file(session), values)

    def has(self, session: str) -> bool:
        """Return whether a session has a state."""
        return self._file(session).exists()

    @contextlib.contextmanager
    def locked(self, session: str, wait_s: float) -> Iterator[None]:
        """Hold the lock of a session against every other process, also while a language model answers."""
        with state_lock(self._file(session).with_suffix(".lock"), wait_s):
            yield

    def newest(self, limit: int) -> Iterator[dict[str, Any]]:
        """Yield the states that were stored last, newest first."""
        return map(read_state, (file for _, file in self._files()[:limit]))

    def prune(self, older_than: float = 0.0) -> None:
        """Remove states that were stored before this time, and the oldest beyond the limit, unless they are locked."""
        for number, (stored_at, file) in enumerate(self._files()):
            if number >= self._limit or stored_at < older_than:
                lock = file.with_suffix(".lock")
                with contextlib.suppress(OSError, LockTimeout), file_lock(lock, 0.0):
                    durable.remove(file)
                    lock.unlink(missing_ok=True)

    def _files(self) -> list[tuple[float, Path]]:
        """Return the files with their times, newest first."""
        shared.refresh(self.folder)
        found = list[tuple[float, str]]()
        with contextlib.suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.name.endswith(".json") and not entry.name.startswith("."):
                    found.append((entry.stat().st_mtime, entry.path))
        return [(stored_at, Path(path)) for stored_at, path in sorted(found, reverse=True)]

    def _file(self, session: str) -> Path:
        name = hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:24]
        return self.folder / f"{name}.json"
