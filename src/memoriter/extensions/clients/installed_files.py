"""Changes of other programs' settings files, with records that make it possible to undo them.

For each changed file the home folder holds a record: the file's text before, a digest of the text after, and a note
about our part. While the file has not changed since, undoing restores it to the byte. Otherwise only our part is
removed.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memoriter.errors import ConfigError, EditConflict, message_of
from memoriter.files.durable import make_folder, write

MAX_ATTEMPTS = 5
EMPTY = "{}\n"
#: Commands of OpenClaw take 10 seconds, and much longer on a busy machine.
TIMEOUT_S = 300.0

Add = Callable[[str], str]
"""Return a text with our part added."""
Remove = Callable[[str, str | None], str]
"""Return a text with our part removed, given the text before the installation, or None if it is unknown."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change of one file."""

    path: Path
    before: str
    after: str

    @property
    def is_change(self) -> bool:
        """Whether the text differs."""
        return self.before != self.after

    def diff(self) -> str:
        """Return the change as a unified diff."""
        # All lines end with a line break, so that the diff is readable.
        old, new = ([f"{line}\n" for line in text.splitlines()] for text in (self.before, self.after))
        name = str(self.path)
        return "".join(difflib.unified_diff(old, new, name, name, n=2))


# ---- records --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Record:
    before: str
    after_digest: str
    part_name: str
    #: Whether the file was there before the installation.
    existed: bool


class InstalledFiles:
    """Changes settings files and keeps the records of the changes.

    ``owner`` tells the records of hosts apart that share a file.
    """

    def __init__(self, home: Path, owner: str = "") -> None:
        self._folder, self._owner = home / "installed", owner

    def add(self, path: Path, add: Add, remove: Remove, *, dry_run: bool, part_name: str = "") -> FileChange:
        """Add our part to a file, replacing an earlier one; ``part_name`` is its name in the file."""
        path = Path(os.path.realpath(path))

        def change(text: str) -> str:
            return add(self._without_part(path, text, remove))

        return self._change(path, change, remove, dry_run=dry_run, part_name=part_name)

    def remove(self, path: Path, remove: Remove, *, dry_run: bool) -> FileChange:
        """Remove our part from a file, and a file that only consisted of it."""
        path = Path(os.path.realpath(path))
        record = self._read_record(path)
        change = self._change(
            path, lambda text: self._without_part(path, text, remove), remove, dry_run=dry_run
        )
        if not dry_run:
            if record is not None and not record.existed and change.after == record.before:
                path.unlink(missing_ok=True)
            for file in (self._record_path(path), self._backup_path(path)):
                file.unlink(missing_ok=True)
        return change

    def part_name(self, path: Path) -> str:
        """Return the name of our part of a file; empty if it is unknown."""
        record = self._read_record(Path(os.path.realpath(path)))
        return "" if record is None else record.part_name

    def _change(
        self, path: Path, edit: Callable[[str], str], remove: Remove, *, dry_run: bool, part_name: str = ""
    ) -> FileChange:
        for _ in range(MAX_ATTEMPTS):
            before = _read(path)
            try:
                change = FileChange(path, before, edit(before))
            except ConfigError as error:
                raise ConfigError(f"{path}: {error}. The file was not changed.") from error
            if dry_run:
                return change
            known = self._read_record(path)
            if change.is_change or known is None:
                existed = path.exists() if known is None else known.existed
                original = self._without_part(path, before, remove)
                self._write_record(path, original, change.after, part_name, existed)
            if not change.is_change or _replace(change):
                return change
        raise EditConflict(f"Another program keeps changing {path}. Try again.")

    def _without_part(self, path: Path, text: str, remove: Remove) -> str:
        """Return the text without our part, identical to the original if the file has not changed since."""
        record = self._read_record(path)
        if record is not None and record.after_digest == _digest(text):
            return record.before
        return remove(text, None if record is None else record.before or EMPTY)

    def _write_record(self, path: Path, before: str, after: str, part_name: str, existed: bool) -> None:
        make_folder(self._folder)
        write(self._backup_path(path), before.encode())
        record = {"path": str(path), "existed": existed, "after": _digest(after), "named": part_name}
        write(self._record_path(path), json.dumps(record, indent=2).encode())

    def _read_record(self, path: Path) -> _Record | None:
        try:
            record = json.loads(self._record_path(path).read_bytes())
            before = self._backup_path(path).read_bytes().decode()
            named, existed = str(record.get("named", "")), record.get("existed") is not False
            return _Record(before, str(record["after"]), named, existed)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def _record_path(self, path: Path) -> Path:
        return self._folder / f"{_digest(f'{self._owner}{path}')[:16]}.json"

    def _backup_path(self, path: Path) -> Path:
        return self._folder / f"{_digest(f'{self._owner}{path}')[:16]}-{path.name}"


# ---- files ----------------------------------------------------------------------------------------------------


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (byte {error.start}). The file was not changed.") from error


def _replace(change: FileChange) -> bool:
    """Write the new text; return False if the file has changed since it was read."""
    if not change.after and not change.path.exists():
        return True
    make_folder(change.path.parent)
    mode = change.path.stat().st_mode & 0o7777 if change.path.exists() else 0o600
    return write(
        change.path, change.after.encode(), mode=mode, unless=lambda: _read(change.path) != change.before
    )


def plugin_folder(extension: Path, host: str) -> Path:
    """Return the plugin for a host: in the folder of its extension, or in a checkout of the repository."""
    package = extension / "plugin"
    checkout = extension.parents[3] / "plugins" / host
    return next(folder for folder in (package, checkout) if folder.is_dir())


def run_program(command: Sequence[str], environ: Mapping[str, str] | None = None) -> str | None:
    """Run a program of a host. Return the last line that it prints, or what went wrong, if it fails."""
    try:
        done = subprocess.run(  # noqa: S603
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return message_of(error)
    said = (done.stderr.strip() or done.stdout.strip()).decode("utf-8", "replace")
    return None if done.returncode == 0 else (said.splitlines() or ["no message"])[-1]
