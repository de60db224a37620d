"""Notes that the owner deleted. Their text is kept for a while, so that they can be restored.

A deleted note is a file in the folder `deleted` of the agent, below the time of its deletion in milliseconds. Erasing
an entry also deletes the kept notes that say it (`engines/builtin.py`).
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.errors import BadArgument, NotFound
from memoriter.files import durable
from memoriter.notes.editing import NoteText

if TYPE_CHECKING:
    from memoriter.memory import Memory

DAY_S = 86_400.0
MAX_LISTED = 200


@dataclass(frozen=True, slots=True)
class DeletedNote:
    """A deleted note, without its text."""

    id: str
    path: str
    at: float


def remove_note(memory: Memory, path: str, *, version: str) -> DeletedNote:
    """Remove a note and keep its text. Raises `EditConflict` if the note has another version now."""
    note = memory.notes.text(path)
    at = time.time()
    kept = DeletedNote(str(round(at * 1000)), note.path, at)
    file = _folder(memory) / kept.id / kept.path
    durable.write(file, note.text.encode("utf-8", "surrogateescape"))
    try:
        memory.notes.remove(path, version=version)
    except BaseException:
        _drop(memory, file)
        raise
    clean_up(memory)
    return kept


def list_deleted(memory: Memory) -> list[DeletedNote]:
    """Return the notes that can be restored, newest first."""
    folder, since = _folder(memory), _oldest(memory)
    found = [
        DeletedNote(stamp.name, file.relative_to(stamp).as_posix(), int(stamp.name) / 1000)
        for stamp in folder.glob("[0-9]*")
        if stamp.name.isdecimal() and int(stamp.name) / 1000 >= since
        for file in stamp.rglob("*")
        if file.is_file() and not file.name.startswith(".")
    ]
    return sorted(found, key=lambda note: -note.at)[:MAX_LISTED]


def restore_note(memory: Memory, note_id: str) -> NoteText:
    """Write a deleted note to its place again. Raises `EditConflict` if there is a note in this place."""
    if not note_id.isdecimal():
        raise BadArgument("`id` must be the id of a deleted note.", "id")
    note = next((one for one in list_deleted(memory) if one.id == note_id), None)
    if note is None:
        raise NotFound("This note cannot be restored any more.")
    file = _folder(memory) / note.id / note.path
    restored = memory.notes.put(note.path, file.read_bytes().decode("utf-8", "surrogateescape"), version=None)
    _drop(memory, file)
    return restored


def clean_up(memory: Memory) -> None:
    """Delete the notes that were kept long enough."""
    since = _oldest(memory)
    for stamp in _folder(memory).glob("[0-9]*"):
        if stamp.name.isdecimal() and int(stamp.name) / 1000 < since:
            for file in [one for one in stamp.rglob("*") if one.is_file()]:
                _drop(memory, file)


def _folder(memory: Memory) -> Path:
    return memory.settings.agent_folder / "deleted"


def _oldest(memory: Memory) -> float:
    return time.time() - memory.settings.cleanup.retention_days * DAY_S


def _drop(memory: Memory, file: Path) -> None:
    """Delete a kept note, and its folders as far as they are empty."""
    with suppress(OSError):  # another process may have deleted it
        durable.remove(file)
        for folder in file.parents:
            if folder == _folder(memory):
                break
            folder.rmdir()
