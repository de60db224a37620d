"""What an agent of OpenClaw has written and learned: its notes, its sessions, its entries.

Notes are copied into `memory/imports/openclaw/`, transcripts into the agent's own folder of sessions, entries keep
their ids. So an import that is repeated finds what it brought before, and says so. OpenClaw's own index is derived
from all that, and is not looked at. Where it keeps things is the duty of ``openclaw_home``, what its database holds
that of ``openclaw_db``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoriter.errors import NotFound, SourceError, WriteError
from memoriter.integrations.copying import Told, copied, step_of
from memoriter.integrations.openclaw.database import Session, opened
from memoriter.integrations.openclaw.home import CORE, HOME, Home, is_home, is_workspace
from memoriter.records import Imported, ImportReport, ImportStep

if TYPE_CHECKING:
    from memoriter.entries import Entries


TABLE = "memories"
MAX_ROWS = 200_000


def rows(folder: Path, agent: str) -> list[dict[str, Any]]:
    """The memories of an agent and those of all agents, as plain JSON, oldest first; raises `SourceError`."""
    try:
        import lancedb
    except ImportError as error:
        raise SourceError(
            "its entries are kept in LanceDB: pip install 'memoriter[lancedb]', then import again"
        ) from error
    try:
        table = lancedb.connect(str(folder)).open_table(TABLE)
        names = [name for name in table.schema.names if name != "vector"]
        found = table.search().select(names).limit(MAX_ROWS).to_list()
    except Exception as error:  # the library raises what it likes
        raise SourceError(f"its entries cannot be read: {error}") from error
    usable = [_record(row) for row in found if _is_of(row, agent)]
    return sorted(usable, key=lambda record: (record["created_at"] or 0, record["id"]))


def _is_of(row: Mapping[str, Any], agent: str) -> bool:
    # The first row of a new table is the plugin's own, to fix its columns.
    named = row.get("id") != "__schema__" and isinstance(row.get("text"), str) and bool(row["text"].strip())
    return named and row.get("agentId") in (None, "", agent)


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


NOTES = "memory/imports/openclaw"
MOST = 20_000  #: files of one kind
UNKNOWN = "a group's conversation, which does not say who speaks"


@dataclass(frozen=True, slots=True)
class OpenClaw:
    """One agent of OpenClaw, on this disk."""

    home: Path
    agent: str
    workspace: Path | None
    sessions: Path | None = None
    database: Path | None = None
    entries: Path | None = None
    remarks: tuple[str, ...] = field(default=())
    shared: frozenset[str] = frozenset()  #: names of transcripts in files in which others speak too

    @classmethod
    def find(cls, place: Path | None, agent: str) -> OpenClaw:
        """The agent of this name, or else the main one; ``place`` is OpenClaw's home, or a workspace alone."""
        folder = (place or Path(os.environ.get("OPENCLAW_STATE_DIR") or HOME)).expanduser().absolute()
        if not folder.is_dir():
            raise NotFound(
                f"{folder} is not a folder: OpenClaw keeps its files in {HOME}, unless told otherwise."
            )
        if is_workspace(folder) and not is_home(folder):
            return cls(folder, agent, folder)
        home = Home.read(folder, agent)
        return cls(
            folder,
            home.agent,
            home.workspace(),
            home.sessions(),
            home.database(),
            home.entries(),
            tuple(home.remarks()),
            home.shared(),
        )

    # ---- files ------------------------------------------------------------------------------------------------

    def _notes(self, workspace: Path) -> Iterator[ImportStep]:
        if self.workspace and os.path.realpath(self.workspace) != os.path.realpath(workspace):
            for source in _notes(self.workspace):
                below = source.relative_to(self.workspace)
                parts = below.parts[1:] if below.parts[0] == "memory" else below.parts
                yield step_of("note", source, workspace, *NOTES.split("/"), *parts)

    def _kept_as_files(self, sessions: Path, but: set[str]) -> Iterator[ImportStep]:
        """Transcripts in files; ``but``: those that the database decides about."""
        for source in _files(self.sessions, "*.jsonl") if self.sessions else ():
            if source.stem in but:
                continue
            if source.stem in self.shared:
                yield ImportStep("session", source, sessions / "openclaw" / source.name, "other", UNKNOWN)
            else:
                yield step_of("session", source, sessions, "openclaw", source.name)

    def _kept_in_database(
        self, sessions: Path, remarks: list[str], *, dry_run: bool
    ) -> tuple[list[ImportStep], set[str]]:
        """What became of the sessions in the database, and the names of all that it decides about."""
        done, names = list[ImportStep](), set[str]()
        if not self.database:
            return done, names
        try:
            with opened(self.database) as held:
                done += [
                    self._session(one, sessions, dry_run=dry_run) for one in held if one.why or one.events
                ]
                remarks += held.remarks
                names |= held.unwanted
        except SourceError as error:
            remarks.append(f"{self.database}: {error}.")
        return done, names | {step.target.stem for step in done}

    def _session(self, session: Session, sessions: Path, *, dry_run: bool) -> ImportStep:
        assert self.database is not None
        target = ("openclaw", f"{session.id}.jsonl")
        if session.why:
            return ImportStep("session", self.database, sessions.joinpath(*target), "other", session.why)
        told = Told(session.events, session.written_ns)
        step = step_of("session", self.database, sessions, *target, told=told)
        return step if dry_run else copied(step, sessions, told)

    def take_in(
        self, workspace: Path, sessions: Path, entries: Entries, *, dry_run: bool = False
    ) -> ImportReport:
        """Copy what is new, keep what is there, and say what became of everything."""
        remarks = list(self.remarks)
        if self.workspace and os.path.realpath(self.workspace) == os.path.realpath(workspace):
            remarks.append("The notes are used where they are: this is OpenClaw's own workspace.")
        done = [step if dry_run else copied(step, workspace) for step in self._notes(workspace)]
        told, names = self._kept_in_database(sessions, remarks, dry_run=dry_run)
        files = self._kept_as_files(sessions, names)
        done += [step if dry_run else copied(step, sessions) for step in files]
        done += told
        imported = Imported(0, 0)
        if self.entries:
            try:
                imported = self._entries(self.entries, entries, remarks, dry_run=dry_run)
            except SourceError as error:
                remarks.append(f"{self.entries}: {error}.")
        return ImportReport("OpenClaw", self.home, self.agent, tuple(done), imported, tuple(remarks), dry_run)

    def _entries(self, folder: Path, entries: Entries, remarks: list[str], *, dry_run: bool) -> Imported:
        """Entries were stored by an agent, or noticed in passing: nobody can tell, so none is the owner's own."""
        usable = list[dict[str, Any]]()
        for record in rows(folder, self.agent):
            try:
                entries.import_(json.dumps([record]), dry_run=True)
                usable.append(record)
            except WriteError as error:
                remarks.append(f"An entry is left out ({record['id']}): {error}.")
        return entries.import_(json.dumps(usable, ensure_ascii=False), trust="agent", dry_run=dry_run)


def _notes(workspace: Path) -> Iterator[Path]:
    yield from (workspace / name for name in CORE if (workspace / name).is_file())
    yield from _files(workspace / "memory", "**/*.md")


def _files(folder: Path, pattern: str) -> list[Path]:
    """The plain files of a pattern, without hidden ones and without links, to files or to folders."""
    found = (
        path
        for path in folder.glob(pattern)
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and not any(one.is_symlink() for one in (path, *path.parents) if folder in one.parents)
    )
    return sorted(found)[:MOST]
