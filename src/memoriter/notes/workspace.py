"""The workspace: a folder of Markdown that people keep, and the only door to its files.

It lists them, reads them whole for the index, and reads a few lines of one for a person or an agent. It never
writes, and nothing outside the workspace and its extra paths can be read through it (``trees`` says what lies
inside, ``opening`` makes it hold while files are swapped).
"""

from __future__ import annotations

import difflib
import hashlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from memoriter.errors import NotFound, PathRefused, SourceError
from memoriter.files.paths import open_inside
from memoriter.files.scan import Scan, Tree, Walk, absolute, is_citable, trees_of
from memoriter.records import Document, Excerpt, FoundFile, Problem
from memoriter.sentences import sentence
from memoriter.text.blocks import without_annotations
from memoriter.text.encoding import decode
from memoriter.text.measure import split_lines

MAX_BYTES = 4 * 1024 * 1024
EXCERPT_LINES = 200  #: what an excerpt holds unless more is asked for
EXCERPT_CHARS = 40_000  #: and what it holds even if its lines are long


class Workspace:
    """The memory files of one folder, and of extra paths that its owner named."""

    def __init__(
        self,
        root: Path,
        *,
        extra_paths: Sequence[Path] = (),
        patterns: Sequence[str] = ("**/*.md",),
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.root = Path(root)
        self.extra_paths = tuple(Path(extra) for extra in extra_paths)
        self.patterns = tuple(patterns)
        self.max_bytes = max_bytes
        self._trees = self._current_trees()

    # ---- listing ----------------------------------------------------------------------------------------------

    def scan(self) -> Scan:
        """List the files by their stat; nothing is opened, and nothing stops the listing."""
        self._trees = self._current_trees()
        walks = [Walk(tree) for tree in self._trees]
        files = {found.path: found for walk in reversed(walks) for found in walk.files}
        left_out = (problem for walk in walks for problem in walk.problems)
        problems = {problem.path: problem for problem in (*left_out, *self._missing())}
        return Scan(
            tuple(files[path] for path in sorted(files)),
            tuple(problems[path] for path in sorted(problems)),
        )

    def find(self, path: str) -> FoundFile | None:
        """The one file under this path, by its stat alone; None where there is none that can be read."""
        try:
            tree, relative = self._located(path)
            real = Path(tree.real, self._resolved(tree, relative))
            status = real.lstat()
        except (PathRefused, OSError, ValueError):
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        return FoundFile(tree.shown + relative, "memory", real, status.st_mtime_ns, status.st_size)

    def _current_trees(self) -> list[Tree]:
        return trees_of(self.root, self.extra_paths, self.patterns)

    def _missing(self) -> list[Problem]:
        paths = [str(self.root.absolute()), *(absolute(self.root, extra) for extra in self.extra_paths)]
        return [Problem(path, "It does not exist.") for path in paths if not Path(path).exists()]

    # ---- reading ----------------------------------------------------------------------------------------------

    def read(self, found: FoundFile) -> Document:
        """Read one listed file; raises `SourceError`, in a sentence, when it cannot be used."""
        for tree in self._trees:
            if tree.holds(str(found.absolute)) and found.path.startswith(tree.shown):
                return self._document(tree, found.path, tree.relative(str(found.absolute)))
        raise PathRefused("It lies outside the workspace and its extra paths.")

    def _document(self, tree: Tree, path: str, relative: str) -> Document:
        with open_inside(tree.real, relative) as descriptor, open(descriptor, "rb", closefd=False) as file:
            status = os.fstat(descriptor)
            try:
                data = file.read(self.max_bytes + 1)
            except OSError as error:
                raise SourceError(f"It cannot be read: {(error.strerror or str(error)).lower()}.") from error
        digest = hashlib.sha256(data[: self.max_bytes])
        notes = []
        if len(data) > self.max_bytes:
            # Of a huge file only the head is known; its size stands for the rest.
            digest.update(b"\0%d" % status.st_size)
            data = _head(data[: self.max_bytes])
            notes.append(f"only the first {_mib(self.max_bytes)} of {_mib(status.st_size)} are indexed")
        text, remark = decode(data)
        notes += [remark] if remark else []
        return Document(
            path=path,
            source="memory",
            text=without_annotations(text),
            sha256=digest.hexdigest(),
            mtime_ns=status.st_mtime_ns,
            size=status.st_size,
            note="; ".join(notes) or None,
        )

    # ---- a few lines ------------------------------------------------------------------------------------------

    def excerpt(self, path: str, start: int = 1, lines: int | None = None) -> Excerpt:
        """Some lines of one file of the memory, counted from 1; every other file is refused."""
        if start < 1 or (lines is not None and lines < 1):
            raise SourceError(f"Lines are counted from 1: from {start}, {lines} lines cannot be read.")
        tree, relative = self._located(path)
        cited = tree.shown + relative
        try:
            document = self._document(tree, cited, self._resolved(tree, relative))
        except SourceError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise self._not_found(cited) from error
            raise type(error)(f"{path!r} cannot be used. {error}") from error
        every = split_lines(document.text)
        chosen = every[start - 1 : start - 1 + (lines or EXCERPT_LINES)]
        if lines is None:
            chosen = _within(chosen, EXCERPT_CHARS)
        return Excerpt(cited, "\n".join(chosen), start, start - 1 + len(chosen), len(every))

    def _located(self, path: str) -> tuple[Tree, str]:
        """The tree and the relative path that a written path means; asks no file, so it tells nothing of them."""
        written = path.removeprefix("./").replace(os.sep, "/")
        if not path or not is_citable(path) or ".." in written.split("/"):
            raise PathRefused(f"{path[:200]!r} is refused: write it from the workspace down, without '..'.")
        self._trees = self._current_trees()
        for tree in self._trees:
            for prefix in (tree.shown, f"{tree.real}/", f"{self.root.absolute()}/{tree.shown}"):
                relative = written.removeprefix(prefix)
                if written.startswith(prefix) and tree.wants(relative):
                    return tree, relative
        raise PathRefused(
            f"{path[:200]!r} is refused: only MEMORY.md, memory/**/*.md and the owner's extra paths can be read."
        )

    def _resolved(self, tree: Tree, relative: str) -> str:
        """Where the path leads once its links are followed, all of which must stay inside the tree."""
        plain = os.path.join(tree.real, *relative.split("/"))  # noqa: PTH118
        try:
            real = os.path.realpath(plain)
        except OSError as error:
            raise PathRefused("It was replaced while it was being read.") from error
        if real != plain and not tree.may_lead_to(real, relative):
            raise PathRefused(
                "It is a symbolic link that leads out of the workspace, or to another kind of file."
            )
        return tree.relative(real)

    def _not_found(self, path: str) -> NotFound:
        known = {found.path.lower(): found.path for found in self.scan().files}
        nearest = difflib.get_close_matches(path.lower(), known, n=1)
        if nearest:
            return NotFound(sentence("note.other", path=path, name=known[nearest[0]]))
        return NotFound(sentence("note.not_found", path=path))


def _head(data: bytes) -> bytes:
    """The whole lines of a beginning, unless its last line is most of it."""
    end = data.rfind(b"\n") + 1
    return data[:end] if end > len(data) // 2 else data


def _within(lines: list[str], limit: int) -> list[str]:
    """As many whole lines as fit, and at least the beginning of the first."""
    used = 0
    for number, line in enumerate(lines):
        used += len(line) + 1
        if used > limit:
            return lines[:number] or [line[:limit]]
    return lines


def _mib(size: int) -> str:
    return f"{size / 1024 / 1024:.3g} MiB"
