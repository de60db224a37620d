"""A folder of the workspace in which an agent reads every note and changes only its own.

A note belongs to the agent if its front matter says ``trust: agent``. Every note created here gets this front matter,
and the agent works on the text below it. Every file is Markdown, because only notes can be found again. The suffix
``.md`` is added to names without it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memoriter.errors import EditConflict, LockTimeout, NotFound, PathRefused, WriteError, reason_of
from memoriter.files import edits, shared
from memoriter.files.durable import make_folder
from memoriter.files.locks import check_mounted, file_lock
from memoriter.files.paths import open_folder, path_parts
from memoriter.files.platform import rename_without_replacing, sync_path
from memoriter.memory import Memory, parts_of
from memoriter.notes.chunking import trust_of_note
from memoriter.notes.notebook import clean_text, front_matter
from memoriter.records import AGENTS
from memoriter.text.tokens import split_lines

AGENT_FRONT_MATTER = front_matter(trust="agent") + "\n"
"""The front matter of every note that an agent creates."""

_FRONT = re.compile(r"\A---[ \t]*\r?\n.*?\n---[ \t]*\r?\n(?:\r?\n)?", re.DOTALL)


def split_front_matter(text: str) -> tuple[str, str]:
    """Split an agent's note into front matter and text. For other notes, the first part is empty."""
    found = _FRONT.match(text)
    if found is None or trust_of_note(split_lines(text)) not in AGENTS:
        return "", text
    return found[0], text[found.end() :]


def is_all_agents(path: Path) -> bool:
    """Return whether a note, or every file below a folder, belongs to the agent."""
    if stat.S_ISREG(file_mode(path)):
        return bool(split_front_matter(edits.read(path) or "")[0])
    if not stat.S_ISDIR(file_mode(path)):
        return False
    walk = list(os.walk(path))
    if any(stat.S_ISLNK(file_mode(Path(folder, name))) for folder, names, _ in walk for name in names):
        return False
    return all(is_all_agents(Path(folder, name)) for folder, _, names in walk for name in names)


def file_mode(path: Path) -> int:
    """Return the mode of a file or folder without following links, or 0 if it does not exist."""
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0


_counter = itertools.count()


@dataclass(frozen=True, slots=True)
class FolderItem:
    """A note or folder in a listing."""

    #: Relative to the listed folder.
    path: str
    size: int
    is_folder: bool


class AgentFolder:
    """The notes below one folder of a workspace. ``shown`` is the name of the folder in messages to the agent."""

    def __init__(
        self,
        workspace: Path,
        folder: str = "memory",
        *,
        shown: str = "",
        was_there: Callable[[], bool] = lambda: False,
    ) -> None:
        self.root = workspace
        self._was_there = was_there
        self.base = path_parts(folder)
        self.shown = shown or folder

    # ---- reading ---------------------------------------------------------------------------------------------

    @classmethod
    def of(cls, memory: Memory, folder: str | None = None, *, shown: str = "") -> AgentFolder:
        """Return a folder of the workspace. Without a name it is the one that notes are written to."""
        settings, parts = memory.settings, parts_of(memory)
        name = folder or settings.files.folder
        name = "" if name == "." else name
        return cls(settings.workspace, name, shown=shown, was_there=lambda: parts.knows_notes)

    def is_folder(self, path: str) -> bool:
        """Return whether the path is a folder. The empty path always is."""
        parts = path_parts(path)
        try:
            with self._open_folder(parts[:-1]) as folder:
                return not parts or stat.S_ISDIR(file_mode(folder / parts[-1]))
        except NotFound:
            return not parts

    def list_items(self, path: str = "", *, levels: int = 2) -> list[FolderItem]:
        """List the notes and folders below a folder, by name, each folder before its content."""
        try:
            with self._open_folder(path_parts(path)) as folder:
                return list(_list_items(folder, "", levels))
        except NotFound:
            if path_parts(path):
                raise
            return []  # nothing has been written yet

    def read(self, path: str) -> str:
        """Return the text of a note. The front matter of the agent's own notes is left out."""
        with self._note(path) as note:
            text = edits.read(note)
            if text is None:
                raise self._missing(path)
            return split_front_matter(text)[1]

    # ---- writing ---------------------------------------------------------------------------------------------

    clean_text = staticmethod(clean_text)

    def create(self, path: str, text: str) -> tuple[str, str | None]:
        """Create a note. Return its path and a sentence about what was removed, or None."""
        body, left_out = clean_text(text)

        def change(old: str | None) -> str:
            if old is not None:
                raise EditConflict(f"File {self._shown_path(path)} already exists")
            return AGENT_FRONT_MATTER + body

        with self._note(path, make=True) as note:
            edits.update(note, change)
        return self._shown_path(path), left_out

    def edit(self, path: str, change: Callable[[str], str]) -> str:
        """Change one of the agent's notes by a function of its text. Return the new text, cleaned."""
        body = ""

        def whole(old: str | None) -> str:
            nonlocal body
            if old is None:
                raise self._missing(path)
            head, text = split_front_matter(old)
            if not head:
                raise self._not_own(path)
            body, _ = clean_text(change(text))  # clean the whole text: a secret may have been added in pieces
            return head + body

        with self._note(path) as note:
            edits.update(note, whole)
        return body

    def delete(self, path: str) -> None:
        """Delete one of the agent's notes, or a folder that contains only such notes."""
        parts = path_parts(path)
        if not parts:
            raise PathRefused(f"Cannot delete the {self.shown} directory itself")
        with self._folder_of(path) as folder, self._changing(parts), self._locked(folder):
            target = self._own(folder, parts, path)
            aside = target.with_name(f".{target.name[:40]}.{os.getpid()}-{next(_counter)}.tmp")
            _move(target, aside)
            if not is_all_agents(aside):  # another note was added after the check
                _move(aside, target)
                raise self._not_own(path)
            if aside.is_dir():
                shutil.rmtree(aside)
            else:
                aside.unlink()
            sync_path(folder)

    def rename(self, old: str, new: str) -> str:
        """Rename one of the agent's notes, or a folder of them, and return the new path. The new name must be free."""
        source, target = path_parts(old), path_parts(new)
        if not source or not target:
            raise PathRefused(f"Cannot rename the {self.shown} directory itself")
        if target[: len(source)] == source:
            raise PathRefused(
                f"The destination {self.shown}/{new} is inside the renamed folder, or the same path"
            )
        with self._folder_of(old) as one:
            self._own(one, source, old)  # check before creating a folder for it
            with (
                self._open_folder(target[:-1], make=True) as other,
                self._changing(source, target),
                self._locked(one, other),
            ):
                path = self._own(one, source, old)
                new_path = other / (target[-1] if path.is_dir() else _note_name(target[-1]))
                if file_mode(new_path):
                    raise EditConflict(f"The destination {self.shown}/{new} already exists")
                _move(path, new_path)
                sync_path(one)
                sync_path(other)
                return "/".join([self.shown, *target[:-1], new_path.name])

    def clear(self) -> None:
        """Delete all notes of the agent. Other notes stay."""
        for item in self.list_items(levels=16):
            if not item.is_folder:
                with contextlib.suppress(WriteError, NotFound):
                    self.delete(item.path)

    # ---- paths -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _open_folder(self, parts: Sequence[str], *, make: bool = False) -> Iterator[Path]:
        where = "/".join([self.shown, *parts])
        shared.refresh(self.root)
        try:
            if make:
                check_mounted(self.root, self._was_there)
                make_folder(self.root)
            with open_folder(self.root, (*self.base, *parts), make=make) as folder:
                try:
                    yield folder
                except WriteError as error:
                    raise type(error)(str(error).replace(str(folder), where)) from error
        except OSError as error:
            raise WriteError(f"{where} cannot be used: {reason_of(error).lower()}.") from error

    @contextlib.contextmanager
    def _note(self, path: str, *, make: bool = False) -> Iterator[Path]:
        parts = path_parts(path)
        if not parts:
            raise WriteError(f"The path {self.shown} is not a file.")
        with self._folder_of(path, make=make) as folder:
            if stat.S_ISDIR(file_mode(folder / parts[-1])):
                raise WriteError(f"The path {self.shown}/{path} is not a file.")
            yield folder / _note_name(parts[-1])

    @contextlib.contextmanager
    def _folder_of(self, path: str, *, make: bool = False) -> Iterator[Path]:
        """Open the folder of a note. If anything is missing, the error names the whole path."""
        try:
            with self._open_folder(path_parts(path)[:-1], make=make) as folder:
                yield folder
        except NotFound as error:
            raise self._missing(path) from error

    def _own(self, folder: Path, parts: Sequence[str], path: str) -> Path:
        """Return the note or folder if all of it belongs to the agent."""
        target = folder / parts[-1]
        if not stat.S_ISDIR(file_mode(target)):
            target = folder / _note_name(parts[-1])
        if not file_mode(target):
            raise self._missing(path)
        if not is_all_agents(target):
            raise self._not_own(path)
        return target

    def _changing(self, *paths: Sequence[str]) -> contextlib.AbstractContextManager[None]:
        """Share the changes of notes or folders. A note may be named without its suffix."""
        folders = [(self.root.joinpath(*self.base, *parts[:-1]), parts[-1]) for parts in paths]
        return shared.changing(
            *(folder / name for folder, last in folders for name in (last, _note_name(last)))
        )

    @contextlib.contextmanager
    def _locked(self, *folders: Path) -> Iterator[None]:
        """Lock folders, always in the same order."""
        real = {os.path.realpath(folder): folder for folder in folders}
        with contextlib.ExitStack() as stack:
            try:
                for name in sorted(real):
                    stack.enter_context(file_lock(real[name]))
            except LockTimeout as error:
                raise WriteError(str(error)) from error
            yield

    def _shown_path(self, path: str) -> str:
        *folders, name = path_parts(path)
        return "/".join([self.shown, *folders, _note_name(name)])

    def _missing(self, path: str) -> NotFound:
        return NotFound(f"The path {self.shown}/{path} does not exist. Please provide a valid path.")

    def _not_own(self, path: str) -> WriteError:
        return WriteError(
            f"{self.shown}/{path} contains notes of the owner. You can view them, but only the owner can change them."
        )


def _note_name(name: str) -> str:
    return name if name.lower().endswith(".md") else f"{name}.md"


def _move(source: Path, target: Path) -> None:
    """Rename a note or folder without replacing anything."""
    if source.is_dir():
        source.rename(target)
        return
    rename_without_replacing(source, target)


def _list_items(folder: Path, before: str, levels: int) -> Iterator[FolderItem]:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        path = f"{before}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield FolderItem(path, entry.stat(follow_symlinks=False).st_size, True)
            if levels > 1:
                yield from _list_items(folder / entry.name, f"{path}/", levels - 1)
        elif entry.is_file(follow_symlinks=False) and entry.name.lower().endswith(".md"):
            yield FolderItem(path, entry.stat(follow_symlinks=False).st_size, False)
