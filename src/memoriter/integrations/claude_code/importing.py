"""Transcripts of Claude Code, which deletes them after a month: copied into the agent's own folder of sessions."""

from __future__ import annotations

import os
from pathlib import Path

from memoriter.errors import NotFound
from memoriter.integrations.copying import copied, step_of
from memoriter.records import Imported, ImportReport

HOME = Path("~/.claude")
MOST = 50_000  #: transcripts


def take_in(place: Path | None, sessions: Path, *, agent: str, dry_run: bool = False) -> ImportReport:
    """Copy the transcripts that are new or have grown; ``place`` is Claude Code's folder, or that of its projects."""
    home = (place or Path(os.environ.get("CLAUDE_CONFIG_DIR") or HOME)).expanduser().absolute()
    projects = home / "projects" if (home / "projects").is_dir() else home
    if not projects.is_dir():
        raise NotFound(
            f"{home} is not a folder: Claude Code keeps its files in {HOME}, unless told otherwise."
        )
    found = sorted(path for path in projects.glob("*/*.jsonl") if _is_wanted(path))[:MOST]
    steps = [step_of("session", one, sessions, "claude-code", one.parent.name, one.name) for one in found]
    done = tuple(step if dry_run else copied(step, sessions) for step in steps)
    return ImportReport("Claude Code", home, agent, done, Imported(0, 0), dry_run=dry_run)


def _is_wanted(path: Path) -> bool:
    """A plain file of the project's own folder, not through a link; what sub-agents said to their agent is left out."""
    linked = path.is_symlink() or path.parent.is_symlink()
    return path.is_file() and not linked and not path.name.startswith((".", "agent-"))
