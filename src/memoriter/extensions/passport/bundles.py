"""Import of Open Knowledge Format bundles, and of our own exports as Markdown.

What memoriter exported becomes what it was. A concept of another program becomes a note, because it is a document.
"""

from __future__ import annotations

from pathlib import Path

from memoriter.extensions.importing import Source, report_of
from memoriter.extensions.importing.writing import copy_notes
from memoriter.extensions.passport.formats import OURS, concept, lines_of_markdown
from memoriter.hosts import ImportReport
from memoriter.memory import Memory
from memoriter.records import Imported

#: Files of a bundle that are not concepts.
RESERVED = ("index.md", "log.md")


class OkfImporter:
    """Imports bundles and pages."""

    program = "okf"

    def recognises(self, source: Source) -> bool:
        """Return whether each Markdown file of a folder is a concept, or a file is a page with our comments."""
        if source.is_folder:
            found = [text for file, text in source.notes.items() if file.name not in RESERVED]
            return bool(found) and all(map(concept, found))
        return any(lines_of_markdown(text) for text in source.texts)

    def import_(self, memory: Memory, source: Source, *, dry_run: bool) -> ImportReport:
        """Import entries of ours, and copy other concepts as notes."""
        lines, others = list[str](), list[Path]()
        for file, text in source.notes.items():
            found = concept(text)
            if found and isinstance(line := found[0].get(OURS), str):
                lines.append(line)
            elif found:
                others.append(file)
        steps = copy_notes(memory, self.program, source, others, written_by_model=False, dry_run=dry_run)
        if not source.is_folder:
            lines = [line for text in source.texts for line in lines_of_markdown(text)]
        entries = memory.entries.import_("\n".join(lines), dry_run=dry_run) if lines else Imported(0, 0)
        return report_of(memory, self.program, source, steps, entries, dry_run=dry_run)


OKF = OkfImporter()
