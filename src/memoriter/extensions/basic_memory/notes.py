"""The notes of basic-memory: Markdown files with observations and relations."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from memoriter.extensions.importing import Source
from memoriter.extensions.importing.writing import copy_notes, import_records

if TYPE_CHECKING:
    from memoriter.hosts import ImportReport
    from memoriter.memory import Memory

_PERMALINK = re.compile(r"\A---\n(?:(?!---\n).*\n){0,100}?permalink:\s*\S", re.IGNORECASE)
_OBSERVATION = re.compile(r"^\s*[-*] \[(?![ xX-]\])[^\[\]\n]+\] \S", re.MULTILINE)
_RELATION = re.compile(r"^\s*[-*] (?:[^\[\]\n]+ )?\[\[[^\[\]\n]+\]\]", re.MULTILINE)


class BasicMemoryImporter:
    """Copies the notes. Their observations and relations are lines of Markdown, which a search finds as they are."""

    program = "basic-memory"

    def recognises(self, source: Source) -> bool:
        """Return whether a folder has a note with a permalink, which basic-memory gives to every note."""
        return any(_PERMALINK.match(text) for text in source.notes.values())

    def import_(self, memory: Memory, source: Source, *, dry_run: bool) -> ImportReport:
        """Copy the notes and count what they contain."""
        steps = copy_notes(
            memory, self.program, source, source.notes, written_by_model=False, dry_run=dry_run
        )
        found = Counter[str]()
        for text in source.notes.values():
            found["observations"] += len(_OBSERVATION.findall(text))
            found["relations"] += len(_RELATION.findall(text))
        counts = ", ".join(f"{number} {name}" for name, number in found.items())
        remarks = (f"The notes contain {counts}.",)
        return import_records(memory, self.program, source, (), steps, remarks, dry_run=dry_run)


BASIC_MEMORY = BasicMemoryImporter()
