"""Listing the files of one tree by their stat alone: none is opened, so ten thousand take a moment.

Links are followed when they stay inside the tree, and after everything else, so that a file found under its own
name is not listed again under a link's. Whatever is left out for a reason a person may want to know is a problem.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memoriter.records import FoundFile, Problem

_IN_WORKSPACE = r"(?:MEMORY|memory)\.md|memory/(?:(?!\.)[^/]+/)*(?!\.)[^/]+\.[mM][dD]"


@dataclass(frozen=True, slots=True)
class Scan:
    """What a workspace holds at one moment, sorted by path."""

    files: tuple[FoundFile, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder, and which files below it are part of the memory."""

    real: str  #: the folder, resolved; nothing outside it is read
    shown: str  #: what stands before a relative path when it is cited: "", "notes/" or "/home/me/notes/"
    wanted: re.Pattern[str]  #: matches the relative paths of the memory's files
    starts: tuple[str, ...]  #: where a scan begins, relative; "" is the folder itself

    def wants(self, relative: str) -> bool:
        return self.wanted.fullmatch(relative) is not None

    def holds(self, real: str) -> bool:
        """Whether a resolved path lies below the folder."""
        return real.startswith(self.real.rstrip(os.sep) + os.sep)

    def relative(self, real: str) -> str:
        return real[len(self.real.rstrip(os.sep)) + 1 :].replace(os.sep, "/")

    def may_lead_to(self, real: str, link: str) -> bool:
        """Whether a link may stand for this file: inside the folder, not hidden, and of the kind it claims."""
        relative = self.relative(real)
        hidden = any(part.startswith(".") for part in relative.split("/"))
        return self.holds(real) and not hidden and Path(real).suffix.lower() == Path(link).suffix.lower()


def trees_of(root: Path, extra_paths: Iterable[Path], patterns: Sequence[str]) -> list[Tree]:
    """The workspace's own tree and one for each extra path, a file or a folder; missing ones are left out."""
    home = os.path.realpath(root)
    trees = [Tree(home, "", re.compile(_IN_WORKSPACE), ("MEMORY.md", "memory.md", "memory"))]
    for extra in extra_paths:
        path = absolute(root, extra)
        real = os.path.realpath(path)
        if Path(real).is_dir():
            shown = _shown(str(root.absolute()), path) or _shown(home, real) or _folder(path)
            trees.append(Tree(real, shown.removeprefix("./"), _any_of(patterns), ("",)))
        elif Path(real).exists():
            folder, name = os.path.split(real)
            shown = _shown(home, folder) or _folder(folder)
            trees.append(Tree(folder, shown.removeprefix("./"), re.compile(re.escape(name)), (name,)))
    return trees


def absolute(root: Path, extra: Path) -> str:
    """Where an extra path lies: "~" is the owner's home, and what is relative starts from the workspace."""
    return os.path.normpath(root.absolute() / extra.expanduser())


def is_citable(path: str) -> bool:
    """Whether a path can stand in a line of text: real characters, and none that breaks the line."""
    return path.isprintable() or not any(
        unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in path
    )


def _shown(home: str, folder: str) -> str | None:
    """What is written before the files of a folder inside the workspace; "./" for the workspace itself."""
    inside = (folder + os.sep).startswith(home.rstrip(os.sep) + os.sep)
    return _folder(os.path.relpath(folder, home)) if inside else None


def _folder(path: str) -> str:
    return path.replace(os.sep, "/").rstrip("/") + "/"


def _any_of(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{_pattern(pattern)})" for pattern in patterns), re.IGNORECASE)


def _pattern(pattern: str) -> str:
    """A glob as a regular expression: ``**/`` for any folders, ``*`` and ``?`` within a name, never a leading dot."""
    *folders, name = pattern.removeprefix("./").split("/")
    parts = [r"(?:(?!\.)[^/]+/)*" if folder == "**" else _segment(folder) + "/" for folder in folders]
    return "".join(parts) + (r"(?:(?!\.)[^/]+/)*(?!\.)[^/]+" if name == "**" else _segment(name))


def _segment(glob: str) -> str:
    wild = re.escape(glob).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
    return wild if glob.startswith(".") else r"(?!\.)" + wild


class Walk:
    """One pass over a tree; its findings are in ``files`` and ``problems``."""

    def __init__(self, tree: Tree) -> None:
        self.files: list[FoundFile] = []
        self.problems: list[Problem] = []
        self._tree = tree
        self._links: deque[tuple[str, str]] = deque()
        self._seen: set[str] = set()  #: resolved paths of files and folders
        self._started: set[tuple[int, int]] = set()  #: device and inode of the starts
        for start in tree.starts:
            self._start(start)
        while self._links:
            self._follow(*self._links.popleft())

    def _start(self, path: str) -> None:
        real = os.path.join(self._tree.real, path) if path else self._tree.real  # noqa: PTH118
        try:
            found = os.lstat(real)
        except OSError:
            return
        # On a file system that ignores case, MEMORY.md and memory.md are one file.
        if (found.st_dev, found.st_ino) in self._started:
            return
        self._started.add((found.st_dev, found.st_ino))
        if stat.S_ISLNK(found.st_mode):
            self._links.append((path, real))
        elif stat.S_ISDIR(found.st_mode):
            self._folder(path, real)
        elif stat.S_ISREG(found.st_mode):
            self._file(path, real, found)
        else:
            self._special(path)

    def _folder(self, path: str, real: str) -> None:
        waiting = [(path, real)]
        while waiting:
            path, real = waiting.pop()
            if real not in self._seen:
                self._seen.add(real)
                waiting += self._entries(path, real)

    def _entries(self, path: str, real: str) -> list[tuple[str, str]]:
        """List a folder's files and give back the folders in it."""
        folders = []
        prefix = f"{path}/" if path else ""
        try:
            with os.scandir(real) as entries:
                for entry in entries:
                    if entry.name[0] == ".":
                        continue
                    below = prefix + entry.name
                    if entry.is_symlink():
                        self._links.append((below, entry.path))
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append((below, entry.path))
                    elif not entry.is_file(follow_symlinks=False):
                        self._special(below)
                    elif self._tree.wants(below):
                        self._listed(below, entry)
        except FileNotFoundError:
            pass  # removed meanwhile: the same as never there
        except OSError as error:
            self._problem(path, f"The folder cannot be listed: {(error.strerror or str(error)).lower()}.")
        return folders

    def _listed(self, path: str, entry: os.DirEntry[str]) -> None:
        with suppress(FileNotFoundError):
            self._file(path, entry.path, entry.stat(follow_symlinks=False))

    def _file(self, path: str, real: str, found: os.stat_result) -> None:
        if not is_citable(path):
            self._problem(path, "The name cannot be cited: it is not valid UTF-8, or it breaks the line.")
        elif real not in self._seen:
            self._seen.add(real)
            shown = self._tree.shown + path
            self.files.append(FoundFile(shown, "memory", Path(real), found.st_mtime_ns, found.st_size))

    def _follow(self, path: str, link: str) -> None:
        """Go where a link leads, if that is inside the tree and does not lead back to where it stands."""
        try:
            real = os.path.realpath(link)
            found = os.stat(real)  # noqa: PTH116
        except OSError:
            if self._tree.wants(path):
                self._problem(path, "A symbolic link that leads nowhere; not followed.")
            return
        is_folder = stat.S_ISDIR(found.st_mode)
        if not is_folder and not self._tree.wants(path):
            return
        if is_folder and _stands_in(link, real):
            self._problem(path, "A symbolic link that leads back to a folder it lies in; not followed.")
        elif not self._tree.holds(real):
            self._problem(path, "A symbolic link that leads out of the workspace; not followed.")
        elif is_folder:
            self._folder(path, real)
        elif not stat.S_ISREG(found.st_mode):
            self._special(path)
        elif self._tree.may_lead_to(real, path):
            self._file(path, real, found)
        else:
            self._problem(path, "A symbolic link to a hidden file or one of another kind; not followed.")

    def _special(self, path: str) -> None:
        self._problem(path, "It is a pipe, socket or device, not a file; left out.")

    def _problem(self, path: str, reason: str) -> None:
        shown = os.fsencode(self._tree.shown + path).decode("utf-8", "backslashreplace")
        self.problems.append(Problem("".join(map(_visible, shown)), reason))


def _stands_in(link: str, folder: str) -> bool:
    return link.startswith(folder.rstrip(os.sep) + os.sep)


def _visible(character: str) -> str:
    return character if is_citable(character) else ascii(character)[1:-1]
