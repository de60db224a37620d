"""Setting up Claude Code: which files there are, which command they are to start, and what came of it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from recollect.doors.hooks import entries
from recollect.doors.hooks.installing import Change, Installed, Remove
from recollect.errors import ConfigError

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
    found = shutil.which("recollect", path=str(Path(sys.executable).parent)) or shutil.which("recollect")
    return (found,) if found else (sys.executable, "-m", "recollect")


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
    groups = entries.hooks_of(lambda moment: command(places, known, moment))
    installed = Installed(home)
    changes = [
        installed.add(
            files.settings,
            lambda text: entries.with_hooks(text, groups),
            entries.without_hooks,
            empty=entries.EMPTY,
            dry_run=True,
        )
    ]
    started = [*program(), *_options(places), "mcp", "--slot", "memory-full"]
    if files.servers is not None:
        changes.append(_server(installed, files.servers, server, started, dry_run=dry_run))
    if not dry_run:  # the second file could be changed, so the first may be too
        changes[0] = installed.add(
            files.settings,
            lambda text: entries.with_hooks(text, groups),
            entries.without_hooks,
            empty=entries.EMPTY,
            dry_run=False,
        )
    return tuple(changes)


def _server(installed: Installed, path: Path, name: str, started: Sequence[str], *, dry_run: bool) -> Change:
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise ConfigError(f"{name!r} cannot name an MCP server: letters, digits, '-' and '_' can.")
    return installed.add(
        path,
        lambda text: entries.with_server(text, name, started),
        _without_server(installed.named(path) or name),
        empty=entries.EMPTY,
        dry_run=dry_run,
        named=name,
    )


def _without_server(name: str) -> Remove:
    # One that nobody knows to be our doing is somebody's own, and stays.
    return lambda text, before: text if before is None else entries.without_server(text, name, before)


def uninstall(home: Path, files: Files, server: str, *, dry_run: bool) -> tuple[Change, ...]:
    """Take out of the files what `install` put there; ``server`` is its name where the record has none."""
    installed = Installed(home)
    changes = [installed.remove(files.settings, entries.without_hooks, dry_run=dry_run)]
    if files.servers is not None:
        without = _without_server(installed.named(files.servers) or server)
        changes.append(installed.remove(files.servers, without, dry_run=dry_run))
    return tuple(changes)


def _options(places: Mapping[str, str]) -> list[str]:
    return [part for name, value in places.items() for part in (f"--{name}", value)]
