"""A folder of the workspace as an agent works in it by itself: it sees every note, and changes only its own.

A note is the agent's own when its front matter says ``trust: agent``, which every note that is made here gets; the
agent works on the text below and never sees those lines. All writing goes through `files`, in folders that are held
open (`beneath`). Every file is Markdown: a name without ``.md`` gets it, for only notes are found again.
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

from memoriter.errors import EditConflict, LockTimeout, NotFound, PathRefused, WriteError
from memoriter.files import edits
from memoriter.files.durable import make_folder, sync_folder
from memoriter.files.edits import rename_without_replacing
from memoriter.files.locks import check_mounted, file_lock
from memoriter.files.paths import open_folder, path_parts
from memoriter.notes.chunking import trust_of_note
from memoriter.notes.notebook import front_matter
from memoriter.text.encoding import encodable
from memoriter.text.measure import split_lines
from memoriter.text.redaction import redact, without_private

AGENT_FRONT_MATTER = front_matter(trust="agent") + "\n"
"""What stands above the text of every note that an agent makes."""

_FRONT = re.compile(r"\A---[ \t]*\r?\n.*?\n---[ \t]*\r?\n(?:\r?\n)?", re.DOTALL)


def split_front_matter(text: str) -> tuple[str, str]:
    """The lines that say that a note is the agent's, and its text; of others' notes the text alone."""
    found = _FRONT.match(text)
    if found is None or trust_of_note(split_lines(text)) != "agent":
        return "", text
    return found[0], text[found.end() :]


def is_all_agents(path: Path) -> bool:
    """Whether a note, or every file below a folder, is the agent's own."""
    if stat.S_ISREG(file_mode(path)):
        return bool(split_front_matter(edits.read(path) or "")[0])
    if not stat.S_ISDIR(file_mode(path)):
        return False
    walk = list(os.walk(path))
    if any(stat.S_ISLNK(file_mode(Path(folder, name))) for folder, names, _ in walk for name in names):
        return False
    return all(is_all_agents(Path(folder, name)) for folder, _, names in walk for name in names)


def file_mode(path: Path) -> int:
    """What stands at a path, links not followed; 0 for nothing."""
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0


_counter = itertools.count()


@dataclass(frozen=True, slots=True)
class FolderItem:
    """A note or a folder, as a list shows it."""

    path: str  #: from the shelf down
    size: int
    is_folder: bool


class AgentFolder:
    """The notes below one folder of a workspace; ``shown`` is what the agent calls that folder."""

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

    # ---- looking ---------------------------------------------------------------------------------------------

    def is_folder(self, path: str) -> bool:
        """Whether the path names a folder; that of the shelf itself always does."""
        parts = path_parts(path)
        try:
            with self._pinned(parts[:-1]) as folder:
                return not parts or stat.S_ISDIR(file_mode(folder / parts[-1]))
        except NotFound:
            return not parts

    def listed(self, path: str = "", *, levels: int = 2) -> list[FolderItem]:
        """The notes and folders below a folder, by name, a folder before what it holds."""
        try:
            with self._pinned(path_parts(path)) as folder:
                return list(_listed(folder, "", levels))
        except NotFound:
            if path_parts(path):
                raise
            return []  # nothing was ever written

    def read(self, path: str) -> str:
        """A note's text; of the agent's own without the lines that say so."""
        with self._note(path) as note:
            text = edits.read(note)
            if text is None:
                raise self._missing(path)
            return split_front_matter(text)[1]

    # ---- changing --------------------------------------------------------------------------------------------

    @staticmethod
    def kept(text: str) -> tuple[str, str | None]:
        """A text as it may be kept, to the letter but for secrets and private spans; a word on what was left out."""
        whole = encodable(text).replace("\x00", "")
        open_text = without_private(whole)
        clean = redact(open_text)
        left = [
            *(["private spans"] if open_text != whole else []),
            *(["secrets"] if clean != open_text else []),
        ]
        return clean, f"Left out: {' and '.join(left)}." if left else None

    def create(self, path: str, text: str) -> tuple[str, str | None]:
        """Make a new note: its path, and a word on what was left out."""
        body, left_out = self.kept(text)

        def change(old: str | None) -> str:
            if old is not None:
                raise EditConflict(f"File {self._named(path)} already exists")
            return AGENT_FRONT_MATTER + body

        with self._note(path, make=True) as note:
            edits.update(note, change)
        return self._named(path), left_out

    def edit(self, path: str, change: Callable[[str], str]) -> str:
        """Change one of the agent's own notes by a function of its text; the new text, as it may be kept."""
        body = ""

        def whole(old: str | None) -> str:
            nonlocal body
            if old is None:
                raise self._missing(path)
            head, text = split_front_matter(old)
            if not head:
                raise self._not_own(path)
            body, _ = self.kept(change(text))  # the whole: a secret may have come in by pieces
            return head + body

        with self._note(path) as note:
            edits.update(note, whole)
        return body

    def delete(self, path: str) -> None:
        """Delete one of the agent's own notes, or a folder that holds nothing else."""
        parts = path_parts(path)
        if not parts:
            raise PathRefused(f"Cannot delete the {self.shown} directory itself")
        with self._pinned(parts[:-1]) as folder, self._alone(folder):
            target = self._own(folder, parts, path)
            aside = target.with_name(f".{target.name[:40]}.{os.getpid()}-{next(_counter)}.tmp")
            _move(target, aside)
            if not is_all_agents(aside):  # somebody else's words came in between looking and taking
                _move(aside, target)
                raise self._not_own(path)
            if aside.is_dir():
                shutil.rmtree(aside)
            else:
                aside.unlink()
            sync_folder(folder)

    def rename(self, old: str, new: str) -> str:
        """Give one of the agent's own notes, or a folder of them, another name that is free; the new path."""
        source, target = path_parts(old), path_parts(new)
        if not source or not target:
            raise PathRefused(f"Cannot rename the {self.shown} directory itself")
        if target[: len(source)] == source:
            raise PathRefused(f"The destination {self.shown}/{new} lies in what is renamed, or is the same")
        with self._pinned(source[:-1]) as one:
            self._own(one, source, old)  # before a folder is made for it
            with self._pinned(target[:-1], make=True) as other, self._alone(one, other):
                path = self._own(one, source, old)
                new_path = other / (target[-1] if path.is_dir() else _note_name(target[-1]))
                if file_mode(new_path):
                    raise EditConflict(f"The destination {self.shown}/{new} already exists")
                _move(path, new_path)
                sync_folder(one)
                sync_folder(other)
                return "/".join([self.shown, *target[:-1], new_path.name])

    def clear(self) -> None:
        """Delete every note of the agent's own; everybody else's stay."""
        for one in self.listed(levels=16):
            if not one.is_folder:
                with contextlib.suppress(WriteError, NotFound):
                    self.delete(one.path)

    # ---- places ----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _pinned(self, parts: Sequence[str], *, make: bool = False) -> Iterator[Path]:
        where = "/".join([self.shown, *parts])
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
            raise WriteError(f"{where} cannot be used: {(error.strerror or str(error)).lower()}.") from error

    @contextlib.contextmanager
    def _note(self, path: str, *, make: bool = False) -> Iterator[Path]:
        parts = path_parts(path)
        if not parts:
            raise WriteError(f"The path {self.shown} is not a file.")
        try:
            with self._pinned(parts[:-1], make=make) as folder:
                if stat.S_ISDIR(file_mode(folder / parts[-1])):
                    raise WriteError(f"The path {self.shown}/{path} is not a file.")
                yield folder / _note_name(parts[-1])
        except NotFound as error:
            raise self._missing(path) from error

    def _own(self, folder: Path, parts: Sequence[str], path: str) -> Path:
        """The note or folder, when all of it is the agent's own."""
        target = folder / parts[-1]
        if not stat.S_ISDIR(file_mode(target)):
            target = folder / _note_name(parts[-1])
        if not file_mode(target):
            raise self._missing(path)
        if not is_all_agents(target):
            raise self._not_own(path)
        return target

    @contextlib.contextmanager
    def _alone(self, *folders: Path) -> Iterator[None]:
        """Writers of ours take turns; two folders are always taken in the same order."""
        real = {os.path.realpath(folder): folder for folder in folders}
        with contextlib.ExitStack() as stack:
            try:
                for name in sorted(real):
                    stack.enter_context(file_lock(real[name]))
            except LockTimeout as error:
                raise WriteError(str(error)) from error
            yield

    def _named(self, path: str) -> str:
        *folders, name = path_parts(path)
        return "/".join([self.shown, *folders, _note_name(name)])

    def _missing(self, path: str) -> NotFound:
        return NotFound(f"The path {self.shown}/{path} does not exist. Please provide a valid path.")

    def _not_own(self, path: str) -> WriteError:
        return WriteError(
            f"{self.shown}/{path} holds notes of the owner: they can be viewed, and are changed by the owner alone."
        )


def _note_name(name: str) -> str:
    return name if name.lower().endswith(".md") else f"{name}.md"


def _move(source: Path, target: Path) -> None:
    """Rename, never onto something."""
    if source.is_dir():
        source.rename(target)
        return
    rename_without_replacing(source, target)
    source.unlink(missing_ok=True)  # where a link had to do


def _listed(folder: Path, before: str, levels: int) -> Iterator[FolderItem]:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        path = f"{before}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield FolderItem(path, entry.stat(follow_symlinks=False).st_size, True)
            if levels > 1:
                yield from _listed(folder / entry.name, f"{path}/", levels - 1)
        elif entry.is_file(follow_symlinks=False) and entry.name.lower().endswith(".md"):
            yield FolderItem(path, entry.stat(follow_symlinks=False).st_size, False)
