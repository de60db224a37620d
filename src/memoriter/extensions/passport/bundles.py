"""Import of Open Knowledge Format bundles, and of our own exports as Markdown.

What memoriter exported becomes what it was. A concept of another program becomes a note, because it is a document.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.extensions.importing import Source, report_of
from memoriter.extensions.importing.copying import copy_file, plan_copy
from memoriter.extensions.passport.formats import OURS, concept, lines_of_markdown
from memoriter.hosts import ImportStep
from memoriter.records import Imported

if TYPE_CHECKING:
    from memoriter.hosts import ImportReport
    from memoriter.memory import Memory

#: Maximum number of concepts.
MAX_FILES = 50_000
NOTES_FOLDER = ("imports", "okf")


class OkfImporter:
    """Imports bundles and pages."""

    program = "okf"

    def recognises(self, source: Source) -> bool:
        """Return whether a folder is a bundle, or a file a page with our comments."""
        if source.is_folder:
            return (source.place / "index.md").is_file() and any(map(concept, _texts(source.place).values()))
        return any(lines_of_markdown(text) for text in source.texts)

    def import_(self, memory: Memory, source: Source, *, dry_run: bool) -> ImportReport:
        """Import entries of ours, and copy other concepts as notes."""
        lines, steps = list[str](), list[ImportStep]()
        if source.is_folder:
            workspace = memory.settings.workspace
            folder = Path(memory.settings.files.folder, *NOTES_FOLDER).parts
            for path, text in _texts(source.place).items():
                found = concept(text)
                if found is None:
                    continue
                if isinstance(line := found[0].get(OURS), str):
                    lines.append(line)
                    continue
                step = plan_copy("note", path, workspace, *folder, *path.relative_to(source.place).parts)
                steps.append(step if dry_run else copy_file(step, workspace))
        else:
            lines = [line for text in source.texts for line in lines_of_markdown(text)]
        entries = memory.entries.import_("\n".join(lines), dry_run=dry_run) if lines else Imported(0, 0)
        return report_of(memory, self.program, source, steps, entries, dry_run=dry_run)


OKF = OkfImporter()


def _texts(folder: Path) -> dict[Path, str]:
    files = [path for path in sorted(folder.rglob("*.md")) if path.is_file() and not path.is_symlink()]
    return {path: path.read_text(encoding="utf-8", errors="replace") for path in files[:MAX_FILES]}
