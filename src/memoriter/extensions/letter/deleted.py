"""Notes and sessions that the owner deleted. Their text is kept for a while, so that they can be restored.

A deleted note is a file in the folder `deleted` of the agent, below the time of its deletion in milliseconds. Erasing
an entry also deletes the kept notes that say it (`engines/note_copies.py`).
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memoriter.build import transcripts_of
from memoriter.errors import BadArgument, NotFound
from memoriter.files import durable, edits
from memoriter.memory import Memory, parts_of
from memoriter.notes.editing import NoteText
from memoriter.records import FoundFile
from memoriter.sentences import sentence

DAY_S = 86_400.0
MAX_LISTED = 200


@dataclass(frozen=True, slots=True)
class DeletedNote:
    """A deleted note or transcript, without its text."""

    #: Empty if it was not deleted.
    id: str
    path: str
    at: float
    lines: int = 0
    #: The session of a transcript, the number of entries learned in it, and of recalls for it.
    session: str | None = None
    learned: int = 0
    recalls: int = 0


def own_transcript(memory: Memory, path: str) -> FoundFile:
    """Find a transcript that memoriter keeps. Raises `NotFound`, also for one of another program."""
    found = transcripts_of(memory.settings).find(path)
    if found is None:
        raise NotFound(sentence("note.not_found", path=path[:200]))
    if not found.absolute.is_relative_to((memory.settings.agent_folder / "sessions").resolve()):
        raise NotFound(sentence("session.foreign", path=path, folder=str(found.absolute.parent)))
    return found


def remove_note(
    memory: Memory, path: str, *, version: str | None = None, dry_run: bool = False
) -> DeletedNote:
    """Remove a note or a transcript, and keep its text. Raises `EditConflict` if a note has another version now.

    A transcript has no version. What was learned in its session stays; the result counts it.
    """
    found = own_transcript(memory, path) if path.endswith(".jsonl") else None
    if found is None and version is None:
        raise BadArgument("Give the `version` of the note that was read.", "version")
    text = (edits.read(found.absolute) or "") if found else memory.notes.text(path).text
    kept = DeletedNote("", path, time.time(), text.count("\n"), **(_learned(memory, found) if found else {}))
    if dry_run:
        return kept
    kept = replace(kept, id=str(round(kept.at * 1000)))
    file = _folder(memory) / kept.id / kept.path
    durable.write(file, text.encode())
    try:
        if found is None:
            memory.notes.remove(path, version=version or "")
        elif (gone := edits.remove(found.absolute, lambda _: None)) != text:
            durable.write(file, gone.encode())  # the session continued
    except BaseException:
        _drop(memory, file)
        raise
    memory.mark_changed()
    clean_up(memory)
    return kept


def _learned(memory: Memory, found: FoundFile) -> dict[str, Any]:
    session = transcripts_of(memory.settings).session(found)
    if not parts_of(memory).entries_exist:
        return {"session": session}
    recalls = memory.entries.recalls(limit=1, session=session).total
    return {"session": session, "learned": len(memory.entries.list(session=session)), "recalls": recalls}


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
    """Write a deleted note or transcript to its place again. Raises `EditConflict` if the place is taken."""
    if not note_id.isdecimal():
        raise BadArgument("`id` must be the id of a deleted note.", "id")
    note = next((one for one in list_deleted(memory) if one.id == note_id), None)
    if note is None:
        raise NotFound("This note cannot be restored any more.")
    file = _folder(memory) / note.id / note.path
    text = file.read_bytes().decode()
    if note.path.endswith(".jsonl"):
        edits.write(memory.settings.agent_folder / note.path, text, expected=None)
        memory.mark_changed()
        restored = NoteText(note.path, text, edits.digest(text))
    else:
        restored = memory.notes.put(note.path, text, version=None)
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
