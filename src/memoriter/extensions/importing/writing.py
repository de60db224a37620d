"""Write what an importer has read: statements of a model as entries, conversations as sessions, files as notes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from memoriter.errors import SourceError
from memoriter.extensions.importing import Conversation, Source, report_of, write_sessions
from memoriter.extensions.importing.copying import AgentNote, copy_file, plan_copy
from memoriter.hosts import ImportReport, ImportStep
from memoriter.memory import Memory
from memoriter.records import Imported

#: Room for a statement in an entry.
MAX_CHARS = 1_900


@dataclass(frozen=True, slots=True)
class Found:
    """The content of a source."""

    #: Statements that a model wrote. Each has an ``id`` and a ``text``, and gets the trust `agent`.
    records: Iterable[Mapping[str, Any]] = ()
    conversations: Iterable[Conversation] = ()
    #: Markdown files of the source, and whether a model wrote them.
    notes: Iterable[Path] = ()
    by_model: bool = True
    remarks: tuple[str, ...] = ()
    #: Where it was found, if no source was named.
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class ProgramImporter:
    """Imports from a program by two functions: one recognises its files, and one reads them."""

    program: str
    recognises: Callable[[Source], bool]
    read: Callable[[Source], Found]

    def import_(self, memory: Memory, source: Source, *, dry_run: bool) -> ImportReport:
        """Write everything that was read."""
        found = self.read(source)
        source = found.source or source
        steps = copy_notes(
            memory, self.program, source, found.notes, written_by_model=found.by_model, dry_run=dry_run
        )
        steps += write_sessions(memory, source, self.program, found.conversations, dry_run=dry_run)
        records = [{"source": self.program, **one, "text": clip(one["text"])} for one in found.records]
        text = json.dumps(records, ensure_ascii=False)
        entries = memory.entries.import_(text, trust="agent", dry_run=dry_run) if records else Imported(0, 0)
        return report_of(memory, self.program, source, steps, entries, found.remarks, dry_run=dry_run)


def copy_notes(
    memory: Memory,
    program: str,
    source: Source,
    files: Iterable[Path],
    *,
    written_by_model: bool,
    dry_run: bool,
) -> list[ImportStep]:
    """Copy notes to the folder of the program below `imports`. Those of a model say so in their front matter."""
    workspace, steps = memory.settings.workspace, list[ImportStep]()
    folder = Path(memory.settings.files.folder, "imports", program).parts
    for file in files:
        note = AgentNote(source.notes[file], file.stat().st_mtime_ns) if written_by_model else None
        parts = [*folder, *(part.lstrip(".") for part in file.relative_to(source.place).parts)]
        step = plan_copy("note", file, workspace, *parts, transcript=note)
        steps.append(step if dry_run else copy_file(step, workspace, note))
    return steps


def clip(text: object) -> str:
    """Return a text that fits into an entry."""
    whole = str(text).strip()
    return whole if len(whole) <= MAX_CHARS else f"{whole[: MAX_CHARS - 1]}…"


def open_database(file: Path) -> apsw.Connection:
    """Open a SQLite database for reading. If its folder cannot be written, its log cannot be used."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    for more in ("", "&immutable=1"):
        connection = apsw.Connection(f"{file.absolute().as_uri()}?mode=ro{more}", flags=flags)
        with contextlib.suppress(apsw.CantOpenError, apsw.ReadOnlyError):
            connection.execute("select count(*) from sqlite_master").fetchall()
            return connection
        connection.close()
    raise SourceError(f"{file} cannot be opened. Nothing was imported.")
