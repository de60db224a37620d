"""Edits of whole notes by their owner: write, move and remove, each guarded by the version that was read.

A version is a digest of the text. If the note has another version now, nothing is changed and `EditConflict` is raised,
so that the words of an editor or of an agent are never overwritten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.errors import EditConflict, NotFound, PathRefused, WriteError
from memoriter.files import edits
from memoriter.files.locks import check_mounted
from memoriter.files.paths import MAX_DEPTH
from memoriter.invisible import invisible
from memoriter.sentences import sentence

if TYPE_CHECKING:
    from memoriter.notes.workspace import Workspace

#: Characters of a note that can be edited as a whole.
MAX_CHARS = 2_000_000


@dataclass(frozen=True, slots=True)
class NoteText:
    """The whole text of a note."""

    path: str
    text: str
    #: None if the note was removed.
    version: str | None


class NoteEditor:
    """Edits the notes of one workspace."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        changed: Callable[[], None] = lambda: None,
        was_there: Callable[[], bool] = lambda: False,
    ) -> None:
        self._workspace = workspace
        self.changed = changed
        self._was_there = was_there

    def text(self, path: str) -> NoteText:
        """Return the whole text of a note and its version. Raises `NotFound` or `PathRefused`."""
        shown, file = self._workspace.place(path)
        text = edits.read(file)
        if text is None:
            raise NotFound(sentence("note.not_found", path=shown))
        return NoteText(shown, text, edits.digest(text))

    def put(self, path: str, text: str, *, version: str | None) -> NoteText:
        """Replace the version of a note that was read, or create the note if ``version`` is None.

        Raises `EditConflict` if the note has another version now.
        """
        shown, file = self._writable(path, new=version is None)
        if len(text) > MAX_CHARS:
            raise WriteError(sentence("note.too_long", limit=MAX_CHARS))

        def change(old: str | None) -> str:
            self._check(shown, old, version)
            return text

        edits.update(file, change)
        self.changed()
        return NoteText(shown, text, edits.digest(text))

    def move(self, path: str, to: str, *, version: str) -> NoteText:
        """Give a note another path. Raises `EditConflict` if the path is taken or the note has another version."""
        shown, file = self._writable(path)
        target, target_file = self._writable(to, new=True)
        text = edits.move(file, target_file, lambda old: self._check(shown, old, version))
        if text is None:
            raise EditConflict(sentence("note.exists", path=target))
        self.changed()
        return NoteText(target, text, version)

    def remove(self, path: str, *, version: str) -> NoteText:
        """Remove a note. The result has its last text, with which `put` restores it."""
        shown, file = self._writable(path)
        text = edits.remove(file, lambda old: self._check(shown, old, version))
        self.changed()
        return NoteText(shown, text, None)

    def _writable(self, path: str, *, new: bool = False) -> tuple[str, Path]:
        check_mounted(self._workspace.root, self._was_there)
        shown, file = self._workspace.place(path)
        if any(part.startswith(".") for part in shown.split("/")):
            raise PathRefused(sentence("note.hidden", path=shown[:200]))
        if new and (invisible(shown) or shown.count("/") >= MAX_DEPTH):
            raise PathRefused(sentence("note.name", path=shown[:200], limit=MAX_DEPTH))
        return shown, file

    def _check(self, path: str, old: str | None, version: str | None) -> None:
        if (None if old is None else edits.digest(old)) == version:
            return
        if version is None:
            raise EditConflict(sentence("note.exists", path=path))
        raise EditConflict(sentence("note.changed" if old is not None else "note.removed", path=path))
