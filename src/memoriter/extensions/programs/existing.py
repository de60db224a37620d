"""Notes that coding agents already keep on this machine. `init` offers them as collections.

Agents write most of these files, and anyone who sends a pull request may change some of them. So their text has the
trust `agent`: it is found and labelled, and it never counts as the owner's words.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.cli import render
from memoriter.files.scan import NOTE_PATTERNS, Walk, tree_of

if TYPE_CHECKING:
    from memoriter.cli.context import GlobalOptions
    from memoriter.config import Settings


@dataclass(frozen=True, slots=True)
class ExistingNotes:
    """A folder or file in which an agent keeps notes."""

    #: The name of the collection.
    name: str
    #: What the owner calls it.
    title: str
    path: Path
    notes: int
    pattern: str | None = None


def find_notes(settings: Settings) -> list[ExistingNotes]:
    """Return the folders and files with notes of agents that are not collections yet."""
    known = {os.path.realpath(folder.path) for folder in settings.collections.values()}
    found = []
    for name, title, path, pattern in _places(settings.workspace):
        tree = tree_of(settings.workspace, path, [pattern] if pattern else NOTE_PATTERNS)
        notes = len(Walk(tree).files) if tree else 0
        real = os.path.realpath(path)  # AGENTS.md is often a link to CLAUDE.md
        if notes and name not in settings.collections and real not in known:
            known.add(real)
            found.append(ExistingNotes(name, title, path, notes, pattern))
    return found


def _places(workspace: Path) -> Iterator[tuple[str, str, Path, str | None]]:
    """Yield where agents keep notes: a name, a title, a folder or file, and a pattern of the files in a folder."""
    root = workspace.resolve()
    claude, codex = _home("CLAUDE_CONFIG_DIR", ".claude"), _home("CODEX_HOME", ".codex")
    own = re.sub(r"[^a-z0-9_-]+", "-", root.name.lower())[:40].strip("-") or "project"
    # Claude Code names the folder of a project after the path of its repository.
    project = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
    folder = claude / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(project)) / "memory"
    yield f"claude-{own}", "Claude Code's memory of this project", folder, None
    yield "claude-all", "Claude Code's CLAUDE.md for all projects", claude / "CLAUDE.md", None
    yield "codex-memories", "Codex's memories", codex / "memories", None
    yield "codex-all", "Codex's AGENTS.md for all projects", codex / "AGENTS.md", None
    yield f"cursor-{own}", "Cursor's rules", root / ".cursor" / "rules", "**/*.mdc"
    for name in ("CLAUDE.md", "AGENTS.md", "GEMINI.md"):
        yield f"{name[:-3].lower()}-md-{own}", name, root / name, None


def _home(variable: str, name: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / name).expanduser().absolute()


def add_notes(options: GlobalOptions, found: list[ExistingNotes]) -> None:
    """Add the folders as collections, whose text is the agents'."""
    from memoriter.extensions.settings.commands import change_names, collection_value

    values = {one.name: collection_value(one.path, one.pattern, "agent") for one in found}
    change_names(options, "collections", lambda known: {**known, **values})


def describe(found: Iterable[ExistingNotes]) -> str:
    """Return the folders in words, such as ``Codex's memories (3 notes)``."""
    return ", ".join(f"{one.title} ({render.count(one.notes, 'note')})" for one in found)
