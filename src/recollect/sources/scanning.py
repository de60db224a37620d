"""Listing the files of one tree by their stat alone: none is opened, so ten thousand take a moment.

Links are followed when they stay inside the tree, and after everything else, so that a file found under its own
name is not listed again under a link's. Whatever is left out for a reason a person may want to know is a problem.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from contextlib import suppress
from pathlib import Path

from recollect.records import FoundFile, Problem
from recollect.sources.trees import Tree, is_citable


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
