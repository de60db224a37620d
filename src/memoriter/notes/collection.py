"""The notes and transcripts themselves, as a person looks through them: which there are, how one was cut into chunks,
and on which line of which conversation something was said.

Files are listed from the disk, so that every engine shows the same; what the index knows of them is added where there
is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memoriter.errors import MemoriterError, NotFound, WriteError
from memoriter.files import edits
from memoriter.notes.chunking import trust_of_note
from memoriter.records import FoundFile, NoteChunk, NoteFile, Trust
from memoriter.store.digests import normal_form
from memoriter.text import estimate_tokens
from memoriter.text.measure import split_lines

if TYPE_CHECKING:
    from memoriter.notes.workspace import Workspace
    from memoriter.sessions.transcripts import Transcripts
    from memoriter.store import Index
    from memoriter.store.documents import Holding

ASKED = 200  #: transcripts, the newest, that are asked for their session when none has its name


class Notes:
    """What one agent's workspace and sessions hold."""

    def __init__(
        self, workspace: Workspace, sessions: Transcripts | None, index: Callable[[], Index | None]
    ) -> None:
        self._workspace = workspace
        self._sessions = sessions
        self._index = index

    def tree(self, limit: int) -> tuple[list[NoteFile], int]:
        """The files, by path, notes before sessions, at most so many; and how many there are."""
        found = [*self._workspace.scan().files, *self._transcripts()]
        return self._listed(found[:limit]), len(found)

    def paths(self) -> list[str]:
        """The notes alone, by path."""
        return [one.path for one in self._workspace.scan().files]

    def after(self, path: str, limit: int) -> tuple[list[NoteFile], bool]:
        """The notes whose paths come after this one, at most so many; and whether there are more."""
        later = [one for one in self._workspace.scan().files if one.path > path]
        return self._listed(later[:limit]), len(later) > limit

    def file(self, path: str) -> NoteFile:
        """One file that can be read under this path."""
        found = self._workspace.find(path) or (self._sessions.find(path) if self._sessions else None)
        if found is None:
            raise NotFound(f"{path[:200]!r} is no note and no transcript.")
        return self._listed([found])[0]

    def _listed(self, files: Sequence[FoundFile]) -> list[NoteFile]:
        index = self._index()
        held = index.holdings([one.path for one in files]) if index else {}
        return [
            NoteFile(
                one.path,
                one.source,
                one.size,
                one.mtime_ns / 1e9,
                held[one.path].chunks if one.path in held else 0,
                self._trust(one, held.get(one.path)),
            )
            for one in files
        ]

    def _trust(self, found: FoundFile, held: Holding | None) -> Trust:
        """Whose words a file holds as it is now: as the index has it, or as the note itself says."""
        if held and (held.mtime_ns, held.size) == (found.mtime_ns, found.size):
            return held.trust
        if found.source == "sessions":
            # A transcript only grows, so its size tells; nobody has looked yet what the rest brings in from outside.
            return held.trust if held and held.size == found.size else "untrusted"
        try:
            return trust_of_note(split_lines(self._workspace.read(found).text))
        except (MemoriterError, OSError):
            return "untrusted"

    def chunks(self, path: str) -> list[NoteChunk]:
        """How a file was cut, in the order of its lines; empty before it is indexed."""
        self.file(path)
        index = self._index()
        stored = index.stored_of(path) if index else []
        return [
            NoteChunk(
                one.chunk.id,
                one.chunk.start_line,
                one.chunk.end_line,
                one.chunk.headings,
                one.chunk.date,
                one.chunk.trust,
                estimate_tokens(one.chunk.text),
                bool(one.model),
            )
            for one in sorted(stored, key=lambda one: (one.chunk.start_line, one.rowid))
        ]

    def said(self, session: str, text: str) -> tuple[str, int | None] | None:
        """The transcript of a session, and the line on which somebody said this; None where there is no transcript."""
        found = self._transcript(session)
        if found is None or self._sessions is None:
            return None
        wanted = normal_form(text)
        turns = ((turn.line, normal_form(turn.text)) for turn in self._sessions.turns(found))
        try:
            return found.path, next((line for line, said in turns if wanted in said), None)
        except (MemoriterError, OSError):  # it went away, or cannot be read: the session is all that is known
            return None

    def _transcripts(self) -> tuple[FoundFile, ...]:
        return self._sessions.scan().files if self._sessions else ()

    def _transcript(self, session: str) -> FoundFile | None:
        """By the file's name, by what the index knows, or by what the first lines of one say that it does not know."""
        if self._sessions is None:
            return None
        if found := self._sessions.find(f"sessions/{session}.jsonl"):
            return found
        index = self._index()
        of_it = (self._sessions.find(path) for path in (index.paths_of(session) if index else ()))
        if found := next(filter(None, of_it), None):
            return found
        files = sorted(self._transcripts(), key=lambda one: -one.mtime_ns)
        if named := next((one for one in files if one.absolute.stem == session), None):
            return named
        known = index.holdings(one.path for one in files[:ASKED]) if index else {}
        return next(
            (one for one in files[:ASKED] if one.path not in known and self._is_of(one, session)), None
        )

    def _is_of(self, found: FoundFile, session: str) -> bool:
        assert self._sessions is not None
        try:
            return self._sessions.session(found) == session
        except (MemoriterError, OSError):
            return False


# ---- erasing lines -----------------------------------------------------------------------------------------------

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?:-(?:agent|owner)(?:-\d{1,2})?)?\.md")
_LEAD = re.compile(r"^\s*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(?:\d{1,2}:\d{2}(?::\d{2})?\s+)?")


class ErasedLines(NamedTuple):
    """What came of it."""

    changed: tuple[str, ...]  #: names of logs
    left: tuple[str, ...]  #: what stays, in words


class _NotTheirs(Exception):
    """The log holds somebody else's words."""


def erase_lines(root: Path, texts: Iterable[str], *, trust: Trust = "owner") -> ErasedLines:
    """Remove the lines of the days' logs that say one of the texts: for the owner from all, else from agents' alone."""
    forms = {form for form in map(normal_form, texts) if form}
    changed, kept, unread = list[str](), list[str](), list[str]()
    for path in sorted(path for path in (root / "memory").glob("*.md") if _DAY.fullmatch(path.name)):
        try:
            if _struck(path, forms, trust):
                changed.append(path.name)
        except _NotTheirs:
            kept.append(path.name)
        except (WriteError, OSError):
            unread.append(path.name)
    left = {
        "logs of the owner that say it, and are changed by the owner alone": kept,
        "logs that could not be read or written, and may say it": unread,
    }
    return ErasedLines(
        tuple(changed), tuple(f"{what}: {', '.join(names)}" for what, names in left.items() if names)
    )


def _struck(path: Path, forms: set[str], trust: Trust) -> bool:
    """Whether the log said one of the texts; a log that does not is never opened for writing."""
    text = edits.read(path)
    if text is None or _without(text, forms, trust) == text:
        return False
    return edits.update(path, lambda old: _without(old, forms, trust))


def _without(text: str | None, forms: set[str], trust: Trust) -> str | None:
    if text is None:
        return None
    lines = text.splitlines(keepends=True)
    kept = [line for line in lines if normal_form(_LEAD.sub("", line)) not in forms]
    if len(kept) < len(lines) and trust != "owner" and trust_of_note(split_lines(text)) == "owner":
        raise _NotTheirs
    return "".join(kept)
