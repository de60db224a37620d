"""What an agent of OpenClaw has written and learned: its notes, its sessions, its entries.

Notes are copied into `memory/imports/openclaw/`, transcripts into the agent's own folder of sessions, entries keep
their ids. So an import that is repeated finds what it brought before, and says so. OpenClaw's own index is derived
from all that, and is not looked at.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.entries import importers
from recollect.errors import NotFound, SourceError, WriteError
from recollect.importing import lance
from recollect.importing.copying import copied, step_of
from recollect.records import Imported, ImportReport, ImportStep

if TYPE_CHECKING:
    from recollect.entries import Keeper

HOME = Path("~/.openclaw")
NOTES = "memory/imports/openclaw"
CORE = ("MEMORY.md", "USER.md", "DREAMS.md")
MOST = 20_000  #: files of one kind

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class OpenClaw:
    """One agent of OpenClaw, on this disk."""

    home: Path
    agent: str
    workspace: Path | None
    sessions: Path | None
    entries: Path | None
    remarks: tuple[str, ...] = field(default=())

    @classmethod
    def find(cls, place: Path | None, agent: str) -> OpenClaw:
        """The agent of this name, or else the main one; ``place`` is OpenClaw's home, or a workspace alone."""
        home = (place or Path(os.environ.get("OPENCLAW_STATE_DIR") or HOME)).expanduser().absolute()
        if not home.is_dir():
            raise NotFound(
                f"{home} is not a folder: OpenClaw keeps its files in {HOME}, unless told otherwise."
            )
        if _is_workspace(home):
            return cls(home, agent, home, None, None)
        known = sorted(one.name for one in (home / "agents").glob("*") if one.is_dir())
        chosen = agent if agent in known or not known else "main" if "main" in known else known[0]
        others = [name for name in known if name != chosen and _NAME.fullmatch(name)]
        remarks = (
            [f"Agents with memories of their own are not taken in: {', '.join(others)}."] if others else []
        )
        remarks += _indexes(home, chosen)
        spaces = (home / f"workspace-{chosen}", home / "workspace")
        return cls(
            home,
            chosen,
            next((space for space in spaces if _is_workspace(space)), None),
            _folder(home / "agents" / chosen / "sessions"),
            _folder(home / "memory" / "lancedb"),
            tuple(remarks),
        )

    # ---- files ------------------------------------------------------------------------------------------------

    def steps(self, workspace: Path, sessions: Path) -> Iterator[ImportStep]:
        """Every note and transcript, with what copying it would do."""
        if self.workspace and os.path.realpath(self.workspace) != os.path.realpath(workspace):
            for source in _notes(self.workspace):
                below = source.relative_to(self.workspace)
                parts = below.parts[1:] if below.parts[0] == "memory" else below.parts
                yield step_of("note", source, workspace, *NOTES.split("/"), *parts)
        if self.sessions:
            for source in _files(self.sessions, "*.jsonl"):
                yield step_of("session", source, sessions, "openclaw", source.name)

    def take_in(
        self, workspace: Path, sessions: Path, keeper: Keeper, *, dry_run: bool = False
    ) -> ImportReport:
        """Copy what is new, keep what is there, and say what became of everything."""
        remarks = list(self.remarks)
        if self.workspace and os.path.realpath(self.workspace) == os.path.realpath(workspace):
            remarks.append("The notes are used where they are: this is OpenClaw's own workspace.")
        done = list[ImportStep]()
        for step in self.steps(workspace, sessions):
            done.append(step if dry_run else copied(step, workspace if step.kind == "note" else sessions))
        imported = Imported(0, 0)
        if self.entries:
            try:
                imported = self._entries(self.entries, keeper, remarks, dry_run=dry_run)
            except SourceError as error:
                remarks.append(f"{self.entries}: {error}.")
        return ImportReport("OpenClaw", self.home, self.agent, tuple(done), imported, tuple(remarks), dry_run)

    def _entries(self, folder: Path, keeper: Keeper, remarks: list[str], *, dry_run: bool) -> Imported:
        """Entries were stored by an agent, or noticed in passing: nobody can tell, so none is the owner's own."""
        usable, ids = list[dict[str, Any]](), list[str]()
        for record in lance.rows(folder, self.agent):
            try:
                ids += [line.entry.id for line in importers.read(json.dumps([record]), at=keeper.clock())]
                usable.append(record)
            except WriteError as error:
                remarks.append(f"An entry is left out ({record['id']}): {error}.")
        if not dry_run:
            return keeper.take_in(json.dumps(usable, ensure_ascii=False), at_most="agent")
        already = len(keeper.entries.load(ids))
        return Imported(len(set(ids)) - already, already)


def _is_workspace(folder: Path) -> bool:
    return (folder / "MEMORY.md").is_file() or any(
        (folder / "memory").glob("*.md") if (folder / "memory").is_dir() else ()
    )


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


def _folder(path: Path) -> Path | None:
    return path if path.is_dir() else None


def _indexes(home: Path, agent: str) -> Iterator[str]:
    old = home / "memory" / f"{agent}.sqlite"
    if old.is_file():
        yield f"{old} is an index of the notes, and is not needed."
    new = home / "agents" / agent / "agent" / "openclaw-agent.sqlite"
    if new.is_file():
        yield f"{new} is not read; sessions that are kept only there are not taken in."
