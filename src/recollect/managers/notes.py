"""The notes and transcripts themselves, as a person looks through them: which there are, how one was cut into chunks,
and on which line of which conversation something was said.

Files are listed from the disk, so that every engine shows the same; what the index knows of them is added where there
is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from recollect.errors import NotFound, RecollectError
from recollect.records import FoundFile, NoteChunk, NoteFile
from recollect.store.digests import normal_form
from recollect.text import estimate_tokens

if TYPE_CHECKING:
    from recollect.sources import Transcripts, Workspace
    from recollect.store import Index

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
        index = self._index()
        known = index.holdings() if index else {}
        return [_listed(one, *known.get(one.path, (0, "owner"))) for one in found[:limit]], len(found)

    def file(self, path: str) -> NoteFile:
        """One file that can be read under this path."""
        found = next((one for one in self._every() if one.path == path), None)
        if found is None:
            raise NotFound(f"{path[:200]!r} is no note and no transcript.")
        index = self._index()
        return _listed(found, *(index.holdings(path).get(path, (0, "owner")) if index else (0, "owner")))

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
        except (RecollectError, OSError):  # it went away, or cannot be read: the session is all that is known
            return None

    def _every(self) -> Iterable[FoundFile]:
        yield from self._workspace.scan().files
        yield from self._transcripts()

    def _transcripts(self) -> tuple[FoundFile, ...]:
        return self._sessions.scan().files if self._sessions else ()

    def _transcript(self, session: str) -> FoundFile | None:
        """By the file's name, or by what its first lines say."""
        files = sorted(self._transcripts(), key=lambda one: -one.mtime_ns)
        named = next((one for one in files if one.absolute.stem == session), None)
        if named or self._sessions is None:
            return named
        return next((one for one in files[:ASKED] if self._is_of(one, session)), None)

    def _is_of(self, found: FoundFile, session: str) -> bool:
        assert self._sessions is not None
        try:
            return self._sessions.session(found) == session
        except (RecollectError, OSError):
            return False


def _listed(found: FoundFile, chunks: int, trust: object) -> NoteFile:
    return NoteFile(found.path, found.source, found.size, found.mtime_ns / 1e9, chunks, trust)  # type: ignore[arg-type]
