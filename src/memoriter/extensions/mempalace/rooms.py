"""The export of MemPalace: a file for each room, with the drawers as sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memoriter.extensions.importing import Source
from memoriter.extensions.importing.writing import copy_notes, import_records

if TYPE_CHECKING:
    from memoriter.hosts import ImportReport
    from memoriter.memory import Memory

TITLE = "# Palace Export"


class MemPalaceImporter:
    """Copies the rooms. A drawer quotes what was said, by whom the export does not tell."""

    program = "mempalace"

    def recognises(self, source: Source) -> bool:
        """Return whether the index of a folder has the title of an export."""
        return source.notes.get(source.place / "index.md", "").startswith(TITLE)

    def import_(self, memory: Memory, source: Source, *, dry_run: bool) -> ImportReport:
        """Copy the rooms and count the drawers."""
        rooms = {file: text for file, text in source.notes.items() if file.parent != source.place}
        steps = copy_notes(memory, self.program, source, rooms, written_by_model=True, dry_run=dry_run)
        remark = f"The rooms contain {sum(text.count('| Filed | ') for text in rooms.values())} drawers."
        return import_records(memory, self.program, source, (), steps, (remark,), dry_run=dry_run)


MEMPALACE = MemPalaceImporter()
