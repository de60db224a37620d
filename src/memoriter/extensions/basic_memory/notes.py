"""The notes of basic-memory: Markdown files with observations and relations."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.extensions.importing import Source, report_of
from memoriter.extensions.importing.copying import copy_file, plan_copy
from memoriter.hosts import ImportStep
from memoriter.records import Imported

if TYPE_CHECKING:
    from memoriter.hosts import ImportReport
    from memoriter.memory import Memory

#: Maximum number of notes.
MAX_NOTES = 50_000
NOTES_FOLDER = ("imports", "basic-memory")
_PERMALINK = re.compile(r"\A---\n(?:(?!---\n).*\n){0,100}?permalink:\s*\S", re.IGNORECASE)
_OBSERVATION = re.compile(r"^\s*[-*] \[(?![ xX-]\])[^\[\]\n]+\] \S", re.MULTILINE)
_RELATION = re.compile(r"^\s*[-*] (?:[^\[\]\n]+ )?\[\[[^\[\]\n]+\]\]", re.MULTILINE)


class BasicMemoryImporter:
    """Copies the notes. Their observations and relations are lines of Markdown, which a search finds as they are."""

    program = "basic-memory"

    def recognises(self, source: Source) -> bool:
        """Return whether a folder has a note with a permalink, which basic-memory gives to every note."""
        return source.is_folder and any(_PERMALINK.match(text) for text in _notes(source.place).values())

    def import_(self, memory: Memory, source: Source, *, dry_run: bool) -> ImportReport:
        """Copy the notes and count what they contain."""
        workspace, found, steps = memory.settings.workspace, Counter[str](), list[ImportStep]()
        folder = Path(memory.settings.files.folder, *NOTES_FOLDER).parts
        for path, text in _notes(source.place).items():
            step = plan_copy("note", path, workspace, *folder, *path.relative_to(source.place).parts)
            steps.append(step if dry_run else copy_file(step, workspace))
            found["observations"] += len(_OBSERVATION.findall(text))
            found["relations"] += len(_RELATION.findall(text))
        counts = ", ".join(f"{number} {name}" for name, number in found.items())
        remarks = (f"The notes contain {counts}.",)
        return report_of(memory, self.program, source, steps, Imported(0, 0), remarks, dry_run=dry_run)


BASIC_MEMORY = BasicMemoryImporter()


def _notes(folder: Path) -> dict[Path, str]:
    files = [path for path in sorted(folder.rglob("*.md")) if path.is_file() and not path.is_symlink()]
    return {path: path.read_text(encoding="utf-8", errors="replace") for path in files[:MAX_NOTES]}
