"""Import of the transcripts that Claude Code keeps."""

from __future__ import annotations

import os
from pathlib import Path

from memoriter.errors import NotFound
from memoriter.extensions.importing import NamedImporter, Source, report_of
from memoriter.extensions.importing.copying import copy_file, plan_copy
from memoriter.hosts import ImportReport
from memoriter.memory import Memory
from memoriter.records import Imported

HOME = Path("~/.claude")
MAX_TRANSCRIPTS = 50_000


def import_claude_code(
    memory: Memory, folder: Path | str | None = None, *, dry_run: bool = False
) -> ImportReport:
    """Copy Claude Code's transcripts into the memory before Claude Code deletes them. Existing files are kept.

    ``folder`` is Claude Code's folder or its folder of projects (default: ``CLAUDE_CONFIG_DIR`` or ``~/.claude``).
    Transcripts that were imported before are updated if they have grown.
    """
    home = Path(folder or os.environ.get("CLAUDE_CONFIG_DIR") or HOME).expanduser().absolute()
    projects = home / "projects" if (home / "projects").is_dir() else home
    if not projects.is_dir():
        raise NotFound(f"{home} is not a folder. Claude Code keeps its files in {HOME} by default.")
    sessions = memory.settings.agent_folder / "sessions"
    transcripts = sorted(path for path in projects.glob("*/*.jsonl") if _is_transcript(path))
    steps = [
        plan_copy("session", path, sessions, "claude-code", path.parent.name, path.name)
        for path in transcripts[:MAX_TRANSCRIPTS]
    ]
    if not dry_run:
        steps = [copy_file(step, sessions) for step in steps]
        memory.mark_changed()
    return report_of(memory, "Claude Code", Source(home), steps, Imported(0, 0), dry_run=dry_run)


def _is_transcript(path: Path) -> bool:
    """Return whether this is a transcript of a user's session: a regular file, not a link, not of a sub-agent."""
    is_link = path.is_symlink() or path.parent.is_symlink()
    return path.is_file() and not is_link and not path.name.startswith((".", "agent-"))


CLAUDE_CODE = NamedImporter("Claude Code", import_claude_code)
