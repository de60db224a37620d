"""Read the Markdown files of a workspace.

A workspace lists its files, reads whole files for the index, and reads excerpts for people and agents. It never writes,
and it cannot read anything outside of the workspace and its extra paths.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from memoriter.errors import NotFound, PathRefused, SourceError, reason_of
from memoriter.files import shared
from memoriter.files.paths import open_inside
from memoriter.files.platform import is_reserved
from memoriter.files.scan import (
    NOTE_PATTERNS,
    NOTE_SUFFIXES,
    Scan,
    Tree,
    Walk,
    absolute,
    is_citable,
    tree_of,
    trees_of,
)
from memoriter.records import Collection, Document, Excerpt, FoundFile, Problem, Trust, least_trusted
from memoriter.sentences import sentence
from memoriter.text.blocks import without_annotations
from memoriter.text.encoding import decode
from memoriter.text.tokens import split_lines

MAX_BYTES = 4 * 1024 * 1024
#: Size of a document, such as a PDF file, whose text is read.
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
#: Lines of an excerpt by default.
EXCERPT_LINES = 200
#: Characters of an excerpt by default.
EXCERPT_CHARS = 40_000


class Workspace:
    """The notes of one folder and of the extra paths that its owner configured."""

    def __init__(
        self,
        root: Path,
        *,
        extra_paths: Sequence[Path] = (),
        patterns: Sequence[str] = NOTE_PATTERNS,
        own_patterns: Mapping[Path, str] = MappingProxyType({}),
        names: Mapping[Path, str] = MappingProxyType({}),
        trusts: Mapping[Path, Trust] = MappingProxyType({}),
        folder: str = "memory",
        readers: Mapping[str, Callable[[bytes], tuple[str, str | None]]] = MappingProxyType({}),
        max_bytes: int = MAX_BYTES,
        name: str | None = None,
    ) -> None:
        self.root = Path(root)
        #: The name by which an index knows the workspace: its path, unless several machines have copies of it.
        self.name = name or str(self.root.resolve())
        self.extra_paths = tuple(Path(extra) for extra in extra_paths)
        #: Functions that return the text of other files than notes, and a remark about it, by their ending.
        self.readers = readers
        more = [f"**/*{suffix}" for suffix in readers] if tuple(patterns) == NOTE_PATTERNS else ()
        self.patterns = (*patterns, *more)
        #: Patterns of single extra paths, instead of ``patterns``.
        self.own_patterns = own_patterns
        #: Names of extra paths, as the owner gave them.
        self.names = names
        #: Extra paths whose text is not the owner's.
        self.trusts = trusts
        #: The folder with the notes. "." is the workspace itself.
        self.folder = folder
        self.max_bytes = max_bytes
        #: Extra paths in the workspace. A `git pull` may turn one into a link that leads out, which is then not read.
        self._inside = frozenset(extra for extra in self.extra_paths if self._is_inside(extra))
        self._trees = self._current_trees()

    # ---- listing ----------------------------------------------------------------------------------------------

    def scan(self) -> Scan:
        """List the files without opening them. Files that cannot be listed are reported as problems."""
        shared.refresh(self.root)
        # Before the walk, so that a path that appears meanwhile differs.
        roots = {path: shared.changed_at(path) for path in self._roots()}
        self._trees = self._current_trees()
        walks = [Walk(tree) for tree in self._trees]
        files = {found.path: found for walk in reversed(walks) for found in walk.files}
        left_out = (problem for walk in walks for problem in walk.problems)
        problems = {problem.path: problem for problem in (*left_out, *self._missing())}
        return Scan(
            tuple(files[path] for path in sorted(files)),
            tuple(problems[path] for path in sorted(problems)),
            roots | {folder: time for walk in walks for folder, time in walk.folders.items()},
        )

    def find(self, path: str) -> FoundFile | None:
        """Find one file by its path without opening it, or return None."""
        try:
            tree, relative = self._locate(path)
            real = Path(tree.real, self._resolve(tree, relative))
            status = real.lstat()
        except (PathRefused, OSError, ValueError):
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        return FoundFile(tree.shown + relative, "memory", real, status.st_mtime_ns, status.st_size)

    def _current_trees(self) -> list[Tree]:
        extra = [path for path in self.extra_paths if not self._leads_out(path)]
        suffixes = (*NOTE_SUFFIXES, *self.readers)
        return trees_of(self.root, extra, self.patterns, self.own_patterns, self.folder, suffixes)

    def _is_inside(self, extra: Path) -> bool:
        home = os.path.realpath(self.root)
        real = os.path.realpath(absolute(self.root, extra))
        return (real + os.sep).startswith(home.rstrip(os.sep) + os.sep)

    def _leads_out(self, extra: Path) -> bool:
        return extra in self._inside and not self._is_inside(extra)

    def _missing(self) -> list[Problem]:
        missing = [path for path in self._roots() if not Path(path).exists()]
        moved = [absolute(self.root, extra) for extra in self.extra_paths if self._leads_out(extra)]
        return [
            *(Problem(path, "The path does not exist.") for path in missing),
            *(
                Problem(path, "The path became a link out of the workspace. It was not read.")
                for path in moved
            ),
        ]

    def _roots(self) -> list[str]:
        return [str(self.root.absolute()), *(absolute(self.root, extra) for extra in self.extra_paths)]

    # ---- collections ------------------------------------------------------------------------------------------

    def collection(self, name: str) -> Tree:
        """Return the tree of a collection. Raises `NotFound` if the name is unknown or the folder is missing."""
        path = next((path for path, known in self.names.items() if known == name), None)
        if path is None:
            known = ", ".join(self.names.values())
            code = "collection.unknown" if known else "collection.none"
            raise NotFound(sentence(code, name=name, known=known))
        pattern = self.own_patterns.get(path)
        tree = tree_of(self.root, path, [pattern] if pattern else self.patterns)
        if tree is None:
            raise NotFound(sentence("collection.missing", name=name, path=path))
        return tree

    def collections(self) -> tuple[Collection, ...]:
        """Return the collections, each with the number of its notes."""
        return tuple(
            Collection(
                name,
                str(path),
                self.own_patterns.get(path),
                self._count(name),
                self.trusts.get(path, "owner"),
            )
            for path, name in self.names.items()
        )

    def _count(self, name: str) -> int | None:
        try:
            return len(Walk(self.collection(name)).files)
        except NotFound:
            return None

    # ---- reading ----------------------------------------------------------------------------------------------

    def read(self, found: FoundFile) -> Document:
        """Read one listed file. Raises `SourceError` if it cannot be used."""
        for tree in self._trees:
            if tree.holds(str(found.absolute)) and found.path.startswith(tree.shown):
                return self._document(tree, found.path, tree.relative(str(found.absolute)))
        raise PathRefused("The file is outside of the workspace and its extra paths.")

    def _document(self, tree: Tree, path: str, relative: str) -> Document:
        reader = self.readers.get(Path(path).suffix.lower())
        with open_inside(tree.real, relative) as descriptor, open(descriptor, "rb", closefd=False) as file:
            status = os.fstat(descriptor)
            if reader and status.st_size > MAX_DOCUMENT_BYTES:
                raise SourceError(
                    f"The file has more than {_mib(MAX_DOCUMENT_BYTES)}, so its text is not read."
                )
            try:
                data = file.read((MAX_DOCUMENT_BYTES if reader else self.max_bytes) + 1)
            except OSError as error:
                raise SourceError(f"The file cannot be read: {reason_of(error).lower()}.") from error
        digest = hashlib.sha256(data if reader else data[: self.max_bytes])
        notes, text = list[str](), ""
        if reader:
            text, remark = reader(data)
        elif len(data) > self.max_bytes:
            # Only the start of a huge file is read. Its size represents the rest in the digest.
            digest.update(b"\0%d" % status.st_size)
            data = _head(data[: self.max_bytes])
            notes.append(self._only_the_start(status.st_size))
        if not reader:
            text, remark = decode(data, is_cut=bool(notes))
        notes += [remark] if remark else []
        return Document(
            path=path,
            source="memory",
            text=without_annotations(text),
            sha256=digest.hexdigest(),
            mtime_ns=status.st_mtime_ns,
            size=status.st_size,
            note="; ".join(notes) or None,
            trust=self.trust_of(Path(tree.real, relative)),
        )

    def trust_of(self, real: Path) -> Trust:
        """Return the most that the text of a file can claim. A file may be in several folders."""
        found = (
            trust
            for path, trust in self.trusts.items()
            if real.is_relative_to(os.path.realpath(absolute(self.root, path)))
        )
        return least_trusted("owner", *found)

    def incomplete(self) -> dict[str, str]:
        """Return the reason for each file that is not indexed, or only in part, by path."""
        scan = self.scan()
        texts = (found for found in scan.files if Path(found.path).suffix.lower() not in self.readers)
        large = [found for found in texts if found.size > self.max_bytes]
        return {
            **{problem.path: problem.reason for problem in scan.problems},
            **{found.path: self._only_the_start(found.size) for found in large},
        }

    def _only_the_start(self, size: int) -> str:
        return f"only the first {_mib(self.max_bytes)} of {_mib(size)} are indexed"

    # ---- a few lines ------------------------------------------------------------------------------------------

    def excerpt(self, path: str, start: int = 1, lines: int | None = None) -> Excerpt:
        """Read some lines of a note, counted from 1. Other files are refused."""
        if start < 1 or (lines is not None and lines < 1):
            raise SourceError(f"Invalid line range: start {start}, {lines} lines. Lines are counted from 1.")
        tree, relative = self._locate(path)
        cited = tree.shown + relative
        try:
            document = self._document(tree, cited, self._resolve(tree, relative))
        except SourceError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise self._not_found(cited) from error
            raise type(error)(f"Cannot read {cited!r}. {error}") from error
        every = split_lines(document.text)
        chosen = every[start - 1 : start - 1 + (lines or EXCERPT_LINES)]
        if lines is None:
            chosen = _within(chosen, EXCERPT_CHARS)
        return Excerpt(cited, "\n".join(chosen), start, start - 1 + len(chosen), len(every))

    def place(self, path: str) -> tuple[str, Path]:
        """Return the path of a note as citations show it, and its file, whether it exists or not.

        Raises `PathRefused` for a path that does not belong to the memory.
        """
        tree, relative = self._locate(path)
        shown = tree.shown + relative
        if Path(relative).suffix.lower() in self.readers:
            raise PathRefused(f"{shown[:200]!r} is a document that memoriter reads and never changes.")
        for name in filter(is_reserved, relative.split("/")):
            raise PathRefused(sentence("note.reserved", path=shown[:200], name=name[:80]))
        return shown, Path(tree.real, self._resolve(tree, relative))

    def _locate(self, path: str) -> tuple[Tree, str]:
        """Return the tree and relative path of a path, without revealing which files exist."""
        written = path.removeprefix("./").replace(os.sep, "/")
        if not path or not is_citable(path) or ".." in written.split("/"):
            raise PathRefused(sentence("path.relative", path=written[:200]))
        shared.refresh(self.root)
        self._trees = self._current_trees()
        for tree in self._trees:
            for prefix in (tree.shown, f"{tree.real}/", f"{self.root.absolute()}/{tree.shown}"):
                # Windows knows two separators, and does not distinguish names by case.
                start, relative = written[: len(prefix)], written[len(prefix) :]
                if os.path.normcase(start) == os.path.normcase(prefix) and tree.matches(relative):
                    return tree, relative
        raise PathRefused(sentence("path.outside", path=written[:200]))

    def _resolve(self, tree: Tree, relative: str) -> str:
        """Resolve the links of a path. They must stay inside the tree."""
        plain = os.path.join(tree.real, *relative.split("/"))  # noqa: PTH118
        try:
            real = os.path.realpath(plain)
        except OSError as error:
            raise PathRefused("The file was replaced while it was being read.") from error
        if real != plain and not tree.may_lead_to(real, relative):
            raise PathRefused(sentence("path.link"))
        return tree.relative(real)

    def _not_found(self, path: str) -> NotFound:
        known = {found.path.lower(): found.path for found in self.scan().files}
        nearest = difflib.get_close_matches(path.lower(), known, n=1, cutoff=0.8)
        if nearest:
            return NotFound(sentence("note.other", path=path, name=known[nearest[0]]))
        return NotFound(sentence("note.not_found", path=path))


def _head(data: bytes) -> bytes:
    """Cut after the last complete line, unless the last line is more than half of the data."""
    end = data.rfind(b"\n") + 1
    return data[:end] if end > len(data) // 2 else data


def _within(lines: list[str], limit: int) -> list[str]:
    """Return as many whole lines as fit, and at least the start of the first one."""
    used = 0
    for number, line in enumerate(lines):
        used += len(line) + 1
        if used > limit:
            return lines[:number] or [line[:limit]]
    return lines


def _mib(size: int) -> str:
    return f"{size / 1024 / 1024:.3g} MiB"
