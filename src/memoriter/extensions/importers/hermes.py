"""The home of Hermes Agent: entries of `MEMORY.md` and `USER.md`, and the sessions of `state.db`.

The agent wrote the entries, so they have the trust `agent`.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw

from memoriter.errors import SourceError
from memoriter.extensions.importing import Conversation, Said, Source
from memoriter.extensions.importing.writing import Found, ProgramImporter, open_database

FILES = {"MEMORY.md": "fact", "USER.md": "user_preference"}
#: What is between two entries of a file.
DELIMITER = "\n§\n"
#: The start of content with several parts.
PARTS = "\x00json:"
_MESSAGES = """
    select m.id, m.session_id, m.role, m.content, m.timestamp from messages m
    where m.role in ('user', 'assistant') and m.content is not null and (m.active or m.compacted)
    order by m.session_id, m.timestamp, m.id"""


def _recognises(source: Source) -> bool:
    """Return whether a folder has the memory of Hermes."""
    return source.is_folder and any((source.place / "memories" / name).is_file() for name in FILES)


def _read(source: Source) -> Found:
    """Return the entries and messages of the folder, or of the home of Hermes."""
    home = source.path or Path(os.environ.get("HERMES_HOME") or "~/.hermes").expanduser()
    if not home.is_dir():
        raise SourceError(f"{home} does not exist. Name the home of Hermes: memoriter import hermes PATH")
    return Found(_entries(home), _sessions(home), source=replace(source, path=home))


HERMES = ProgramImporter("hermes", _recognises, _read)


def _entries(home: Path) -> Iterator[dict[str, Any]]:
    for name, type_ in FILES.items():
        file = home / "memories" / name
        text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
        at = file.stat().st_mtime if text else 0.0
        for entry in filter(None, map(str.strip, text.split(DELIMITER))):
            yield {"id": f"hermes:{name}:{entry}", "text": entry, "type": type_, "created_at": at}


def _sessions(home: Path) -> Iterator[Conversation]:
    file = home / "state.db"
    if not file.is_file():
        return
    said = dict[str, list[Said]]()
    try:
        with contextlib.closing(open_database(file)) as database:
            for id_, session, role, content, at in database.execute(_MESSAGES):
                message = Said(str(id_), role, _text(str(content)).strip(), float(at))
                said.setdefault(str(session), []).append(message)
    except apsw.Error as error:
        raise SourceError(f"{file} cannot be read: {error}. Nothing was imported.") from error
    for session, messages in said.items():
        if found := tuple(one for one in messages if one.text):
            yield Conversation(session, "", found)


def _text(content: str) -> str:
    """Return the texts of a message. One with images is a list of parts."""
    if not content.startswith(PARTS):
        return content
    parts = json.loads(content[len(PARTS) :])
    parts = parts if isinstance(parts, list) else [parts]
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text"))
