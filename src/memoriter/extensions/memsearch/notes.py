"""The folder `.memsearch` of a project: a file for each day, `USER.md` and `PROJECT.md`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memoriter.extensions.importing import Source
from memoriter.extensions.importing.writing import copy_notes, import_records

if TYPE_CHECKING:
    from memoriter.hosts import ImportReport
    from memoriter.memory import Memory

FOLDER = ".memsearch"
_DAY = re.compile(r"\d{4}-\d\d-\d\d\.md")
_SESSION = re.compile(r"^## Session \d\d:\d\d|^<!-- session:", re.MULTILINE)


class MemsearchImporter:
    """Copies the notes. A language model wrote them."""

    program = "memsearch"

    def recognises(self, source: Source) -> bool:
        """Return whether a folder has days with sessions, or is called as memsearch's."""
        days = [text for file, text in source.notes.items() if _DAY.fullmatch(file.name)]
        return bool(days) and (source.place.name == FOLDER or any(map(_SESSION.search, days)))

    def import_(self, memory: Memory, source: Source, *, dry_run: bool) -> ImportReport:
        """Copy the notes, without candidates for skills."""
        notes = [file for file in source.notes if "skill-candidates" not in file.parts]
        steps = copy_notes(memory, self.program, source, notes, written_by_model=True, dry_run=dry_run)
        return import_records(memory, self.program, source, (), steps, dry_run=dry_run)


MEMSEARCH = MemsearchImporter()
