"""Write what an importer has read: statements of a model as entries, and Markdown files as notes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from memoriter.errors import SourceError
from memoriter.extensions.importing import Source, report_of
from memoriter.extensions.importing.copying import AgentNote, copy_file, plan_copy
from memoriter.hosts import ImportReport, ImportStep
from memoriter.records import Imported

if TYPE_CHECKING:
    from memoriter.memory import Memory

#: Room for a statement in an entry.
MAX_CHARS = 1_900


def import_records(
    memory: Memory,
    program: str,
    source: Source,
    records: Iterable[Mapping[str, Any]],
    steps: Iterable[ImportStep] = (),
    remarks: tuple[str, ...] = (),
    *,
    dry_run: bool,
) -> ImportReport:
    """Import statements that a model wrote, with the trust `agent`. Each has an ``id`` and a ``text``."""
    found = [{"source": program, **record, "text": clip(record["text"])} for record in records]
    text = json.dumps(found, ensure_ascii=False)
    entries = memory.entries.import_(text, trust="agent", dry_run=dry_run) if found else Imported(0, 0)
    return report_of(memory, program, source, steps, entries, remarks, dry_run=dry_run)


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
