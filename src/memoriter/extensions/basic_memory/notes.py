"""The notes of basic-memory: Markdown files with observations and relations."""

from __future__ import annotations

import re
from collections import Counter

from memoriter.extensions.importing import Source
from memoriter.extensions.importing.writing import Found, ProgramImporter

_PERMALINK = re.compile(r"\A---\n(?:(?!---\n).*\n){0,100}?permalink:\s*\S", re.IGNORECASE)
_OBSERVATION = re.compile(r"^\s*[-*] \[(?![ xX-]\])[^\[\]\n]+\] \S", re.MULTILINE)
_RELATION = re.compile(r"^\s*[-*] (?:[^\[\]\n]+ )?\[\[[^\[\]\n]+\]\]", re.MULTILINE)


def _recognises(source: Source) -> bool:
    """Return whether a folder has a note with a permalink, which basic-memory gives to every note."""
    return any(_PERMALINK.match(text) for text in source.notes.values())


def _read(source: Source) -> Found:
    """Return the notes. Their observations and relations are lines of Markdown, which a search finds as they are."""
    found = Counter[str]()
    for text in source.notes.values():
        found["observations"] += len(_OBSERVATION.findall(text))
        found["relations"] += len(_RELATION.findall(text))
    counts = ", ".join(f"{number} {name}" for name, number in found.items())
    return Found(notes=source.notes, by_model=False, remarks=(f"The notes contain {counts}.",))


BASIC_MEMORY = ProgramImporter("basic-memory", _recognises, _read)
