"""The folder `.memsearch` of a project: a file for each day, `USER.md` and `PROJECT.md`."""

from __future__ import annotations

import re

from memoriter.extensions.importing import Source
from memoriter.extensions.importing.writing import Found, ProgramImporter

FOLDER = ".memsearch"
_DAY = re.compile(r"\d{4}-\d\d-\d\d\.md")
_SESSION = re.compile(r"^## Session \d\d:\d\d|^<!-- session:", re.MULTILINE)


def _recognises(source: Source) -> bool:
    """Return whether a folder has days with sessions, or is called as memsearch's."""
    days = [text for file, text in source.notes.items() if _DAY.fullmatch(file.name)]
    return bool(days) and (source.place.name == FOLDER or any(map(_SESSION.search, days)))


def _read(source: Source) -> Found:
    """Return the notes, without candidates for skills."""
    return Found(notes=[file for file in source.notes if "skill-candidates" not in file.parts])


MEMSEARCH = ProgramImporter("memsearch", _recognises, _read)
