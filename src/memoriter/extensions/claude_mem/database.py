"""The database of claude-mem: its observations become entries, and prompts with summaries become sessions.

A model wrote the observations, so they have the trust `agent`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from memoriter.errors import SourceError
from memoriter.extensions.importing import SQLITE_MAGIC, Conversation, Said, Source, seconds, write_sessions
from memoriter.extensions.importing.writing import clip, import_records, open_database

if TYPE_CHECKING:
    from memoriter.hosts import ImportReport
    from memoriter.memory import Memory

Row = Mapping[str, Any]
FILE_NAME = "claude-mem.db"

#: The types of entries for claude-mem's types of observations.
TYPES = {"decision": "technical_decision", "discovery": "fact"}
MAX_TAGS = 30
#: Parts of a summary, in the order of the work.
SUMMARY_PARTS = ("request", "investigated", "learned", "completed", "next_steps", "notes")


class ClaudeMemImporter:
    """Imports observations as entries, and prompts with summaries as sessions."""

    program = "claude-mem"

    def recognises(self, source: Source) -> bool:
        """Return whether this is a database, or a folder with one of claude-mem."""
        if source.path is None:
            return False
        return source.start == SQLITE_MAGIC or (source.path / FILE_NAME).is_file()

    def import_(self, memory: Memory, source: Source, *, dry_run: bool) -> ImportReport:
        """Import the database."""
        file = source.place / FILE_NAME if source.is_folder else source.place
        with ClaudeMem.open(file) as database:
            steps = list(write_sessions(memory, source, self.program, database.sessions(), dry_run=dry_run))
            records = list(database.entries())
        return import_records(memory, self.program, source, records, steps, dry_run=dry_run)


CLAUDE_MEM = ClaudeMemImporter()


class ClaudeMem:
    """One database of claude-mem, open for reading."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        tables = connection.execute("select name from sqlite_master where type = 'table'")
        self._tables = {str(row[0]) for row in tables}

    @classmethod
    @contextlib.contextmanager
    def open(cls, file: Path) -> Iterator[ClaudeMem]:
        """Open a database; raise `SourceError` if it is none of claude-mem's."""
        try:
            with contextlib.closing(open_database(file)) as connection:
                found = cls(connection)
                if "observations" not in found._tables:
                    raise SourceError(
                        f"{file} is a database, but not one of claude-mem. Nothing was imported."
                    )
                yield found
        except apsw.Error as error:
            raise SourceError(f"{file} cannot be read: {error}. Nothing was imported.") from error

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield the observations and the standing instructions, in the form of an import of entries."""
        for row in self._rows("observations"):
            text = _observation_text(row)
            if any(char.isalnum() for char in text):
                tags = [str(row.get("type")), str(row.get("project") or ""), *_list(row.get("concepts"))]
                yield {
                    "id": f"claude-mem:{_session_of(row)}:{row.get('content_hash') or row['id']}",
                    "text": text,
                    "type": TYPES.get(str(row.get("type")), "project_context"),
                    "tags": [tag for tag in dict.fromkeys(tags) if tag][:MAX_TAGS],
                    "created_at": seconds(row.get("created_at_epoch")),
                    "session": _session_of(row),
                }
        for row in self._rows("directives"):
            if row.get("status") == "active" and row.get("content"):
                yield {
                    "id": f"claude-mem:directive:{row['id']}",
                    "text": str(row["content"]),
                    "type": "workflow",
                    "created_at": seconds(row.get("created_at_epoch")),
                }

    def sessions(self) -> Iterator[Conversation]:
        """Yield each session with the person's prompts and claude-mem's summaries, in order of time."""
        names = {_session_of(row): _content_session(row) for row in self._rows("sdk_sessions")}
        said = dict[str, list[Said]]()
        for row in self._rows("user_prompts"):
            prompt = Said(f"prompt-{row['id']}", "user", str(row.get("prompt_text") or "").strip(), _at(row))
            said.setdefault(_content_session(row), []).append(prompt)
        for row in self._rows("session_summaries"):
            session = names.get(_session_of(row)) or _session_of(row)
            summary = Said(f"summary-{row['id']}", "assistant", _summary_text(row), _at(row))
            said.setdefault(session, []).append(summary)
        for session, messages in said.items():
            ordered = sorted((one for one in messages if one.text), key=lambda one: one.at)
            if session and ordered:
                yield Conversation(session, "", tuple(ordered))

    def _rows(self, table: str) -> Iterator[Row]:
        if table not in self._tables:
            return
        cursor = self._connection.execute(f"select * from {table} order by id")  # noqa: S608
        names: list[str] = []
        for row in cursor:
            names = names or [str(column[0]) for column in cursor.getdescription()]
            yield dict(zip(names, row, strict=True))


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
