"""Settings files of a host, changed and changed back: whole, never over somebody else's edit, and never without a copy.

For each file a record is kept in our home: its text before, what we made of it, and what our part is called there.
While the file is still what we made, it is put back to the byte; once somebody has changed it, only what is ours is
taken out.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from memoriter.errors import ConfigError, EditConflict
from memoriter.files.durable import make_folder, write
from memoriter.integrations.claude_code import settings_file

ATTEMPTS = 5

Add = Callable[[str], str]
"""What the text is with our part in it."""
Remove = Callable[[str, str | None], str]
"""What the text is without our part, given the text as it was before us; None when nobody knows."""


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to one file."""

    path: Path
    before: str | None  #: None: there is no such file
    after: str | None  #: None: the file goes

    @property
    def is_any(self) -> bool:
        """Whether anything changes at all."""
        return self.before != self.after

    def diff(self) -> str:
        """The change, as people read changes."""
        old, new = (_lines(text) for text in (self.before, self.after))
        name = str(self.path)
        return "".join(difflib.unified_diff(old, new, name, name, n=2))


class Installed:
    """The records of what we changed."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "installed"

    def add(
        self, path: Path, add: Add, remove: Remove, *, empty: str, dry_run: bool, named: str = ""
    ) -> Change:
        """Put our part into a file, in place of an older one of ours; ``named``: what it is called there."""
        path = Path(os.path.realpath(path))

        def change(text: str | None) -> str | None:
            plain = self._without(path, text, remove)
            return add(empty if plain is None or not plain.strip() else plain)

        return self._change(path, change, remove, dry_run=dry_run, named=named)

    def remove(self, path: Path, remove: Remove, *, dry_run: bool) -> Change:
        """Take our part out of a file."""
        path = Path(os.path.realpath(path))
        done = self._change(path, lambda text: self._without(path, text, remove), remove, dry_run=dry_run)
        if not dry_run:
            for file in (self._record(path), self._copy(path)):
                file.unlink(missing_ok=True)
        return done

    def named(self, path: Path) -> str:
        """What our part of a file is called; nothing when it has no name, or nobody knows."""
        known = self._known(Path(os.path.realpath(path)))
        return "" if known is None else known.named

    def copy_of(self, path: Path) -> Path | None:
        """The file as it was before us, where there was one."""
        copy = self._copy(Path(os.path.realpath(path)))
        return copy if copy.exists() else None

    # ---- one file ---------------------------------------------------------------------------------------------

    def _change(
        self,
        path: Path,
        change: Callable[[str | None], str | None],
        remove: Remove,
        *,
        dry_run: bool,
        named: str = "",
    ) -> Change:
        for _ in range(ATTEMPTS):
            before = _read(path)
            try:
                done = Change(path, before, change(before))
            except ConfigError as error:
                raise ConfigError(f"{path}: {error}; it is left as it is.") from error
            if dry_run:
                return done
            if done.after is not None and (done.is_any or self._known(path) is None):
                self._note(path, self._without(path, before, remove), done.after, named)
            if not done.is_any or _put(done):
                return done
        raise EditConflict(f"{path} is being changed by somebody else all the time; try again.")

    def _without(self, path: Path, text: str | None, remove: Remove) -> str | None:
        """The file's text without us, to the byte where nobody else has changed it since."""
        if text is None:
            return None
        known = self._known(path)
        if known is not None and known.after == _digest(text):
            return known.before
        plain = remove(text, None if known is None else known.before or "{}")
        if known is not None and known.before is None and not _says_anything(plain):
            return None  # we made it, and nobody else has put anything into it
        return plain

    # ---- records ----------------------------------------------------------------------------------------------

    def _note(self, path: Path, before: str | None, after: str, named: str) -> None:
        make_folder(self._folder)
        if before is None:
            self._copy(path).unlink(missing_ok=True)
        else:
            write(self._copy(path), before.encode())
        record = {
            "path": str(path),
            "existed": before is not None,
            "after": _digest(after),
            "named": named,
        }
        write(self._record(path), json.dumps(record, indent=2).encode())

    def _known(self, path: Path) -> _Known | None:
        try:
            record = json.loads(self._record(path).read_bytes())
            before = self._copy(path).read_bytes().decode() if record["existed"] else None
            return _Known(before, str(record["after"]), str(record.get("named", "")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def _record(self, path: Path) -> Path:
        return self._folder / f"{_digest(str(path))[:16]}.json"

    def _copy(self, path: Path) -> Path:
        return self._folder / f"{_digest(str(path))[:16]}-{path.name}"


@dataclass(frozen=True, slots=True)
class _Known:
    before: str | None
    after: str  #: digest
    named: str  #: what our part is called there


def _says_anything(text: str) -> bool:
    try:
        return bool(json.loads(text) != {})
    except ValueError:
        return True


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _lines(text: str | None) -> list[str]:
    """Lines that end, so that a diff of a file without a last line end can be read."""
    return [line if line.endswith("\n") else f"{line}\n" for line in (text or "").splitlines(keepends=True)]


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (byte {error.start}); it is left as it is.") from error


def _put(change: Change) -> bool:
    """Put the new text in place, unless the file is no longer what the change was made from."""
    mode = 0o600
    with contextlib.suppress(FileNotFoundError):
        mode = change.path.stat().st_mode & 0o7777
    if change.after is None:
        if _read(change.path) != change.before:
            return False
        change.path.unlink()
        return True
    change.path.parent.mkdir(parents=True, exist_ok=True)
    return write(
        change.path, change.after.encode(), mode=mode, unless=lambda: _read(change.path) != change.before
    )


Scope = Literal["user", "project"]


@dataclass(frozen=True, slots=True)
class Files:
    """Where Claude Code keeps its settings and its MCP servers."""

    settings: Path
    servers: Path | None  #: None: the server is not to be touched

    @classmethod
    def of(cls, scope: Scope, settings: Path | None, servers: Path | None, *, with_server: bool) -> Files:
        """The files of one's own, or of the project in the current folder."""
        if scope == "project":
            known = (Path.cwd() / ".claude" / "settings.json", Path.cwd() / ".mcp.json")
        elif folder := os.environ.get("CLAUDE_CONFIG_DIR"):
            known = (Path(folder) / "settings.json", Path(folder) / ".claude.json")
        else:
            known = (Path.home() / ".claude" / "settings.json", Path.home() / ".claude.json")
        place = (servers or known[1]).expanduser() if with_server else None
        return cls((settings or known[0]).expanduser(), place)


@cache
def program() -> tuple[str, ...]:
    """How we are started from anywhere."""
    found = shutil.which("memoriter", path=str(Path(sys.executable).parent)) or shutil.which("memoriter")
    return (found,) if found else (sys.executable, "-m", "memoriter")


def command(places: Mapping[str, str], server: str, moment: str) -> str:
    """The command of one hook, quoted for the shell that Claude Code runs it in."""
    options = [part for name, value in places.items() for part in (f"--{name}", value)]
    named = ["--server", server] if server else []
    words = [*program(), *options, "hook", "claude-code", moment, *named]
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def install(
    home: Path, files: Files, places: Mapping[str, str], server: str, *, dry_run: bool
) -> tuple[Change, ...]:
    """Put our hooks and our server into the files; either may be there already."""
    known = server if files.servers else ""
    groups = settings_file.hooks_of(lambda moment: command(places, known, moment))
    installed = Installed(home)
    changes = [
        installed.add(
            files.settings,
            lambda text: settings_file.with_hooks(text, groups),
            settings_file.without_hooks,
            empty=settings_file.EMPTY,
            dry_run=True,
        )
    ]
    started = [*program(), *_options(places), "mcp", "--slot", "memory-full"]
    if files.servers is not None:
        changes.append(_server(installed, files.servers, server, started, dry_run=dry_run))
    if not dry_run:  # the second file could be changed, so the first may be too
        changes[0] = installed.add(
            files.settings,
            lambda text: settings_file.with_hooks(text, groups),
            settings_file.without_hooks,
            empty=settings_file.EMPTY,
            dry_run=False,
        )
    return tuple(changes)


def _server(installed: Installed, path: Path, name: str, started: Sequence[str], *, dry_run: bool) -> Change:
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise ConfigError(f"{name!r} cannot name an MCP server: letters, digits, '-' and '_' can.")
    return installed.add(
        path,
        lambda text: settings_file.with_server(text, name, started),
        _without_server(installed.named(path) or name),
        empty=settings_file.EMPTY,
        dry_run=dry_run,
        named=name,
    )


def _without_server(name: str) -> Remove:
    # One that nobody knows to be our doing is somebody's own, and stays.
    return lambda text, before: text if before is None else settings_file.without_server(text, name, before)


def uninstall(home: Path, files: Files, server: str, *, dry_run: bool) -> tuple[Change, ...]:
    """Take out of the files what `install` put there; ``server`` is its name where the record has none."""
    installed = Installed(home)
    changes = [installed.remove(files.settings, settings_file.without_hooks, dry_run=dry_run)]
    if files.servers is not None:
        without = _without_server(installed.named(files.servers) or server)
        changes.append(installed.remove(files.servers, without, dry_run=dry_run))
    return tuple(changes)


def _options(places: Mapping[str, str]) -> list[str]:
    return [part for name, value in places.items() for part in (f"--{name}", value)]
