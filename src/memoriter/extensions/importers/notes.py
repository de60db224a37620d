"""Programs whose memory is a folder of Markdown files: basic-memory, memsearch, and the export of MemPalace."""

from __future__ import annotations

import re

from memoriter.extensions.importing import Source
from memoriter.extensions.importing.writing import Found, ProgramImporter

_PERMALINK = re.compile(r"\A---\n(?:(?!---\n).*\n){0,100}?permalink:\s*\S", re.IGNORECASE)
_OBSERVATION = re.compile(r"^\s*[-*] \[(?![ xX-]\])[^\[\]\n]+\] \S", re.MULTILINE)
_RELATION = re.compile(r"^\s*[-*] (?:[^\[\]\n]+ )?\[\[[^\[\]\n]+\]\]", re.MULTILINE)
_DAY = re.compile(r"\d{4}-\d\d-\d\d\.md")
_SESSION = re.compile(r"^## Session \d\d:\d\d|^<!-- session:", re.MULTILINE)


def _is_basic_memory(source: Source) -> bool:
    """Return whether a folder has a note with a permalink, which basic-memory gives to every note."""
    return any(_PERMALINK.match(text) for text in source.notes.values())


def _read_basic_memory(source: Source) -> Found:
    """Return the notes. Their observations and relations are lines of Markdown, which a search finds as they are."""
    observations, relations = (
        sum(len(pattern.findall(text)) for text in source.notes.values())
        for pattern in (_OBSERVATION, _RELATION)
    )
    remark = f"The notes contain {observations} observations, {relations} relations."
    return Found(notes=source.notes, by_model=False, remarks=(remark,))


def _is_memsearch(source: Source) -> bool:
    """Return whether a folder has days with sessions, or is called as memsearch's."""
    days = [text for file, text in source.notes.items() if _DAY.fullmatch(file.name)]
    return bool(days) and (source.place.name == ".memsearch" or any(map(_SESSION.search, days)))


def _read_memsearch(source: Source) -> Found:
    """Return the days, `USER.md` and `PROJECT.md`, without candidates for skills."""
    return Found(notes=[file for file in source.notes if "skill-candidates" not in file.parts])


def _is_mempalace(source: Source) -> bool:
    """Return whether the index of a folder has the title of an export."""
    return source.notes.get(source.place / "index.md", "").startswith("# Palace Export")


def _read_mempalace(source: Source) -> Found:
    """Return the rooms. A drawer quotes what was said, by whom the export does not tell."""
    rooms = {file: text for file, text in source.notes.items() if file.parent != source.place}
    remark = f"The rooms contain {sum(text.count('| Filed | ') for text in rooms.values())} drawers."
    return Found(notes=rooms, remarks=(remark,))


BASIC_MEMORY = ProgramImporter("basic-memory", _is_basic_memory, _read_basic_memory)
MEMSEARCH = ProgramImporter("memsearch", _is_memsearch, _read_memsearch)
MEMPALACE = ProgramImporter("mempalace", _is_mempalace, _read_mempalace)
