"""Import what an agent of OpenClaw has written and learned: notes, sessions and entries.

Notes are copied to `memory/imports/openclaw/` and transcripts to the agent's folder of sessions. Entries keep their
ids. A repeated import therefore recognises what it imported before. OpenClaw's own index is derived data and is not
read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from memoriter.entries import Entries
from memoriter.errors import NotFound, SourceError, WriteError, install_command
from memoriter.extensions.importing import NamedImporter, Source, report_of
from memoriter.extensions.importing.copying import SealedTranscript, copy_file, plan_copy
from memoriter.extensions.openclaw.database import OpenClawSession, open_sessions
from memoriter.extensions.openclaw.home import CORE_NOTES, HOME, Home, is_home, is_workspace
from memoriter.hosts import ImportReport, ImportStep
from memoriter.memory import Memory, parts_of
from memoriter.records import Imported
from memoriter.sentences import Sentence

#: The table of the plugin memory-lancedb.
ENTRY_TABLE = "memories"
MAX_ENTRIES = 200_000
#: Maximum number of files of one kind.
MAX_FILES = 20_000
NOTES_FOLDER = ("imports", "openclaw")
UNKNOWN_SPEAKERS = "a group conversation that does not record who speaks"


def import_openclaw(
    memory: Memory, folder: Path | str | None = None, *, dry_run: bool = False
) -> ImportReport:
    """Import the notes, sessions and entries of an OpenClaw agent. Existing data is kept.

    ``folder`` is OpenClaw's home, or one of its workspaces (default: ``OPENCLAW_STATE_DIR`` or ``~/.openclaw``). A
    repeated import copies only what is new.
    """
    openclaw = OpenClaw.find(Path(folder) if folder else None, memory.settings.agent)
    if not dry_run:
        parts_of(memory).notebook.check_writable()
    report = openclaw.import_into(memory, dry_run=dry_run)
    if not dry_run:
        memory.mark_changed()
    return report


OPENCLAW = NamedImporter("OpenClaw", import_openclaw)


@dataclass(frozen=True, slots=True)
class OpenClaw:
    """The data of one OpenClaw agent on this disk."""

    home: Path
    agent: str
    workspace: Path | None
    sessions: Path | None = None
    database: Path | None = None
    entries: Path | None = None
    remarks: tuple[str, ...] = field(default=())
    #: Names of transcript files of group conversations.
    shared: frozenset[str] = frozenset()

    @classmethod
    def find(cls, folder: Path | None, agent: str) -> OpenClaw:
        """Find the agent of this name, or else the main one; ``folder`` is OpenClaw's home or a workspace."""
        folder = (folder or Path(os.environ.get("OPENCLAW_STATE_DIR") or HOME)).expanduser().absolute()
        if not folder.is_dir():
            raise NotFound(f"{folder} is not a folder. OpenClaw keeps its files in {HOME} by default.")
        if is_workspace(folder) and not is_home(folder):
            return cls(folder, agent, folder)
        home = Home.read(folder, agent)
        places = (home.workspace(), home.sessions(), home.database(), home.entries())
        return cls(folder, home.agent, *places, tuple(home.remarks()), home.shared())

    def import_into(self, memory: Memory, *, dry_run: bool = False) -> ImportReport:
        """Copy what is new, keep what exists, and report every file."""
        workspace, sessions = memory.settings.workspace, memory.settings.agent_folder / "sessions"
        remarks = list(self.remarks)
        if self._is_own_workspace(workspace):
            remarks.append("The notes are used in place: this is OpenClaw's own workspace.")
        steps = [
            step if dry_run else copy_file(step, workspace)
            for step in self._plan_notes(workspace, memory.settings.files.folder)
        ]
        from_database, names = self._import_database(sessions, remarks, dry_run=dry_run)
        files = self._plan_transcripts(sessions, names)
        steps += [step if dry_run else copy_file(step, sessions) for step in files]
        steps += from_database
        imported = Imported(0, 0)
        if self.entries:
            try:
                imported = self._import_entries(self.entries, memory.entries, remarks, dry_run=dry_run)
            except SourceError as error:
                remarks.append(f"{self.entries}: {error}.")
        report = report_of(memory, "OpenClaw", Source(self.home), steps, imported, remarks, dry_run=dry_run)
        return replace(report, agent=self.agent)

    # ---- notes ------------------------------------------------------------------------------------------------

    def _is_own_workspace(self, workspace: Path) -> bool:
        return self.workspace is not None and os.path.realpath(self.workspace) == os.path.realpath(workspace)

    def _plan_notes(self, workspace: Path, folder: str) -> Iterator[ImportStep]:
        if self.workspace is None or self._is_own_workspace(workspace):
            return
        for source in _notes(self.workspace):
            relative = source.relative_to(self.workspace)
            parts = relative.parts[1:] if relative.parts[0] == "memory" else relative.parts
            yield plan_copy("note", source, workspace, *Path(folder, *NOTES_FOLDER).parts, *parts)

    # ---- sessions ---------------------------------------------------------------------------------------------

    def _plan_transcripts(self, sessions: Path, in_database: set[str]) -> Iterator[ImportStep]:
        """Plan the copies of transcript files, except those of sessions that the database knows."""
        for source in _files(self.sessions, "*.jsonl") if self.sessions else ():
            if source.stem in in_database:
                continue
            if source.stem in self.shared:
                target = sessions / "openclaw" / source.name
                yield ImportStep("session", source, target, "other", UNKNOWN_SPEAKERS)
            else:
                yield plan_copy("session", source, sessions, "openclaw", source.name)

    def _import_database(
        self, sessions: Path, remarks: list[str], *, dry_run: bool
    ) -> tuple[list[ImportStep], set[str]]:
        """Import the sessions of the database; return the steps and the names of all sessions it knows."""
        steps, names = list[ImportStep](), set[str]()
        if not self.database:
            return steps, names
        try:
            with open_sessions(self.database) as stored:
                steps += [
                    self._import_session(session, sessions, dry_run=dry_run)
                    for session in stored
                    if session.problem or session.events
                ]
                remarks += stored.remarks
                names |= stored.excluded
        except SourceError as error:
            remarks.append(f"{self.database}: {error}.")
        return steps, names | {step.target.stem for step in steps}

    def _import_session(self, session: OpenClawSession, sessions: Path, *, dry_run: bool) -> ImportStep:
        assert self.database is not None
        parts = ("openclaw", f"{session.id}.jsonl")
        if session.problem:
            return ImportStep("session", self.database, sessions.joinpath(*parts), "other", session.problem)
        transcript = SealedTranscript(session.events, session.written_ns)
        step = plan_copy("session", self.database, sessions, *parts, transcript=transcript)
        return step if dry_run else copy_file(step, sessions, transcript)

    # ---- entries ----------------------------------------------------------------------------------------------

    def _import_entries(
        self, folder: Path, entries: Entries, remarks: list[str], *, dry_run: bool
    ) -> Imported:
        """Import entries with the trust of an agent. OpenClaw does not record whether the owner stated them."""
        usable = list[dict[str, Any]]()
        for record in read_entries(folder, self.agent):
            try:
                entries.import_(json.dumps([record]), dry_run=True)
                usable.append(record)
            except WriteError as error:
                why = error.args[0].details["why"] if isinstance(error.args[0], Sentence) else error
                remarks.append(f"Skipped the entry {record['id']}: {why}.")
        return entries.import_(json.dumps(usable, ensure_ascii=False), trust="agent", dry_run=dry_run)


def _notes(workspace: Path) -> Iterator[Path]:
    yield from (workspace / name for name in CORE_NOTES if (workspace / name).is_file())
    yield from _files(workspace / "memory", "**/*.md")


def _files(folder: Path, pattern: str) -> list[Path]:
    """Return the regular files that match a pattern, without hidden files and without links."""
    found = (
        path
        for path in folder.glob(pattern)
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and not any(parent.is_symlink() for parent in (path, *path.parents) if folder in parent.parents)
    )
    return sorted(found)[:MAX_FILES]


# ---- LanceDB --------------------------------------------------------------------------------------------------


def read_entries(folder: Path, agent: str) -> list[dict[str, Any]]:
    """Return the entries of an agent and those shared by all agents, oldest first; raise `SourceError`."""
    try:
        import lancedb
    except ImportError as error:
        raise SourceError(
            f"its entries are stored in LanceDB. Run `{install_command('lancedb')}`, then import again"
        ) from error
    try:
        table = lancedb.connect(str(folder)).open_table(ENTRY_TABLE)
        columns = [name for name in table.schema.names if name != "vector"]
        rows = table.search().select(columns).limit(MAX_ENTRIES).to_list()
    except Exception as error:  # lancedb documents no common base class of its errors
        raise SourceError(f"its entries cannot be read: {error}") from error
    records = [_record(row) for row in rows if _belongs_to(row, agent)]
    return sorted(records, key=lambda record: (record["created_at"] or 0, record["id"]))


def _belongs_to(row: Mapping[str, Any], agent: str) -> bool:
    # The plugin adds the row "__schema__" to a new table to define its columns.
    has_text = isinstance(row.get("text"), str) and bool(row["text"].strip())
    return row.get("id") != "__schema__" and has_text and row.get("agentId") in (None, "", agent)


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    scope = row.get("scope")
    importance = row.get("importance")
    return {
        "id": str(row.get("id") or row["text"]),
        "text": row["text"],
        "category": row.get("category"),
        "importance": float(importance) if isinstance(importance, int | float) else None,
        "created_at": row.get("createdAt"),
        "source": "openclaw",
        "tags": [f"scope:{scope}"] if isinstance(scope, str) and scope else [],
    }
