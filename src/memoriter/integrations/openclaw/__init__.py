"""OpenClaw: import of its notes, sessions and entries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memoriter.integrations.copying import ImportReport
    from memoriter.memory import Memory


def import_openclaw(
    memory: Memory, folder: Path | str | None = None, *, dry_run: bool = False
) -> ImportReport:
    """Import the notes, sessions and entries of an OpenClaw agent. Existing data is kept.

    ``folder`` is OpenClaw's home, or one of its workspaces (default: ``OPENCLAW_STATE_DIR`` or ``~/.openclaw``). A
    repeated import copies only what is new.
    """
    from memoriter.integrations.openclaw.importing import OpenClaw

    openclaw = OpenClaw.find(Path(folder) if folder else None, memory.settings.agent)
    if not dry_run:
        memory.check_workspace()
    report = openclaw.import_into(memory, dry_run=dry_run)
    if not dry_run:
        memory.mark_changed()
    return report
