"""The database of claude-mem: its observations become entries, and prompts with summaries become sessions.

A model wrote the observations, so they have the trust `agent`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import apsw

from memoriter.errors import SourceError
from memoriter.extensions.importing import SQLITE_MAGIC, Conversation, Said, Source, seconds
from memoriter.extensions.importing.writing import Found, ProgramImporter, clip, open_database

Row = Mapping[str, Any]
Rows = Mapping[str, list[Row]]
TABLES = ("observations", "directives", "sdk_sessions", "user_prompts", "session_summaries")
FILE_NAME = "claude-mem.db"

#: The types of entries for claude-mem's types of observations.
TYPES = {"decision": "technical_decision", "discovery": "fact"}
MAX_TAGS = 30
#: Parts of a summary, in the order of the work.
SUMMARY_PARTS = ("request", "investigated", "learned", "completed", "next_steps", "notes")


def _recognises(source: Source) -> bool:
    """Return whether this is a database, or a folder with one of claude-mem."""
    if source.path is None:
        return False
    return source.start == SQLITE_MAGIC or (source.path / FILE_NAME).is_file()


def _read(source: Source) -> Found:
    """Return observations as statements, and prompts with summaries as conversations."""
    file = source.place / FILE_NAME if source.is_folder else source.place
    try:
        with contextlib.closing(open_database(file)) as connection:
            names = connection.execute("select name from sqlite_master where type = 'table'")
            tables = {str(row[0]) for row in names}.intersection(TABLES)
            rows = {table: list(_rows(connection, table)) for table in tables}
    except apsw.Error as error:
        raise SourceError(f"{file} cannot be read: {error}. Nothing was imported.") from error
    if "observations" not in rows:
        raise SourceError(f"{file} is a database, but not one of claude-mem. Nothing was imported.")
    return Found(_entries(rows), _sessions(rows))


CLAUDE_MEM = ProgramImporter("claude-mem", _recognises, _read)


def _rows(connection: apsw.Connection, table: str) -> Iterator[Row]:
    cursor = connection.execute(f"select * from {table} order by id")  # noqa: S608
    names: list[str] = []
    for row in cursor:
        names = names or [str(column[0]) for column in cursor.getdescription()]
        yield dict(zip(names, row, strict=True))


def _entries(rows: Rows) -> Iterator[dict[str, Any]]:
    """Yield the observations and the standing instructions, in the form of an import of entries."""
    for row in rows["observations"]:
        text = _observation_text(row)
        if any(char.isalnum() for char in text):
            tags = [str(row.get("type")), str(row.get("project") or ""), *_list(row.get("concepts"))]
            yield {
                "id": f"claude-mem:{_session_of(row)}:{row.get('content_hash') or row['id']}",
                "text": text,
                "type": TYPES.get(str(row.get("type")), "project_context"),
                "tags": [tag for tag in dict.fromkeys(tags) if tag][:MAX_TAGS],
                "created_at": _at(row),
                "session": _session_of(row),
            }
    for row in rows.get("directives", ()):
        if row.get("status") == "active" and row.get("content"):
            id_, text = f"claude-mem:directive:{row['id']}", str(row["content"])
            yield {"id": id_, "text": text, "type": "workflow", "created_at": _at(row)}


def _sessions(rows: Rows) -> Iterator[Conversation]:
    """Yield each session with the person's prompts and claude-mem's summaries, in order of time."""
    names = {_session_of(row): _content_session(row) for row in rows.get("sdk_sessions", ())}
    said = dict[str, list[Said]]()
    for row in rows.get("user_prompts", ()):
        prompt = Said(f"prompt-{row['id']}", "user", str(row.get("prompt_text") or "").strip(), _at(row))
        said.setdefault(_content_session(row), []).append(prompt)
    for row in rows.get("session_summaries", ()):
        session = names.get(_session_of(row)) or _session_of(row)
        summary = Said(f"summary-{row['id']}", "assistant", _summary_text(row), _at(row))
        said.setdefault(session, []).append(summary)
    for session, messages in said.items():
        ordered = sorted((one for one in messages if one.text), key=lambda one: one.at)
        if session and ordered:
            yield Conversation(session, "", tuple(ordered))


def _session_of(row: Row) -> str:
    """Return claude-mem's own id of a session. The column had another name before version 8."""
    return str(row.get("memory_session_id") or row.get("sdk_session_id") or "")


def _content_session(row: Row) -> str:
    return str(row.get("content_session_id") or row.get("claude_session_id") or "")


def _at(row: Row) -> float:
    return seconds(row.get("created_at_epoch"))


def _observation_text(row: Row) -> str:
    """Return an observation as one statement: its title, and what it says in detail."""
    title = str(row.get("title") or "").strip()
    body = str(row.get("narrative") or row.get("text") or "").strip() or " ".join(_list(row.get("facts")))
    body = body or str(row.get("subtitle") or "").strip()
    return clip(f"{title}: {body}" if title and body else title or body)


def _summary_text(row: Row) -> str:
    parts = [(name, str(row.get(name) or "").strip()) for name in SUMMARY_PARTS]
    return "\n".join(f"{name.replace('_', ' ').capitalize()}: {text}" for name, text in parts if text)


def _list(value: object) -> list[str]:
    """Return the texts of a JSON list."""
    try:
        found = json.loads(value) if isinstance(value, str) else []
    except (ValueError, RecursionError):
        return []
    return [str(item) for item in found if str(item).strip()] if isinstance(found, list) else []
