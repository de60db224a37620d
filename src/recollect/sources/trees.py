"""Which files belong to a workspace's memory, and how their paths are written.

A tree is a folder together with the paths below it that may be read: the workspace with ``MEMORY.md`` and
``memory/**/*.md``, and one for each extra path. Names that begin with a dot belong to none.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_IN_WORKSPACE = r"(?:MEMORY|memory)\.md|memory/(?:(?!\.)[^/]+/)*(?!\.)[^/]+\.[mM][dD]"


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
