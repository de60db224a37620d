"""List the files of a folder tree by their stat. Files are not opened, so a scan is fast.

Symbolic links are followed if they stay inside the tree. They are followed last, so that a file is listed under its
own name and not under the name of a link. Files that are left out for a reason that matters are reported as problems.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from memoriter.errors import reason_of
from memoriter.files.globs import PathGlobs
from memoriter.files.shared import changed_at
from memoriter.records import FoundFile, Problem

#: Folders of programs. Markdown files in them are not notes. Hidden folders are left out too.
SKIPPED_FOLDERS = ("node_modules", "site-packages", "venv", "__pycache__")
#: A path of folders, of which none is hidden or skipped.
_FOLDERS = rf"(?:(?!\.|(?:{'|'.join(SKIPPED_FOLDERS)})/)[^/]+/)*"
#: Endings of notes.
NOTE_SUFFIXES = (".md", ".markdown", ".mdx", ".txt")
NOTE_PATTERNS = tuple(f"**/*{suffix}" for suffix in NOTE_SUFFIXES)


@dataclass(frozen=True, slots=True)
class Scan:
    """The files of a workspace at one moment, sorted by path."""

    files: tuple[FoundFile, ...]
    problems: tuple[Problem, ...]
    #: Folders that were listed, with the time of their last change before that. -1: the folder did not exist.
    folders: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder and the pattern of the files below it that belong to the memory."""

    #: The resolved folder. Nothing outside of it is read.
    real: str
    #: The prefix of relative paths in citations: "", "notes/" or "/path/to/notes/".
    shown: str
    #: Matches the relative paths of the files that belong to the memory.
    pattern: re.Pattern[str] | PathGlobs
    #: Relative paths at which a scan starts. "" is the folder itself.
    starts: tuple[str, ...]

    def matches(self, relative: str) -> bool:
        """Return whether a relative path belongs to the memory."""
        if isinstance(self.pattern, PathGlobs):
            # An absolute path starts with an empty name, or on Windows with a drive.
            *folders, name = relative.split("/")
            are_usual = name and all(folder and folder not in SKIPPED_FOLDERS for folder in folders)
            return bool(are_usual) and not os.path.isabs(relative) and self.pattern.matches(relative)  # noqa: PTH117
        return self.pattern.fullmatch(relative) is not None

    def contains(self, path: str) -> bool:
        """Return whether a path, as a citation shows it, belongs to this tree."""
        return path.startswith(self.shown) and self.matches(path[len(self.shown) :])

    def holds(self, real: str) -> bool:
        """Return whether a resolved path is below the folder."""
        return real.startswith(self.real.rstrip(os.sep) + os.sep)

    def relative(self, real: str) -> str:
        """Return the path relative to the folder."""
        return real[len(self.real.rstrip(os.sep)) + 1 :].replace(os.sep, "/")

    def may_lead_to(self, real: str, link: str) -> bool:
        """Return whether a link may point to this file: below the folder, not hidden, with the same suffix."""
        relative = self.relative(real)
        hidden = any(part.startswith(".") for part in relative.split("/"))
        return self.holds(real) and not hidden and Path(real).suffix.lower() == Path(link).suffix.lower()


def trees_of(
    root: Path,
    extra_paths: Iterable[Path],
    patterns: Sequence[str],
    own_patterns: Mapping[Path, str] = MappingProxyType({}),
    folder: str = "memory",
    suffixes: Sequence[str] = NOTE_SUFFIXES,
) -> list[Tree]:
    """Return the tree of the workspace and one for each extra path. Missing paths are left out."""
    own = _own_tree(os.path.realpath(root), folder, suffixes)
    extra = (
        tree_of(root, path, [own_patterns[path]] if path in own_patterns else patterns)
        for path in extra_paths
    )
    return [own, *(tree for tree in extra if tree)]


def _own_tree(home: str, folder: str, suffixes: Sequence[str]) -> Tree:
    """Return the tree of `MEMORY.md` and of the folder with the notes. The folder "." is the workspace itself."""
    note = rf"(?!\.)[^/]+\.(?i:{'|'.join(suffix[1:] for suffix in suffixes)})"
    if folder == ".":
        return Tree(home, "", re.compile(_FOLDERS + note), ("",))
    pattern = rf"(?:MEMORY|memory)\.md|{re.escape(folder)}/{_FOLDERS}{note}"
    return Tree(home, "", re.compile(pattern), ("MEMORY.md", "memory.md", folder))


def tree_of(root: Path, extra: Path, patterns: Sequence[str]) -> Tree | None:
    """Return the tree of one extra path, or None if the path does not exist."""
    home, path = os.path.realpath(root), absolute(root, extra)
    real = os.path.realpath(path)
    if Path(real).is_dir():
        shown = _citation_prefix(str(root.absolute()), path) or _citation_prefix(home, real) or _folder(path)
        return Tree(real, shown.removeprefix("./"), PathGlobs(tuple(patterns)), ("",))
    if Path(real).exists():
        folder, name = os.path.split(real)
        shown = _citation_prefix(home, folder) or _folder(folder)
        return Tree(folder, shown.removeprefix("./"), re.compile(re.escape(name)), (name,))
    return None


def absolute(root: Path, extra: Path) -> str:
    """Return an extra path as an absolute path. Relative paths start from the workspace."""
    return os.path.normpath(root.absolute() / extra.expanduser())


def is_citable(path: str) -> bool:
    """Return whether a path can be written on one line: no control characters, surrogates or line separators."""
    return path.isprintable() or not any(
        unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in path
    )


def _citation_prefix(home: str, folder: str) -> str | None:
    """Return the prefix for files of a folder inside the workspace; "./" for the workspace itself."""
    inside = (folder + os.sep).startswith(home.rstrip(os.sep) + os.sep)
    return _folder(os.path.relpath(folder, home)) if inside else None


def _folder(path: str) -> str:
    return path.replace(os.sep, "/").rstrip("/") + "/"


class Walk:
    """One pass over a tree, with the results in ``files`` and ``problems``."""

    def __init__(self, tree: Tree) -> None:
        self.files: list[FoundFile] = []
        self.problems: list[Problem] = []
        #: Folders by resolved path, each with the time of its last change before it was listed.
        self.folders = {tree.real: changed_at(tree.real)}
        self._tree = tree
        self._links: deque[tuple[str, str]] = deque()
        #: Resolved paths of files and folders.
        self._seen: set[str] = set()
        #: Device and inode of the starting points.
        self._started: set[tuple[int, int]] = set()
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
        # On a case-insensitive file system, MEMORY.md and memory.md are the same file.
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
        """List the files of a folder and return the folders in it."""
        folders = []
        prefix = f"{path}/" if path else ""
        self.folders[real] = changed_at(real)
        try:
            with os.scandir(real) as entries:
                for entry in entries:
                    if entry.name[0] == "." or entry.name in SKIPPED_FOLDERS:
                        continue
                    below = prefix + entry.name
                    if entry.is_symlink():
                        self._links.append((below, entry.path))
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append((below, entry.path))
                    elif not entry.is_file(follow_symlinks=False):
                        self._special(below)
                    elif self._tree.matches(below):
                        with suppress(FileNotFoundError):
                            self._file(below, entry.path, entry.stat(follow_symlinks=False))
        except FileNotFoundError:
            pass  # removed during the scan
        except OSError as error:
            self._problem(path, f"The folder cannot be listed: {reason_of(error).lower()}.")
        return folders

    def _file(self, path: str, real: str, found: os.stat_result) -> None:
        if not is_citable(path):
            self._problem(path, "The name cannot be cited: it is not valid UTF-8 or contains a line break.")
        elif real not in self._seen:
            self._seen.add(real)
            shown = self._tree.shown + path
            self.files.append(FoundFile(shown, "memory", Path(real), found.st_mtime_ns, found.st_size))

    def _follow(self, path: str, link: str) -> None:
        """Follow a link if it stays inside the tree and does not lead back to a folder above it."""
        try:
            real = os.path.realpath(link)
            found = os.stat(real)  # noqa: PTH116
        except OSError:
            if self._tree.matches(path):
                self._problem(path, "Broken symbolic link. It was not followed.")
            return
        is_folder = stat.S_ISDIR(found.st_mode)
        if not is_folder and not self._tree.matches(path):
            return
        if is_folder and link.startswith(real.rstrip(os.sep) + os.sep):
            self._problem(path, "The symbolic link leads back to a folder above it. It was not followed.")
        elif not self._tree.holds(real):
            self._problem(path, "The symbolic link leads out of the workspace. It was not followed.")
        elif is_folder:
            self._folder(path, real)
        elif not stat.S_ISREG(found.st_mode):
            self._special(path)
        elif self._tree.may_lead_to(real, path):
            self._file(path, real, found)
        else:
            self._problem(
                path, "The symbolic link leads to a hidden file or another file type. It was not followed."
            )

    def _special(self, path: str) -> None:
        self._problem(path, "This is a pipe, socket or device, not a file. It was left out.")

    def _problem(self, path: str, reason: str) -> None:
        shown = os.fsencode(self._tree.shown + path).decode("utf-8", "backslashreplace")
        self.problems.append(Problem("".join(map(_visible, shown)), reason))


def _visible(character: str) -> str:
    return character if is_citable(character) else ascii(character)[1:-1]
