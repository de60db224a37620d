"""Correct or forget one thing in all its places: entries, lines of notes, and lines of conversations.

Everything is checked before anything is written. The entries change in one change set. If a write fails, the files
that were written before get their old text back.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field

from memoriter.config.fields import described
from memoriter.entries.adding import rejection
from memoriter.entries.collection import context_of
from memoriter.entries.drafts import clean_entry
from memoriter.errors import EditConflict, MemoriterError, NotFound, WriteError
from memoriter.extensions.letter.deleted import own_transcript
from memoriter.files import edits
from memoriter.memory import Memory, parts_of
from memoriter.store.entry_store import Edit
from memoriter.text.redaction import redact
from memoriter.tools.tool import Arguments

TRANSCRIPT = ".jsonl"


class Place(Arguments):
    """One place, and what it should say. With another text now it is a conflict."""

    ref: str = Field(max_length=4_096, description="The id of an entry, or the path of a file.")
    text: str = Field(max_length=8_000, description="What it says now.")
    line: int | None = described(None, "The line in a file.", ge=1)
    new: str | None = described(None, "What it should say. Without it: forget.", max_length=8_000)


class ChangedFile(Arguments):
    """A file that was changed."""

    path: str = Field(max_length=4_096, description="Its path.")
    before: str = Field(max_length=64_000_000, description="Its text before.")
    version: str = Field(max_length=64, description="The digest of its text after.")


@dataclass(frozen=True, slots=True)
class Done:
    """What was changed, and what `undo` needs."""

    corrected: int = 0
    forgotten: int = 0
    #: One of the changed entries and the number of its newest change. They are one change set.
    entry: str | None = None
    seq: int | None = None
    files: tuple[ChangedFile, ...] = ()


def change(memory: Memory, places: Sequence[Place]) -> Done:
    """Change all places, or none. Raises `EditConflict` if one of them says something else by now."""
    by_path: dict[str, list[Place]] = defaultdict(list)
    for place in places:
        if place.line is not None:
            by_path[place.ref].append(place)
    new_texts = {path: _planned(memory, path, some) for path, some in by_path.items()}
    entries = _entry_edits(memory, [place for place in places if place.line is None])
    written = list[ChangedFile]()
    try:
        for path, (before, after) in new_texts.items():
            changed = ChangedFile(path=path, before=before, version=edits.digest(after))
            _write(memory, path, before, after)
            written.append(changed)
        made = _apply(memory, entries)
    except (MemoriterError, OSError):
        for one in reversed(written):
            _write(memory, one.path, new_texts[one.path][1], one.before)
        raise
    if written:
        memory.mark_changed()
    corrected = sum(bool(place.new) for place in places)
    entry, seq = (made[0].id, made[0].seq) if made else (None, None)
    return Done(corrected, len(places) - corrected, entry, seq, tuple(written))


def undo(memory: Memory, entry: str | None, seq: int | None, files: Sequence[ChangedFile]) -> None:
    """Undo a change, unless one of its places was changed since."""
    for file in files:
        now = edits.read(_file(memory, file.path)) or ""
        if edits.digest(now) != file.version:
            raise EditConflict(f"{file.path} was changed since. Nothing was undone.")
    if entry is not None:
        memory.entries.undo(entry, if_seq=seq)
    for file in files:
        _write(memory, file.path, edits.read(_file(memory, file.path)) or "", file.before)
    if files:
        memory.mark_changed()


# ---- entries ------------------------------------------------------------------------------------------------------


def _entry_edits(memory: Memory, places: Sequence[Place]) -> list[Edit]:
    if not places:
        return []
    context, found = context_of(memory.entries), list[Edit]()
    known, at = context.store.load(place.ref for place in places), context.clock()
    for place in places:
        entry = known.get(place.ref)
        if entry is None:
            raise NotFound(f"There is no entry {place.ref}. Nothing was changed.")
        if entry.text != place.text:
            raise EditConflict("An entry was changed in the meantime. Nothing was changed.")
        if place.new:
            found.append(Edit("update", clean_entry(replace(entry, text=place.new, updated_at=at)), entry))
            continue
        family = context.store.load(context.store.family([entry.id]))
        taken = {edit.entry_id for edit in found}
        found += [
            rejection(one, at) for one in family.values() if one.state != "rejected" and one.id not in taken
        ]
    return found


def _apply(memory: Memory, changes: Sequence[Edit]) -> tuple[Any, ...]:
    if not changes:
        return ()
    context = context_of(memory.entries)
    with context.store.transaction():
        at = context.clock()
        made = context.store.apply(changes, at=at, by="owner")
        for one in made:
            if one.state == "rejected":
                context.store.add_tombstone(one.text, at=at, seq=one.seq)
    context.follower.try_follow()
    return made


# ---- files --------------------------------------------------------------------------------------------------------


def _file(memory: Memory, path: str) -> Path:
    """Return the file of a note, or of a transcript that memoriter keeps."""
    if path.endswith(TRANSCRIPT):
        return own_transcript(memory, path).absolute
    memory.notes.get(path)
    return memory.settings.workspace / path


def _planned(memory: Memory, path: str, places: Sequence[Place]) -> tuple[str, str]:
    """Return the text of a file before and after the change."""
    text = edits.read(_file(memory, path))
    if text is None:
        raise NotFound(f"{path} does not exist. Nothing was changed.")
    lines = text.split("\n")
    is_session = path.endswith(TRANSCRIPT)
    gone = set[int]()
    for place in places:
        at = (place.line or 0) - 1
        if not 0 <= at < len(lines):
            raise EditConflict(f"{path} was changed in the meantime. Nothing was changed.")
        if is_session:
            lines[at] = _said(lines[at], place, path)
        else:
            _check_same(lines[at], place, path)
            lead = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
            end = "\r" if lines[at].endswith("\r") else ""
            lines[at] = f"{lead}{redact(place.new or '').strip()}{end}"
            if not place.new:
                gone.add(at)
    return text, "\n".join(line for at, line in enumerate(lines) if at not in gone)


def _check_same(line: str, place: Place, path: str) -> None:
    if not line.strip().startswith(place.text.strip()):
        raise EditConflict(f"{path}:{place.line} says something else by now. Nothing was changed.")


def _said(line: str, place: Place, path: str) -> str:
    """Return a line of a transcript with other words. A forgotten line keeps its place and says nothing."""
    try:
        record = json.loads(line)
    except ValueError:
        raise WriteError(f"{path}:{place.line} cannot be read. Nothing was changed.") from None
    texts = list(_texts(record))
    if len(texts) != 1:
        raise WriteError(
            f"{path}:{place.line} has several parts and cannot be changed here. Nothing was changed."
        )
    said, put = texts[0]
    if " ".join(place.text.split()) not in " ".join(redact(said).split()):
        raise EditConflict(f"{path}:{place.line} says something else by now. Nothing was changed.")
    put(redact(place.new or "").strip())
    return json.dumps(record, ensure_ascii=False)


def _texts(record: Any) -> list[tuple[str, Callable[[str], None]]]:
    """Return the texts of a message, each with a function that replaces it."""
    holder = record.get("message", record) if isinstance(record, dict) else {}
    content = holder.get("content") if isinstance(holder, Mapping) else None

    def put(where: dict[str, Any], name: str) -> Callable[[str], None]:
        return lambda text: where.update({name: text})

    if isinstance(content, str):
        return [(content, put(holder, "content"))]
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return [(part["text"], put(part, "text")) for part in parts if isinstance(part.get("text"), str)]


def _write(memory: Memory, path: str, before: str, after: str) -> None:
    def put(now: str | None) -> str | None:
        if now != before:
            raise EditConflict(f"{path} was changed in the meantime.")
        return after

    edits.update(_file(memory, path), put)
    parts_of(memory).engine.mark_changed()
