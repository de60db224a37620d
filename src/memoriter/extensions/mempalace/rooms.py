"""The export of MemPalace: a file for each room, with the drawers as sections."""

from __future__ import annotations

from memoriter.extensions.importing import Source
from memoriter.extensions.importing.writing import Found, ProgramImporter

TITLE = "# Palace Export"


def _recognises(source: Source) -> bool:
    """Return whether the index of a folder has the title of an export."""
    return source.notes.get(source.place / "index.md", "").startswith(TITLE)


def _read(source: Source) -> Found:
    """Return the rooms. A drawer quotes what was said, by whom the export does not tell."""
    rooms = {file: text for file, text in source.notes.items() if file.parent != source.place}
    remark = f"The rooms contain {sum(text.count('| Filed | ') for text in rooms.values())} drawers."
    return Found(notes=rooms, remarks=(remark,))


MEMPALACE = ProgramImporter("mempalace", _recognises, _read)
